"""Options of a command as a dataclass: its fields are options on the command line and keyword arguments in Python.

The help of a field stands in the dataclass alone. `command_line.py` turns fields into options, `takes` into keyword
arguments; the reference page is made from both.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Literal, ParamSpec, TypeVar, dataclass_transform

P = ParamSpec("P")
Options = TypeVar("Options")
Result = TypeVar("Result")


def option(help: str, *, default: Any = MISSING, flags: Sequence[str] = (), shown: Any = None, **typer: Any) -> Any:
    """Return a field that is an option on the command line and a keyword argument in Python.

    Args:
        help: The help text of both.
        default: The default; without one, the option is required.
        flags: Names on the command line; by default the name of the field.
        shown: The type on the command line, if it is not that of the field; where Python takes more, it is text.
        **typer: Settings of the option on the command line, such as `min`, `metavar` or `envvar`.
    """
    return _field(default, True, {"help": help, "flags": flags, "shown": shown, "typer": typer, "argument": False})


def argument(
    help: str,
    *,
    default: Any = MISSING,
    flags: Sequence[str] = (),
    shown: Any = None,
    kw_only: Literal[False],
    **typer: Any,
) -> Any:
    """Return a field that is given by position: in Python, and without `flags` on the command line, too.

    `kw_only=False` stands at each call, because type checkers look for it there.
    """
    return _field(
        default, kw_only, {"help": help, "flags": flags, "shown": shown, "typer": typer, "argument": not flags}
    )


def python_only(help: str, *, default: Any) -> Any:
    """Return a field that is a keyword argument in Python, and no option."""
    return _field(default, True, {"help": help})


def _field(default: Any, kw_only: bool, metadata: dict[str, Any]) -> Any:
    if isinstance(default, list):
        return field(default_factory=default.copy, kw_only=kw_only, metadata=metadata)
    return field(default=default, kw_only=kw_only, metadata=metadata)


@dataclass_transform(field_specifiers=(option, argument, python_only), kw_only_default=True, frozen_default=True)
def options_class(cls: type[Options]) -> type[Options]:
    """Make a class the frozen dataclass of a command's options."""
    return dataclass(frozen=True, kw_only=True)(cls)


def takes(options: Callable[P, Options]) -> Callable[[Callable[[Options], Result]], Callable[P, Result]]:
    """Return a decorator: a function of an options object is called with the fields of that object.

    The docstring is that of the options, their fields as `Args`, and that of the function but for its first line.

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
            return function(options(*args, **kwargs))

        call.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
        args = "\n".join(f"    {each.name}: {each.metadata['help']}" for each in fields(options))  # type: ignore[arg-type]
        _, _, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\n")
        call.__doc__ = f"{inspect.getdoc(options)}\n\nArgs:\n{args}\n\n{rest}"
        return call

    return decorate
