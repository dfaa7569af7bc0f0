"""The version of opencse, in a module of its own so that any package can import it."""

__version__ = "0.3.0"
