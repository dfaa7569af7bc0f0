"""Progress: lines, a bar on a terminal, silence on request; and the time of parts adds up to the whole."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest

from opencse.foundation import progress
from opencse.foundation.progress import Phase, collect, duration, note, set_quiet, timed
from opencse.foundation.result_table import Number, Table, show


@pytest.fixture(autouse=True)
def _normal(monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.05)
    yield
    set_quiet(False)


def test_a_line_says_amount_share_rate_and_time_left(monkeypatch):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    phase = Phase("training", total=1800, unit="steps", initial=200, show=False)
    now += 50
    phase.update(250)
    phase.details = {"loss": "0.4312"}
    assert (
        phase.line()
        == "training: 450 of 1,800 steps (25 %), 5 steps/s, 4 min 30 s left, loss 0.4312"
    )


def test_lines_come_at_intervals_without_a_terminal_even_if_nothing_moves(capfd):
    with Phase("building", total=4, unit="rows") as phase:
        time.sleep(0.18)
        phase.update(4)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) >= 3
    assert lines[0] == "opencse: building: 0 of 4 rows (0 %)"
    assert re.fullmatch(r"opencse: building: 4 rows in \d+ s", lines[-1])


def test_a_phase_takes_its_amount_from_a_count(capfd):
    counts = [2]
    with Phase("building", total=4, unit="rows", count=lambda: counts[-1]) as phase:
        time.sleep(0.08)
        counts.append(4)
    assert phase.done == 4
    lines = capfd.readouterr().err.splitlines()
    assert "2 of 4 rows (50 %)" in lines[0]
    assert "4 rows in" in lines[-1]


def test_a_failed_phase_is_not_reported_as_done(capfd):
    with pytest.raises(ValueError), Phase("building", total=4, unit="rows"):
        time.sleep(0.12)
        raise ValueError
    assert " in " not in capfd.readouterr().err


def test_a_terminal_gets_a_bar(monkeypatch, capfd):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Phase("building", total=4, unit="rows") as phase:
        phase.update(4)
        time.sleep(0.12)
    shown = capfd.readouterr().err
    assert "\r" in shown
    assert "building" in shown
    assert "opencse:" not in shown


def test_quiet_and_short_phases_say_nothing(capfd):
    with Phase("building", total=4, unit="rows") as phase:
        phase.update(4)
    note("usual")
    set_quiet(True)
    with Phase("building", total=4, unit="rows"):
        time.sleep(0.12)
    note("something")
    assert capfd.readouterr().err == "opencse: usual\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (725, "12 min 5 s"),
        (3600, "1 h"),
        (12000, "3 h 20 min"),
    ],
)
def test_durations_have_at_most_two_units(seconds, text):
    assert duration(seconds) == text


@pytest.fixture
def clock(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def wait(seconds):
        now[0] += seconds

    return wait


def test_a_part_inside_another_counts_for_itself_and_a_whole_one_keeps_what_is_inside(clock):
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
    with collect() as timings:
        with timed("first stages"), collect(), timed("training steps"):
            clock(7)
        with timed("training steps"):
            clock(2)
    assert timings.rounded() == {"first stages": 7.0, "training steps": 2.0}


TABLE = Table(
    ("set", "pairs", "score"),
    [("a|b\n<c>", 12345, Number(-0.5, aside="n = 1")), ("mean", 2, Number(None, aside="constant"))],
    title="Scores & more",
    notes=("One note.",),
    totals=1,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Number(1234.5), "1,234.50"),
        (Number(-0.001), "0.00"),
        (Number(-1.5, 1, signed=True), "−1.5"),
        (Number(1.5, 1, signed=True, aside="1 to 2"), "+1.5 (1 to 2)"),
        (Number(71.2, 0, " %", "60 to 81"), "71 % (60 to 81)"),
        (Number(51, deviation=1.414), "51.00 ± 1.41"),
        (Number(None), "undefined"),
        (Number(None, aside="no row"), "undefined: no row"),
    ],
)
def test_figures(number: Number, text: str) -> None:
    assert str(number) == text


def test_markdown() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[:2] == ["# Scores & more", ""]
    assert lines[3] == "| --- | ---: | ---: |"
    assert lines[4] == "| a\\|b <c> | 12,345 | −0.50 (n = 1) |"
    assert lines[-1] == "- One note."


def test_html_is_escaped_and_a_cell_names_its_column() -> None:
    page = TABLE.html()
    assert "&lt;c&gt;" in page
    assert "<c>" not in page
    assert '<td class="figure" data-label="pairs"><bdi>12,345</bdi></td>' in page
    assert page.count('class="strong"') == 1
    assert TABLE._repr_html_() == page


def test_without_a_terminal_no_line_is_wrapped(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    show(
        Table(
            ("name", "text"), [("a", "word " * 60), ("b", "[bold]y[/bold]")], notes=("note " * 50,)
        ),
        "z " * 90,
    )
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 5
    assert "[bold]y[/bold]" in lines[2]


def test_a_level_that_was_set_before_the_first_use_counts() -> None:
    script = (
        "import logging, opencse\n"
        "logging.getLogger('opencse').setLevel('WARNING')\n"
        "from opencse.foundation.progress import note\n"
        "note('a detail')\n"
        "note('warning: look here')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stderr.splitlines() == ["opencse: warning: look here"]
