"""Processes of this machine: results in order, and an end with a clear error whatever happens to a worker."""

from __future__ import annotations

import hashlib
import logging
import os
import random
import subprocess
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.workers import Local, Ray
from opencse.text.corpus import Corpus
from opencse.text.views import builder
from opencse.text.views.builder import UNIT
from opencse.text.views.registry import DebiasedNegatives, Deletion, build_views
from tests.foundation.worker_tasks import DieOnce, Double, SeesGpu
from tests.tiny import WORDS, saved_encoder


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_the_order_of_the_jobs(processes: int) -> None:
    assert list(Local(processes=processes).map(Double(), range(1, 20))) == [
        (i, 2 * i) for i in range(1, 20)
    ]


def test_work_for_gpus_gets_one_process_for_each(monkeypatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,5")
    results = [seen for _, seen in Local(processes=4).map(SeesGpu(), range(8))]
    assert set(results) == {"3", "5"}


def test_only_usable_cores_count(monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2, 7}, raising=False)
    assert Local().workers == 3
    assert Local(processes=2).workers == 2


def test_errors_and_kills_of_workers_reach_the_caller() -> None:
    with pytest.raises(OpencseError, match="0 cannot be doubled"):
        list(Local(processes=2).map(Double(), [1, 0, 2]))
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
    ended = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode
    lines = [
        line for line in ended.stderr.splitlines() if "resource_tracker" not in line
    ]  # it may warn at the very end
    assert "if __name__ == '__main__':" in lines[-1]


try:
    import ray
except ImportError:
    ray = None  # type: ignore[assignment]

needs_ray = pytest.mark.skipif(ray is None, reason="the extra `ray` is not installed")
ROWS = UNIT  # of a part


def hashes(folder: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.glob("*.parquet"))
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    chance = random.Random(0)
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text(
        "\n".join(
            " ".join(chance.choices(WORDS, k=chance.randint(2, 14))) for _ in range(6 * ROWS + 7)
        )
    )
    return path


@pytest.fixture(scope="module")
def encoder(tmp_path_factory) -> str:
    return str(saved_encoder(tmp_path_factory.mktemp("encoder")))


@pytest.fixture(scope="module", autouse=True)
def _environment():
    """Workers find the package and this file; Ray's usual niceness of 15 would starve them on a busy machine."""
    here = Path(__file__).resolve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            "PYTHONPATH", os.pathsep.join(map(str, (here.parents[2] / "src", here.parents[2])))
        )
        patch.setenv("RAY_worker_niceness", "0")
        patch.setattr(builder, "PART_ROWS", 1)
        yield


@pytest.fixture(scope="module")
def cluster(_environment):
    yield Ray(processes=2)
    ray.shutdown()


def specs(encoder: str) -> dict:
    return {
        "shorter": Deletion(),
        "less": Deletion(share=0.2),
        "negative": DebiasedNegatives(model=encoder, window=(0.3, 0.95), pool=50, block=500),
    }


def test_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(OpencseError, match=r"opencse\[ray\]"):
        list(Ray().map(None, [1]))  # type: ignore[arg-type]


def test_an_unreachable_cluster_is_one_line_that_names_the_token(monkeypatch):
    def init(**_: object) -> None:
        raise ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379\nmore")

    stand_in = types.ModuleType("ray")
    stand_in.is_initialized = lambda: False  # type: ignore[attr-defined]
    stand_in.init = init  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    monkeypatch.setitem(sys.modules, "ray.data", types.ModuleType("ray.data"))
    with pytest.raises(OpencseError, match="no cluster at '10\\.0") as error:
        list(Ray(address="10.0.0.1:6379").map(Double(), [1]))
    assert "auth_token" in error.value.remedy
    # Ray would warn at every build that its own progress bars are off.
    assert not logging.getLogger("ray.data._internal.progress").isEnabledFor(logging.WARNING)


@needs_ray
@pytest.mark.slow
def test_same_bytes_as_local(corpus, encoder, cluster, tmp_path, monkeypatch):
    build_views(Corpus(corpus), specs(encoder), tmp_path / "local", engine=Local(processes=1))
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))  # embedded again, by Ray
    build_views(Corpus(corpus), specs(encoder), tmp_path / "ray", engine=cluster)
    assert hashes(tmp_path / "ray") == hashes(tmp_path / "local")
    build_views(Corpus(corpus), specs(encoder), tmp_path / "again", engine=Local(processes=1))
    assert hashes(tmp_path / "again") == hashes(tmp_path / "local")


@needs_ray
@pytest.mark.slow
def test_worker_killed(cluster, tmp_path):
    assert list(cluster.map(DieOnce(tmp_path), range(8))) == [(job, 10 * job) for job in range(8)]
    assert (tmp_path / "died").exists()
    assert len(list(tmp_path.glob("done-*"))) == 8


DRIVER = """
import sys
from opencse.foundation.workers import Ray
from opencse.text.corpus import Corpus
from opencse.text.views import builder
from opencse.text.views.registry import Deletion, build_views
builder.PART_ROWS = 1
specs = {"shorter": Deletion(), "less": Deletion(share=0.2)}
build_views(Corpus(sys.argv[1]), specs, sys.argv[2], engine=Ray(processes=2))
print("finished")
"""


@needs_ray
@pytest.mark.slow
def test_driver_killed(corpus, cluster, tmp_path):
    plain = {"shorter": Deletion(), "less": Deletion(share=0.2)}
    build_views(Corpus(corpus), plain, tmp_path / "expected", engine=Local(processes=1))
    out, command = (
        tmp_path / "views",
        [sys.executable, "-c", DRIVER, str(corpus), str(tmp_path / "views")],
    )
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
    deadline = time.time() + 200
    while not list(out.glob("part-*.parquet")) and time.time() < deadline:
        time.sleep(0.01)
    process.kill()
    assert b"finished" not in process.communicate()[0]
    left = set(hashes(out))
    assert left
    assert left < set(hashes(tmp_path / "expected"))
    build_views(Corpus(corpus), plain, out, engine=cluster)
    assert hashes(out) == hashes(tmp_path / "expected")
