"""Nothing that a stranger wrote steers the terminal."""

from __future__ import annotations

import io
import logging
import re
import warnings
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

import opencse
from opencse.commands.main import main
from opencse.foundation import terminal
from opencse.foundation.progress import note
from opencse.foundation.result_table import Table, show
from opencse.foundation.terminal import Printable, escape_messages_of_libraries, printable

EVIL = "a\x1b]0;title\x07\x9b2J\u202eb\r"
SHOWN = r"a\x1b]0;title\x07\x9b2J\u202eb\r"


def test_characters_that_steer_are_shown_and_others_stay() -> None:
    assert printable(EVIL) == SHOWN
    assert printable("naïve „état“ 日本 👩‍👧\tx\n") == "naïve „état“ 日本 👩‍👧\tx\n"
    assert printable("a\nopencse: done", one_line=True) == r"a\nopencse: done"
    assert printable("\udcff\U000e0041") == r"\udcff\U000e0041"


def test_tables_and_notes(capsys) -> None:
    show(Table((EVIL, "n"), [(EVIL, 3)], title=EVIL, notes=[EVIL]), Text(EVIL))
    note(f"{EVIL}\nopencse: all is well")
    printed = capsys.readouterr()
    assert printed.out.isascii()
    assert "\x1b" not in printed.out
    assert printed.out.count(r"\x1b]0;title") == 5
    assert printed.err == f"opencse: {SHOWN}\\nopencse: all is well\n"


def test_colors_of_tables_stay() -> None:
    file = io.StringIO()
    Console(file=file, force_terminal=True, color_system="standard").print(
        Printable(Text(EVIL, style="red"))
    )
    assert file.getvalue().startswith("\x1b[31m")
    assert "\x1b]0" not in file.getvalue()


def test_messages_of_libraries() -> None:
    escape_messages_of_libraries()
    stream = io.StringIO()
    logger = logging.Logger("a library")
    logger.addHandler(logging.StreamHandler(stream))
    logger.warning("model type %s", EVIL)
    assert stream.getvalue() == f"model type {SHOWN}\n"
    assert SHOWN in warnings.formatwarning(EVIL, UserWarning, "file.py", 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", f"{EVIL}.toml", "demo", "--backbone", "minilm", "-o", "out"],
        ["run", EVIL, "--backbone", "minilm", "-o", "out"],
        [EVIL],
        ["check", f"{EVIL}-model", "--texts", "demo"],
    ],
)
def test_names_on_the_command_line(monkeypatch, capfd, arguments) -> None:
    monkeypatch.setattr("sys.argv", ["opencse", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    printed = capfd.readouterr().err
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", printed)
    assert r"\x1b]0;title" in printed


def test_nothing_is_printed_elsewhere() -> None:
    """One place prints, so that no other can forget to escape."""
    prints = re.compile(r"(?<![\w.>])print\(|typer\.echo\(|\bstd(out|err)\.write\(")
    source = Path(opencse.__file__).parent
    found = [
        f"{path.name}: {line.strip()}"
        for path in source.rglob("*.py")
        if path != Path(terminal.__file__)
        for line in path.read_text(encoding="utf-8").splitlines()
        if prints.search(line) and ">>>" not in line and "..." not in line
    ]
    assert found == ["corpus.py: print(corpus.columns, next(corpus.texts()))"]  # a docstring


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("place", ["full", "closed"])
def test_a_message_that_cannot_be_shown_changes_no_exit_code(monkeypatch, place) -> None:
    stream = open("/dev/full", "w", encoding="utf-8", buffering=1) if place == "full" else None  # noqa: SIM115
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("sys.argv", ["opencse", "nonsense"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
