"""Options of a command as a dataclass: its fields are options on the command line and keyword arguments in Python.

The help of a field stands in the dataclass alone. `add_command` turns fields into options, without
importing the command itself, `takes` into keyword arguments; the reference page is made from both.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    ParamSpec,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

from opencse.commands import checks
from opencse.foundation.plugins import import_plugin
from opencse.foundation.progress import LOG, Notify, note, set_quiet
from opencse.text.memory_tables import as_tables

P = ParamSpec("P")
Options = TypeVar("Options")
Result = TypeVar("Result")


def option(
    help: str,
    *,
    default: Any = MISSING,
    flags: Sequence[str] = (),
    shown: Any = None,
    check: Callable[[Any], None] | None = None,
    check_each: Callable[[Any], None] | None = None,
    kw_only: bool = True,
    **typer: Any,
) -> Any:
    """Return a field that is an option on the command line and a keyword argument in Python.

    Args:
        help: The help text of both.
        default: The default; without one, the option is required.
        flags: Names on the command line; by default the name of the field.
        shown: The type on the command line, if it is not that of the field; where Python takes
            more, it is text.
        check: Checks the value before the command is imported.
        check_each: Checks each of several values, or a single one.
        kw_only: False for what is given by position: in Python, and without `flags` on the command
            line, too.
        **typer: Settings of the option on the command line, such as `min`, `metavar` or `envvar`.
    """
    metadata = {
        "help": help,
        "flags": flags,
        "shown": shown,
        "typer": typer,
        "check": check,
        "check_each": check_each,
        "argument": not kw_only and not flags,
    }
    return field(default=default, kw_only=kw_only, metadata=metadata)


def python_only(help: str, *, default: Any) -> Any:
    """Return a field that is a keyword argument in Python, and no option."""
    return field(default=default, kw_only=True, metadata={"help": help})


@dataclass_transform(
    field_specifiers=(option, python_only), kw_only_default=True, frozen_default=True
)
def options_class(cls: type[Options]) -> type[Options]:
    """Make a class the frozen dataclass of a command's options.

    A lone string, path or table for a field that is a sequence is one item of it, never a sequence of
    letters or rows.
    """
    cls.__post_init__ = _lone_items  # type: ignore[attr-defined]
    return dataclass(frozen=True, kw_only=True)(cls)


def _lone_items(options: Any) -> None:
    hints = get_type_hints(type(options))
    for spec in fields(options):
        if get_origin(hints[spec.name]) is Sequence:
            value = getattr(options, spec.name)
            object.__setattr__(options, spec.name, as_tables(value))


def takes(
    options: Callable[P, Options],
) -> Callable[[Callable[[Options], Result]], Callable[P, Result]]:
    """Return a decorator: a function of an options object is called with the fields of that object.

    The docstring is that of the options, their fields as `Args`, and that of the function but for
    its first line.

    Example:
        >>> @takes(CacheOptions)
        ... def cache(options):
        ...     return options.clear
        >>> cache(clear=True)
        True
    """

    def decorate(function: Callable[[Options], Result]) -> Callable[P, Result]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Result:
            given = options(*args, **kwargs)
            if isinstance(given, CommandOptions):
                check_options(given)
            return function(given)

        # Of the options class, but for what it returns: calling the class returns None in its eyes.
        signature = inspect.signature(options)
        returned = inspect.signature(function).return_annotation
        signature = signature.replace(return_annotation=returned)
        call.__signature__ = signature  # type: ignore[attr-defined]
        args = "\n".join(f"    {spec.name}: {spec.metadata['help']}" for spec in fields(options))  # type: ignore[arg-type]
        _, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
        call.__doc__ = f"{inspect.getdoc(options)}\n\nArgs:\n{args}\n\n{rest}"
        return call

    return decorate


def apply(function: Callable[..., Result], options: Any) -> Result:
    """Call a function that `takes` options with an object of them, which may have further fields."""
    return inspect.unwrap(function)(options)


@options_class
class CommandOptions:
    """Base class of the options of all commands."""

    several_processes: ClassVar[bool] = False
    """Whether the command works when a launcher started it in several processes."""

    def check(self) -> None:
        """Check what only several options together tell; a class adds to the check of its base.

        Raises:
            OpencseError: Something cannot work, told before anything heavy is imported.
        """


def check_options(options: CommandOptions) -> None:
    """Check the options of a command without PyTorch, in a fraction of a second.

    Raises:
        OpencseError: An override or a name is unknown, there is no such file or model, the output
            folder is in use.
    """
    options.check()
    for spec in fields(options):
        given = getattr(options, spec.name)
        # An option that was left out has nothing to check.
        if given is None:
            continue
        check = spec.metadata.get("check")
        if check is not None:
            check(given)
        check_each = spec.metadata.get("check_each")
        if check_each is not None:
            values = given if isinstance(given, list | tuple) else [given]
            for value in values:
                check_each(value)


@options_class
class Notified(CommandOptions):
    """Progress bars and notes."""

    progress: bool = python_only("Show progress bars.", default=True)
    notify: Notify = python_only(
        "Receives short notes for the user; by default the logger `opencse`.", default=note
    )


@options_class
class _CommonOptions:
    """Where to compute, and how much to say."""

    device: str = option(
        "`auto` (an accelerator if there is one), cpu, cuda, cuda:1, mps, xpu.", default="auto"
    )
    quiet: bool = option("Print only results and errors.", default=False, flags=("--quiet", "-q"))
    verbose: bool = option("Print details that help to find a mistake.", default=False)


_IMPORT_HELP = (
    "Import a module first that registers losses, views, tasks, callbacks, recipes or trackers: its name, or a .py file. "
    "Repeatable."
)

IMPORT = typer.Option("--import", metavar="MODULE", help=_IMPORT_HELP)
"""The option --import of a command that has no options class."""


@options_class
class _PluginOptions:
    """Code from outside the package."""

    imports: Sequence[str] = option(
        _IMPORT_HELP,
        default=(),
        flags=("--import",),
        metavar="MODULE",
    )


def add_command(
    app: typer.Typer,
    name: str,
    options: type[CommandOptions],
    execute: Callable[[Any], None],
    *,
    described: type[CommandOptions] | None = None,
    common: bool = True,
    plugins: bool = True,
) -> None:
    """Add a command to an app.

    Args:
        app: The app.
        name: Name of the command.
        options: The dataclass of its options.
        execute: Receives the options after their check.
        described: The dataclass whose docstring is its help page, if that is another.
        common: Whether it has the options for device and verbosity.
        plugins: Whether it uses recipes, tasks or models, and so has --import.
    """
    kinds: list[type] = [options]
    if plugins:
        kinds.append(_PluginOptions)
    if common:
        kinds.append(_CommonOptions)

    def call(**values: Any) -> None:
        shared = {spec.name: values.pop(spec.name) for spec in fields(_CommonOptions) if common}
        # First, because the checks of the options look up what a module registers.
        for plugin in values.pop("imports", None) or ():
            import_plugin(plugin)
        notes = {spec.name: note for spec in fields(options) if spec.name == "notify"}
        filled = options(**values, **notes)
        if not options.several_processes:
            checks.one_process()
        check_options(filled)
        _begin(_CommonOptions(**shared))
        execute(filled)

    parameters = []
    for kind in kinds:
        for spec in fields(kind):
            # A field without flags exists in Python only.
            if "flags" in spec.metadata:
                parameters.append(_parameter(spec, kind))
    # typer reads the options of a command from the signature of its function.
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    app.command(name, help=inspect.getdoc(described or options))(call)


def _parameter(spec: Field[Any], options: type) -> inspect.Parameter:
    """Return the parameter of a command that typer makes an argument or option of."""
    metadata = spec.metadata
    # On the command line, text where Python also takes a path or an object, and a list of text.
    hint = get_type_hints(options)[spec.name]
    kind = hint
    if metadata["shown"]:
        kind = metadata["shown"]
    elif get_origin(hint) is Sequence:
        kind = list[str]
    elif hint is Any or {str, Path} <= set(get_args(hint)):
        kind = str
    default = list(spec.default) if isinstance(spec.default, tuple) else spec.default
    if default is None and type(None) not in get_args(kind):
        kind = kind | None
    settings: Any = typer.Argument if metadata["argument"] else typer.Option
    # A flag has no opposite such as --no-quick, unless it is named.
    flags = metadata["flags"] or ([f"--{spec.name.replace('_', '-')}"] if kind is bool else [])
    info = settings(*flags, help=metadata["help"], **metadata["typer"])
    return inspect.Parameter(
        spec.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default,
        annotation=Annotated[kind, info],
    )


def _begin(common: _CommonOptions) -> None:
    """Apply the options for device and progress.

    Raises:
        OpencseError: There is no such device.
    """
    # Of several processes, one speaks.
    set_quiet(common.quiet or os.environ.get("RANK", "0") != "0")
    if common.verbose:
        LOG.setLevel(logging.DEBUG)
    if common.device != "auto":
        from opencse.encoder.device import use_device

        use_device(common.device)
