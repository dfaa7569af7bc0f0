"""The version of opencse, in a separate module so that any package can import it."""

__version__ = "0.3.0"
