"""Processes of this machine: results in order, and an end with a clear error whatever happens to a worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.workers import Local


class Double:
    """Twice the job; 0 is refused, and -1 kills the process."""

    def open(self) -> None: ...

    def __call__(self, job: int) -> int:
        if job == 0:
            raise OpencseError("0 cannot be doubled")
        if job < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * job


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_the_jobs(processes: int) -> None:
    assert list(Local(processes=processes).map(Double(), range(1, 20))) == [(i, 2 * i) for i in range(1, 20)]


def test_the_error_of_a_job_reaches_the_caller() -> None:
    with pytest.raises(OpencseError, match="0 cannot be doubled"):
        list(Local(processes=2).map(Double(), [1, 0, 2]))


def test_a_killed_worker_is_an_error_and_not_a_wait_without_end() -> None:
    with pytest.raises(OpencseError, match="a worker process ended"):
        list(Local(processes=2).map(Double(), [1, -1, 2]))


def test_workers_end_when_their_caller_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os, pathlib, time\n"
        "from opencse.foundation.workers import Local\n"
        "class Sleeper:\n"
        "    def open(self): pass\n"
        "    def __call__(self, job):\n"
        "        pathlib.Path(f'{job}.pid').write_text(str(os.getpid()))\n"
        "        time.sleep(600)\n"
        "if __name__ == '__main__':\n"
        "    list(Local(processes=2).map(Sleeper(), [1, 2]))\n"
    )
    caller = subprocess.Popen([sys.executable, script], cwd=tmp_path)
    notes = [tmp_path / "1.pid", tmp_path / "2.pid"]
    assert _within(120, lambda: all(note.is_file() and note.read_text() for note in notes))
    caller.kill()
    caller.wait()
    workers = [int(note.read_text()) for note in notes]
    assert _within(60, lambda: not any(map(_runs, workers)))


def _within(seconds: float, reached: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while not reached() and time.monotonic() < end:
        time.sleep(0.1)
    return reached()


def _runs(process: int) -> bool:
    """Whether a process is there and no zombie, which nobody may have waited for."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_caller_may_stop_early() -> None:
    results = Local(processes=2).map(Double(), range(1, 1000))
    assert next(iter(results)) == (1, 2)
    results.close()  # type: ignore[attr-defined]


def test_a_script_without_a_main_guard_ends_with_the_remedy(tmp_path) -> None:  # type: ignore[no-untyped-def]
    script = tmp_path / "script.py"
    script.write_text(
        "from opencse.foundation.workers import Local\n"
        "class Same:\n"
        "    def open(self): pass\n"
        "    def __call__(self, job): return job\n"
        "list(Local(processes=2).map(Same(), [1, 2]))\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode
    lines = [
        line for line in ended.stderr.splitlines() if "resource_tracker" not in line
    ]  # it may warn at the very end
    assert "if __name__ == '__main__':" in lines[-1]
