r"""Text for the terminal: characters that would steer it are shown as escapes, such as `\x1b`.

File names, keys of tables, settings of models and messages of libraries are written by strangers. A
terminal obeys an escape sequence in them: it could overwrite lines, change the title or fill the
clipboard. So everything that opencse prints goes through `printable`, once, where it is printed.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_STEERING = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 control characters, without tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of writing, which can reorder a line
    "\u2028\u2029\ufff9-\ufffb"  # other separators of lines, and marks of annotations
    "\ud800-\udfff"  # halves of surrogate pairs
    "\U000e0000-\U000e007f"  # invisible tags
    "]"
)


def printable(text: str, *, one_line: bool = False) -> str:
    r"""Return a text in which characters that steer a terminal are shown as escapes.

    Args:
        text: Any text.
        one_line: Show line feeds as `\n`, too, so that a name cannot pretend to be a second line.

    Example:
        >>> print(printable("a\x1b[2Jb"))
        a\x1b[2Jb
    """
    text = _STEERING.sub(_escaped, text)
    if one_line:
        text = text.replace("\n", "\\n")
    return text


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "surrogatepass").decode("ascii")


def print_text(text: str, *, end: str = "\n", error: bool = False) -> None:
    """Print a text to standard output, or to standard error; everything in it is `printable`."""
    stream = sys.stderr if error else sys.stdout
    # The shell closes it with `>&-`.
    if stream is None:
        return
    # A message that cannot be shown, because its disk is full or nobody reads it, changes no exit code.
    lost: tuple[type[Exception], ...] = (OSError, ValueError) if error else ()
    with contextlib.suppress(*lost):
        # One call, so that lines of several threads do not mix.
        stream.write(printable(text) + end)
        stream.flush()


def print_line(text: str) -> None:
    """Print a text as one line to standard error, whatever line feeds are in it."""
    print_text(printable(text, one_line=True), error=True)


class Printable:
    """A renderable of rich whose texts are `printable`; rich's own colors and styles stay."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        for segment in console.render(self._renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text), segment.style)


@cache
def escape_messages_of_libraries() -> None:
    """Make log messages and warnings of all libraries printable, for the command line."""

    class _Record(logging.LogRecord):
        def getMessage(self) -> str:
            return printable(super().getMessage())

    logging.setLogRecordFactory(_Record)
    format_warning = warnings.formatwarning

    def formatted(*args: Any, **kwargs: Any) -> str:
        return printable(format_warning(*args, **kwargs))

    warnings.formatwarning = formatted
