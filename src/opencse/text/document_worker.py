"""The process in which documents are read, with a budget of time and memory for each.

A parser cannot be stopped from within: a pattern that takes hours to match, or a table of 10⁸
columns, holds the whole process. So documents are read in a child process, which the system ends if
it computes too long and refuses memory beyond a limit. One child reads all documents, one after the
other; after a failure a new one is started.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import FileTally, checked_lines

SECONDS = 15.0
"""Seconds of computing for a document of any size."""
SECONDS_PER_MIB = 20.0
"""Further seconds for each MiB of the file."""
MEMORY = 3 * 2**30
"""Bytes of address space of the process."""
LARGEST_TEXT = 256 * 2**20
"""Characters of the text of a document."""
# A process that only waits is ended after so many times its seconds of computing.
_WAITING = 10
# Characters beyond which a paragraph is cut in two, for spaCy.
_LONGEST_PARAGRAPH = 1_000_000
_SMALLER = "Convert it to plain text, or split it."


def paragraphs_of(
    path: Path, budget: float | None = None, tally: FileTally | None = None
) -> list[str]:
    """Return the paragraphs of a document, read in a process that is ended if it takes too long.

    Args:
        path: A file that `opencse.text.document_readers` can read.
        budget: Seconds of computing; by default by the size of the file.
        tally: Filled in by that process, which reads the file anyway.

    Raises:
        OpencseError: The document cannot be read, or not within its budget.
    """
    if budget is None:
        budget = SECONDS + SECONDS_PER_MIB * path.stat().st_size / 2**20
    # One document at a time: answers on the pipe don't tell which document they are of.
    with _LOCK:
        child = _child()
        # The system counts computing only; a child that hangs without computing is ended by a clock.
        timer = threading.Timer(_WAITING * budget, child.kill)
        timer.daemon = True
        timer.start()
        try:
            return _asked(child, path, budget, tally or FileTally())
        except BaseException:
            # Half an answer may be left in the pipe, also after Ctrl-C.
            _end(child)
            raise
        finally:
            timer.cancel()


def _asked(child: subprocess.Popen[str], path: Path, budget: float, tally: FileTally) -> list[str]:
    assert child.stdin is not None
    assert child.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # a child that ended is reported below
        asked = {"path": str(path), "seconds": budget, "checked_lines": checked_lines(path)}
        child.stdin.write(json.dumps(asked) + "\n")
        child.stdin.flush()
    texts = []
    for line in child.stdout:
        answer = json.loads(line)
        if "text" in answer:
            texts.append(answer["text"])
        elif "problem" in answer:
            raise OpencseError(answer["problem"], answer["remedy"])
        else:
            tally.digest = answer["digest"]
            tally.line_feeds = answer["line_feeds"]
            return texts
    # The pipe has ended, so the child has.
    code = child.wait()
    limits = (-getattr(signal, "SIGXCPU", signal.SIGTERM), -getattr(signal, "SIGKILL", 9))
    if code in limits:
        problem = f"cannot be read within {budget:.0f} seconds of computing and {MEMORY >> 30} GiB"
    else:
        problem = f"its reader has crashed (exit {code})"
    raise OpencseError(f"{path}: {problem}", _SMALLER)


_LOCK = threading.Lock()
# The child by the process that started it: one that forks must not share its pipes.
_CHILDREN: dict[int, subprocess.Popen[str]] = {}


def _child() -> subprocess.Popen[str]:
    child = _CHILDREN.get(os.getpid())
    if child is not None and child.poll() is None:
        return child
    # The same packages as here, and nothing from the current folder, which may be a stranger's.
    places = [os.path.abspath(place) for place in sys.path if place]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(places),
        "PYTHONSAFEPATH": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    child = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # of libraries, about what strangers wrote
        text=True,
        encoding="utf-8",
        env=environment,
        start_new_session=True,  # Ctrl-C is for this process alone; the child ends with it
    )
    # Those of other processes stay theirs; only the references to them go.
    _CHILDREN.clear()
    _CHILDREN[os.getpid()] = child
    return child


def _end(child: subprocess.Popen[str]) -> None:
    child.kill()
    child.wait()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()


def _pieces(paragraph: str) -> Iterator[str]:
    for start in range(0, len(paragraph), _LONGEST_PARAGRAPH):
        yield paragraph[start : start + _LONGEST_PARAGRAPH]


def _answer(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    from opencse.text.document_readers import read_paragraphs

    path = Path(request["path"])
    tally = FileTally()
    size = 0
    # Before the limits, which are for the document, not for the imports.
    checked_lines(path, request["checked_lines"])
    _limit(request["seconds"])
    try:
        for paragraph in read_paragraphs(path, tally):
            size += len(paragraph)
            if size > LARGEST_TEXT:
                raise OpencseError(f"{path}: more than {LARGEST_TEXT >> 20} MiB of text", _SMALLER)
            for text in _pieces(paragraph):
                yield {"text": text}
    except OpencseError as error:
        yield {"problem": error.problem, "remedy": error.remedy}
        return
    except MemoryError:
        yield {
            "problem": f"{path}: needs more than {MEMORY >> 30} GiB of memory to be read",
            "remedy": _SMALLER,
        }
        return
    yield asdict(tally)


def _limit(seconds: float) -> None:
    """Let the system end this process after so many more seconds of computing."""
    try:
        import resource
    except ImportError:  # Windows: the parent's clock alone
        return
    with contextlib.suppress(ValueError, OSError):  # a lower limit of the user's
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        used = math.ceil(time.process_time() + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (used, hard))
    with contextlib.suppress(ValueError, OSError):
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _serve(requests: IO[str], answers: IO[str]) -> None:
    for line in requests:
        for answer in _answer(json.loads(line)):
            answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    own_output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    _serve(sys.stdin, own_output)
