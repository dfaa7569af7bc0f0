"""The command line is made of the options of each command, without importing the command itself."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import MISSING, Field, fields
from typing import Annotated, Any, get_args, get_type_hints

import typer

_CHECKED = ("run", "train", "build", "evaluate", "probe", "check", "compare", "reproduce")
"""The commands that import PyTorch for seconds, and whose options are checked before."""
_COMMON = (
    ("device", str, "auto", ("--device",), "`auto` (an accelerator if there is one), cpu, cuda, cuda:1, mps, xpu."),
    ("quiet", bool, False, ("--quiet", "-q"), "Print only results and errors."),
    ("verbose", bool, False, ("--verbose", "-v"), "Also print the time of each part."),
)


def add_command(
    app: typer.Typer, name: str, options: type, described: type | None = None, module: str = "", common: bool = True
) -> None:
    """Add a command to an app; its module is imported when it is called.

    Args:
        app: The app.
        name: Name of the command, and of the module in `opencse.commands` whose `command` receives the options.
        options: The dataclass of its options.
        described: The dataclass whose docstring is its help page, if that is another.
        module: The module, if it has another name.
        common: Whether it has the options for device and verbosity.
    """

    def call(**values: Any) -> None:
        shared = {each: values.pop(each) for each, *_ in _COMMON if common}
        asked = options(**values)
        if name in _CHECKED:
            importlib.import_module("opencse.commands.preflight").check_options(asked)
        _begin(**shared)
        importlib.import_module(f"opencse.commands.{module or name}").command(asked)

    parameters = [_parameter(each, options) for each in fields(options) if "flags" in each.metadata]
    for parameter, kind, default, flags, text in _COMMON if common else ():
        annotation: Any = Annotated[kind, typer.Option(*flags, help=text)]
        parameters.append(
            inspect.Parameter(parameter, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    app.command(name, help=inspect.getdoc(described or options))(call)


def _parameter(each: Field[Any], options: type) -> inspect.Parameter:
    """Return the parameter of a command that typer makes an argument or option of."""
    metadata = each.metadata
    kind = metadata["shown"] or get_type_hints(options)[each.name]
    default = each.default if each.default_factory is MISSING else each.default_factory()
    if kind is str and isinstance(default, list):
        default = ",".join(default)
    if default is None and type(None) not in get_args(kind):
        kind = kind | None
    settings: Any = typer.Argument if metadata["argument"] else typer.Option
    made = settings(*metadata["flags"], help=metadata["help"], **metadata["typer"])
    return inspect.Parameter(
        each.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default,
        annotation=Annotated[kind, made],
    )


def _begin(device: str = "auto", quiet: bool = False, verbose: bool = False) -> None:
    """Apply the options for device and verbosity.

    Raises:
        OpencseError: There is no such device, or both `--quiet` and `--verbose` are given.
    """
    from opencse.foundation.errors import OpencseError
    from opencse.foundation.progress import Verbosity, set_verbosity

    if quiet and verbose:
        raise OpencseError("--quiet and --verbose exclude each other")
    set_verbosity(Verbosity.QUIET if quiet else Verbosity.VERBOSE if verbose else Verbosity.NORMAL)
    if device != "auto":
        from opencse.encoder.device import use_device

        use_device(device)
