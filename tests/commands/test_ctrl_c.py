"""Ctrl-C in real processes: one line, exit code 130, no traceback, and nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tiny import tiny_bert
from tests.training.helpers import write_corpus
from tests.trials.processes import free_port, of_two

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


def start(
    command: list[str], folder: Path, environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start a command as a shell does: Ctrl-C reaches it and its children."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"OPENCSE_CACHE": str(folder / "cache")} | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_until(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while not condition() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    if not condition():
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(process.communicate()[1])


def interrupted(process: subprocess.Popen[str]) -> tuple[int, list[str]]:
    """Press Ctrl-C, and return the exit code and the lines of standard error."""
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=120)
    return process.returncode, said.splitlines()


def left_over(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.suffix in (".tmp", ".old")]


SUBMITS = """
import os
import signal
import time
from opencse.foundation.workers import Local

class Task:
    def open(self): ...
    def __call__(self, job):
        return job

def jobs():
    yield 1
    os.killpg(0, signal.SIGINT)  # while the first worker imports its modules
    time.sleep(30)

if __name__ == "__main__":
    try:
        list(Local(processes=2).map(Task(), jobs()))
    except KeyboardInterrupt:
        raise SystemExit(130)
"""


def test_a_worker_that_has_just_started_ends_without_a_word(tmp_path) -> None:
    (tmp_path / "script.py").write_text(SUBMITS)
    process = start([sys.executable, "script.py"], tmp_path)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "")


def test_while_the_command_line_is_imported(tmp_path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    process = start([sys.executable, "-m", "opencse", "recipes"], tmp_path, environment)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "opencse: stopped\n")


# A module that opencse imports early, and that is slow to import.
SLOW = """
import os, signal, time
os.kill(os.getpid(), signal.SIGINT)
time.sleep(30)
"""
CONSOLE_SCRIPT = "import sys; from opencse.__main__ import main; sys.exit(main())"


@pytest.mark.parametrize("command", [["-m", "opencse"], ["opencse"]], ids=["module", "script"])
def test_in_the_first_moment(tmp_path, command: list[str]) -> None:
    (tmp_path / "hashlib.py").write_text(SLOW)
    (tmp_path / "opencse").write_text(CONSOLE_SCRIPT)
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    process = start([sys.executable, *command, "recipes"], tmp_path, environment)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "opencse: stopped\n")


def test_a_program_that_imports_opencse_handles_ctrl_c_itself(tmp_path) -> None:
    (tmp_path / "hashlib.py").write_text(SLOW)
    program = "try:\n    import opencse\nexcept KeyboardInterrupt:\n    print('mine')"
    environment = {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    process = start([sys.executable, "-c", program], tmp_path, environment)
    printed, said = process.communicate(timeout=60)
    assert (printed, said) == ("mine\n", "")


BUILDING = """
[views.anchor]
[views.more]
text = "more"
[[losses]]
kind = "info_nce"
anchor = "anchor"
positive = "more"
[build.more]
kind = "deletion"
"""


def test_build(tmp_path) -> None:
    lines = [f"The cat number {i} sits in the house {i % 977}." for i in range(12_000)]
    (tmp_path / "corpus.txt").write_text("\n".join(lines))
    (tmp_path / "own.toml").write_text(BUILDING)
    options = ["--workers", "2", "-o", "out"]
    command = [sys.executable, "-m", "opencse", "build", "own.toml", "corpus.txt", *options]
    process = start(command, tmp_path)
    wait_until(lambda: list((tmp_path / "out").glob("part-*")), process)
    code, said = interrupted(process)
    assert code == 130
    assert said[-1] == "opencse: stopped"
    assert not any("Traceback" in line for line in said)
    assert left_over(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["corpus", "training"])
def test_two_processes(tmp_path, moment: str) -> None:
    rows = 200_000 if moment == "corpus" else 64
    corpus, backbone = write_corpus(tmp_path, rows), tiny_bert(tmp_path / "bert")
    command = [sys.executable, "-m", "opencse", "train", "simcse", str(corpus)]
    command += ["--backbone", str(backbone), "-o", "out", "--set", "training.epochs=10000"]
    command += ["--set", "training.batch_size=8", "--set", "training.log_every=1"]
    port = free_port()
    both = [start(command, tmp_path, of_two(rank, port)) for rank in range(2)]
    begun = tmp_path / ("out/run.json" if moment == "corpus" else "out/metrics.jsonl")
    if moment == "corpus":
        begun = tmp_path / "cache"
    wait_until(begun.exists, both[0])
    for process in both:
        os.killpg(process.pid, signal.SIGINT)
        # A launcher passes the signal on to processes that have it already.
        os.killpg(process.pid, signal.SIGINT)
    ends = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [130, 130], ends
    assert "Traceback" not in ends[0] + ends[1]
    assert ends[0].splitlines()[-1].startswith("opencse: ")
    assert ends[1] == ""
    assert left_over(tmp_path) == []
    if moment == "training":
        assert list((tmp_path / "out" / "checkpoints").glob("step-*"))
