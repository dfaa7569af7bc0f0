"""Commands in child processes of their own, which can be limited and killed; and what they leave."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

MEETING = timedelta(seconds=30)
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}


def start(
    work: Path,
    arguments: list[str] | Callable[[Path], list[str]],
    prepare: Callable[[], object] = lambda: None,
    *,
    cache: Path | None = None,
    environment: Mapping[str, str | None] | None = None,
    words: str = "words",
) -> int:
    """Run a command in a child process, in a folder that has its output; return the number of the process.

    Args:
        work: The folder; what the command says is appended to files there.
        arguments: The arguments of the command, or what makes them, and files beside it, given the
            folder.
        prepare: Called last, in the child: limits on the process.
        cache: Its cache; by default one in the folder.
        environment: Variables to set; None removes one.
        words: Name of the file with what it says on standard error; `-out` is added for standard
            output.
    """
    work.mkdir(parents=True, exist_ok=True)
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        os.chdir(work)
        os.environ["OPENCSE_CACHE"] = str(cache or work / "cache")
        arguments = arguments if isinstance(arguments, list) else arguments(work)
        for name, value in (environment or {}).items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        if environment:
            _forget_processes()
        signal.signal(
            signal.SIGINT, signal.default_int_handler
        )  # shells start background processes without it
        for number, name in ((1, f"{words}-out"), (2, words)):
            os.dup2(os.open(work / name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
        prepare()
        from opencse.commands.main import main as command_line

        sys.argv = ["opencse", *arguments]
        command_line()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 1
        os._exit(code)


def wait_for(child: int, seconds: float) -> int | None:
    """The exit code (negative for a signal), or None where the time ran out and the child was killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def of_two(rank: int, port: int, count: int = 2) -> dict[str, str]:
    """The variables with which `torchrun --nproc_per_node 2` starts the process of this rank on a CPU."""
    variables = {
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": count,
        "LOCAL_WORLD_SIZE": count,
        "MASTER_PORT": port,
    }
    return {name: str(value) for name, value in variables.items()} | {"MASTER_ADDR": "127.0.0.1"}


def _forget_processes() -> None:
    """Let accelerate read the variables again: the parent process has trained alone. They have less time to meet."""
    from accelerate.state import AcceleratorState, PartialState

    from opencse.encoder import device

    device._MEETING = MEETING
    AcceleratorState._reset_state()
    PartialState._reset_state()


def free_port() -> int:
    """A port that no process listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def limit_files(size: int) -> Callable[[], None]:
    """A limit on the size of each file that is written, which stands for a full disk."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def limit_memory(more: int) -> Callable[[], None]:
    """A limit on the data of the process: so many bytes more than it has."""

    def limit() -> None:
        lines = Path("/proc/self/status").read_text().splitlines()
        used = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmData:"))
        resource.setrlimit(resource.RLIMIT_DATA, (used + more, used + more))

    return limit


def ends_clearly(words: Path) -> bool:
    """Whether the last thing that a command said is one line about what is wrong, without a traceback."""
    text = words.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.replace("\r", "\n").split("\n") if line.strip()]
    unforeseen = "Traceback (most recent call last)", "an unexpected failure"
    return (
        bool(lines)
        and lines[-1].startswith("opencse: ")
        and not any(words in text for words in unforeseen)
    )


def result(work: Path) -> bytes:
    """What a command is for: weights, views or scores, without times."""
    for pattern in ("out/model/model.safetensors", "out/part-*.parquet", "out/scores.json"):
        if found := sorted(work.glob(pattern)):
            content = b"".join(path.read_bytes() for path in found)
            return content if not pattern.endswith("json") else content.split(b'"seconds"')[0]
    return b""
