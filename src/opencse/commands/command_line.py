"""The command line is made of the options of each command, without importing the command itself."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from opencse.commands.option_fields import option, options_class

_CHECKED = ("run", "train", "build", "evaluate", "probe", "check", "compare", "reproduce")
"""The commands that import PyTorch for seconds, and whose options are checked before."""


@options_class
class CommonOptions:
    """Where to compute, and how much to say."""

    device: str = option("`auto` (an accelerator if there is one), cpu, cuda, cuda:1, mps, xpu.", default="auto")
    quiet: bool = option("Print only results and errors.", default=False, flags=("--quiet", "-q"))
    verbose: bool = option("Also print the time of each part.", default=False, flags=("--verbose", "-v"))


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
        shared = {each.name: values.pop(each.name) for each in fields(CommonOptions) if common}
        asked = options(**values)
        if name in _CHECKED:
            importlib.import_module("opencse.commands.preflight").check_options(asked)
        _begin(CommonOptions(**shared))
        importlib.import_module(f"opencse.commands.{module or name}").command(asked)

    kinds = (options, CommonOptions) if common else (options,)
    parameters = [_parameter(each, kind) for kind in kinds for each in fields(kind) if "flags" in each.metadata]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    app.command(name, help=inspect.getdoc(described or options))(call)


def _parameter(each: Field[Any], options: type) -> inspect.Parameter:
    """Return the parameter of a command that typer makes an argument or option of."""
    metadata = each.metadata
    kind = metadata["shown"] or _shown_type(get_type_hints(options)[each.name])
    default = each.default if each.default_factory is MISSING else each.default_factory()
    if kind is str and isinstance(default, list):
        default = ",".join(default)
    if default is None and type(None) not in get_args(kind):
        kind = kind | None
    settings: Any = typer.Argument if metadata["argument"] else typer.Option
    # A flag has no opposite such as --no-quick, unless it is named.
    flags = metadata["flags"] or ([f"--{each.name.replace('_', '-')}"] if kind is bool else [])
    made = settings(*flags, help=metadata["help"], **metadata["typer"])
    return inspect.Parameter(
        each.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default,
        annotation=Annotated[kind, made],
    )


def _shown_type(hint: Any) -> Any:
    """Return the type on the command line: text where Python also takes a path or an object, a list of text."""
    if get_origin(hint) is Sequence:
        return list[str]
    return str if hint is Any or {str, Path} <= set(get_args(hint)) else hint


def _begin(common: CommonOptions) -> None:
    """Apply the options for device and verbosity.

    Raises:
        OpencseError: There is no such device, or both `--quiet` and `--verbose` are given.
    """
    from opencse.foundation.errors import OpencseError
    from opencse.foundation.progress import Verbosity, set_verbosity

    if common.quiet and common.verbose:
        raise OpencseError("--quiet and --verbose exclude each other")
    set_verbosity(Verbosity.QUIET if common.quiet else Verbosity.VERBOSE if common.verbose else Verbosity.NORMAL)
    if common.device != "auto":
        from opencse.encoder.device import use_device

        use_device(common.device)
