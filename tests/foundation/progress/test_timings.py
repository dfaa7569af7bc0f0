"""Timings: parts that add up to the whole."""

import time

import pytest

from opencse.foundation.progress import collect, timed


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def wait(seconds):
        now[0] += seconds

    return wait


def test_a_part_inside_another_counts_for_itself_alone(clock):
    with collect() as timings:
        clock(1)
        with timed("training"):
            clock(10)
            with timed("development scores"):
                clock(4)
            clock(5)
        with timed("training"):
            clock(2)
    assert timings.rounded() == {"training": 17.0, "development scores": 4.0, "other": 1.0}
    assert timings.line() == "22 s in all: training 17 s, development scores 4 s, other 1 s"


def test_a_whole_part_keeps_what_is_inside_it(clock):
    with collect() as timings:
        with timed("first stages"), collect(), timed("training steps"):
            clock(7)
        with timed("training steps"):
            clock(2)
    assert timings.rounded() == {"first stages": 7.0, "training steps": 2.0}
