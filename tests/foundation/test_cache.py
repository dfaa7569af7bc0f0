from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from opencse.foundation.cache import KINDS, cache_place, cache_root, cache_sizes, clear_cache, trim_cache
from opencse.foundation.errors import OpencseError

DAY = 24 * 3600
A, B = 32 * "a", 32 * "b"


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))


def store(kind, name, size, days):
    path = cache_root() / kind / name
    path.mkdir(parents=True)
    (path / "data").write_bytes(bytes(size))
    used = time.time() - days * DAY
    os.utime(path, (used, used))
    return path


def test_the_longest_unused_go_until_the_rest_fits(monkeypatch) -> None:
    new, old, oldest = (store("tokens", f"{days:032}", 100, days) for days in (2, 3, 4))
    file = cache_root() / "inputs" / f"texts-{A}.parquet"
    file.parent.mkdir()
    file.write_bytes(bytes(100))
    os.utime(file, (0, 0))
    monkeypatch.setenv("OPENCSE_CACHE_GIB", str(250 / 2**30))
    trim_cache()
    assert [path.exists() for path in (new, old, oldest, file)] == [True, True, False, False]


def test_what_was_used_within_a_day_stays(monkeypatch) -> None:
    path = store("tokens", A, 100, 0.5)
    monkeypatch.setenv("OPENCSE_CACHE_GIB", "0")
    trim_cache()
    assert path.exists()


def test_asking_for_a_store_counts_as_use_and_for_a_new_one_makes_room(monkeypatch) -> None:
    asked, other = store("tokens", A, 100, 3), store("tokens", B, 100, 2)
    monkeypatch.setenv("OPENCSE_CACHE_GIB", "1e-7")  # 107 bytes
    assert cache_place("tokens", A) == asked
    assert other.exists(), "nothing new, so nothing goes"
    assert not cache_place("teachers", "c").exists()
    assert asked.exists()
    assert not other.exists()


@pytest.mark.parametrize(("kind", "name"), [("tokens", f".{A}.tmp"), ("pip", A), ("tokens", "mine")])
def test_what_is_being_written_and_what_others_keep_there_is_left_alone(kind, name, monkeypatch) -> None:
    path = store(kind, name, 100, 5)
    monkeypatch.setenv("OPENCSE_CACHE_GIB", "0")
    trim_cache()
    assert path.exists()


def test_a_limit_that_is_no_number_is_one_line(monkeypatch) -> None:
    monkeypatch.setenv("OPENCSE_CACHE_GIB", "much")
    with pytest.raises(OpencseError, match="OPENCSE_CACHE_GIB"):
        cache_place("tokens", "a")


def test_the_folder_is_that_of_the_system(monkeypatch) -> None:
    monkeypatch.delenv("OPENCSE_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_root() == Path("/caches/opencse")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == Path.home() / ".cache" / "opencse"


def test_sizes_and_clearing_leave_files_of_others_and_the_targets_of_links_alone(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path))
    for folder in ("vectors", "mine", "elsewhere"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / A).write_bytes(b"x" * 100)
    (tmp_path / "vectors" / "my-data.csv").write_text("x")
    (tmp_path / "tokens").symlink_to(tmp_path / "elsewhere")
    assert cache_sizes() == {kind: 100 * (kind == "vectors") for kind in KINDS}
    assert clear_cache() == 100
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {f"mine/{A}", f"elsewhere/{A}", "vectors/my-data.csv"}
