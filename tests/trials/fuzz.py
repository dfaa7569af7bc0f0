"""`python -m tests.trials.fuzz --minutes 1`: random changes of every format that is read, straight into its reader.

A reader may return, or raise `OpencseError`; everything else is a find, which is kept with the bytes that led to it.
The readers run in a child process, so that a crash or a hang is a find too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from opencse.foundation.errors import OpencseError
from tests.trials.formats import Format, all_formats

LONGEST = 60
"""Seconds of the processor that one input may take; by the clock ten times as long."""
_ROUND = 60
"""Seconds of one child process."""
OUTCOMES = ("read", "refused", "finds")
Counts = dict[str, Counter[str]]


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The same bytes after one to four changes: flips, cuts, repetitions, insertions, exchanges."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((1, 1, 2, 8, 64, 1000)))
        kind = rng.choice(("flip", "cut", "truncate", "repeat", "insert", "zero", "splice"))
        if kind == "flip" and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif kind == "cut":
            del data[at:end]
        elif kind == "truncate":
            del data[at:]
        elif kind == "repeat":
            data[at:at] = data[at:end] * rng.choice((1, 2, 50))
        elif kind == "insert":
            data[at:at] = rng.choice(
                (b"\0", b"\xff", b'"', b"\n", b"[", b"{", b"9" * 30, b"\xed\xa0\x80", b"nan", b"-1")
            )
        elif kind == "zero":
            data[at:end] = bytes(end - at)
        else:
            other = rng.randrange(len(data) + 1)
            data[at:end] = data[other : other + end - at]
    return bytes(data)


def fuzz(
    known: list[Format], folder: Path, rng: random.Random, *, until: Callable[[int], bool]
) -> tuple[Counts, list[str]]:
    """Feed changed examples to their readers while `until` says no.

    Returns the outcomes by format, and one find of each kind.

    Args:
        known: The formats.
        folder: Keeps the inputs of finds, and `current`, the name of the format that is being read.
        rng: Draws formats and changes.
        until: Given the number of inputs so far, whether to stop.
    """
    counts: Counts = {}
    finds: list[str] = []
    kinds: set[str] = set()
    while not until(sum(count.total() for count in counts.values())):
        one = rng.choice(known)
        changed = mutated(one.content, rng)
        (folder / "current").write_text(one.name)
        one.file.write_bytes(changed)
        outcome = _outcome(one)
        count = counts.setdefault(one.name, Counter())
        if outcome in OUTCOMES:
            count[outcome] += 1
        else:
            count["finds"] += 1
            if outcome not in kinds:
                finds.append(f"{_keep(folder, one, changed)}: {outcome}")
            kinds.add(outcome)
        one.file.write_bytes(one.content)
    return counts, finds


def _outcome(one: Format) -> str:
    """`read`, `refused`, or the exception's class and place."""
    from opencse.foundation.files import write_checksums

    try:
        if one.sealed is not None:
            sums = (one.sealed / "checksums.json").read_bytes()
            (one.sealed / "checksums.json").unlink()
            write_checksums(one.sealed)
        one.read(one.file)
    except OpencseError:
        return "refused"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{one.name}: {type(error).__name__} ({Path(place.filename).name}:{place.lineno})"
    finally:
        if one.sealed is not None:
            (one.sealed / "checksums.json").write_bytes(sums)
    return "read"


def _keep(folder: Path, one: Format, content: bytes) -> Path:
    """Keep an input under a name that says its format."""
    number = len(list(folder.glob("find-*")))
    kept = folder / f"find-{number}-{one.name.replace('/', '-').replace(' ', '-')}"
    kept.write_bytes(content)
    return kept


def _round(known: list[Format], folder: Path, seed: str, end: float) -> tuple[Counts, list[str]]:
    """Fuzz in a child process until `end`; a child that dies is a find."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            counts, finds = fuzz(known, folder, random.Random(seed), until=lambda _: _over(end))
            (folder / "round.json").write_text(json.dumps([counts, finds]))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        counts, finds = json.loads((folder / "round.json").read_text())
        return {name: Counter(count) for name, count in counts.items()}, finds
    name = (folder / "current").read_text()
    one = next(one for one in known if one.name == name)
    kept = _keep(folder, one, one.file.read_bytes())
    for each in known:
        each.file.write_bytes(each.content)
    timed_out = status in (-signal.SIGALRM, -signal.SIGPROF)
    reason = f"took more than {LONGEST} s" if timed_out else f"ended the process with {status}"
    return {name: Counter({"finds": 1})}, [f"{kept}: {name}: {reason} (seed {seed!r})"]


def _over(end: float) -> bool:
    """Whether the time is over; else the next input has `LONGEST` seconds, even inside a library."""
    for timer, number, seconds in (
        (signal.ITIMER_PROF, signal.SIGPROF, LONGEST),
        (signal.ITIMER_REAL, signal.SIGALRM, 10 * LONGEST),
    ):
        signal.signal(number, signal.SIG_DFL)
        signal.setitimer(timer, seconds)
    return time.monotonic() > end


def main() -> int:
    """Fuzz for the minutes that are asked for; the exit code is 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--match", default="", help="only formats whose name contains this")
    options = parser.parse_args()
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    seed = options.seed if options.seed is not None else random.randrange(2**32)
    started = time.monotonic()
    end = started + 60 * options.minutes
    folder = Path(tempfile.mkdtemp(prefix="opencse-fuzz-"))
    (folder / "examples").mkdir()
    known = [one for one in all_formats(folder / "examples") if options.match in one.name]
    print(f"{len(known)} formats, seed {seed}, in {folder}", flush=True)
    counts: Counts = {one.name: Counter() for one in known}
    finds, rounds = 0, 0
    while time.monotonic() < end:
        until = min(end, time.monotonic() + _ROUND)
        found, messages = _round(known, folder, f"{seed} {rounds}", until)
        rounds, finds = rounds + 1, finds + len(messages)
        for name, count in found.items():
            counts[name].update(count)
        inputs, minutes = sum(count.total() for count in counts.values()), (time.monotonic() - started) / 60
        print("\n".join([f"{minutes:6.1f} min {inputs:>10,} inputs, {finds} finds", *messages]), flush=True)
    for name, count in counts.items():
        print(f"{name:<50}" + "".join(f"{count[outcome]:>10} {outcome}" for outcome in OUTCOMES))
    print(f"seed {seed}, {options.minutes:g} minutes, {finds} finds")
    return int(bool(finds))


if __name__ == "__main__":
    sys.exit(main())
