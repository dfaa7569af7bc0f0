from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_locked_versions_are_those_of_the_constraints() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    unlocked = re.search(r"^UNLOCKED := (.+)$", makefile, re.MULTILINE)
    assert unlocked is not None
    constraints = {_pin(line) for line in _lines("constraints.txt")}
    kept = {pin for pin in constraints if pin.partition("==")[0] not in unlocked[1].split("|")}
    locked = {
        _pin(line.partition(" ")[0]) for line in _lines("locked.txt") if not line.startswith(" ")
    }
    assert locked == kept, "run `make lock`"


def test_every_locked_version_has_hashes_and_no_address() -> None:
    text = "\n".join(_lines("locked.txt"))
    entries = re.split(r"\n(?! )", text)
    assert all(
        re.fullmatch(r"\S+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+", entry) for entry in entries
    )


def test_every_action_is_pinned_by_the_hash_of_one_commit() -> None:
    used: dict[str, set[str]] = {}
    for workflow in (ROOT / ".github" / "workflows").glob("*.yml"):
        for action, pin in re.findall(r"uses: (\S+?)@(.+)", workflow.read_text(encoding="utf-8")):
            assert re.fullmatch(r"[0-9a-f]{40} # v\d+\.\d+\.\d+", pin), (
                f"{workflow.name}: {action}@{pin}"
            )
            used.setdefault(action, set()).add(pin)
    assert used
    assert all(len(pins) == 1 for pins in used.values())


def _lines(name: str) -> list[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def _pin(line: str) -> str:
    name, _, version = line.partition("==")
    return f"{name.lower().replace('_', '-').replace('.', '-')}=={version}"
