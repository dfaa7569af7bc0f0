"""Development sets: scored pairs that choose the step of a training whose weights are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from opencse.evaluation.pairs import ScoredPairs, read_pairs
from opencse.evaluation.sts_sources import load_sts
from opencse.foundation.errors import OpencseError
from opencse.text import demo


def development_sets(
    dev: str | Path | None, data: str | Path | None, tasks: Sequence[str] = ("STS-B",)
) -> list[ScoredPairs]:
    """Read the sets of scored pairs that `--dev` names.

    Args:
        dev: A file of scored pairs, `demo`, `stsb` (STS-B dev below `data`), `none`, or None for `tasks` if there is
            `data`.
        data: The STS files.
        tasks: The development sets that the recipe names (`Selection.tasks`).

    Returns:
        The sets, whose mean score counts; empty if there are none.

    Raises:
        OpencseError: A file cannot be read, or `stsb` is asked for without `data`.
    """
    if str(dev) == "none" or (dev is None and data is None):
        return []
    if (file := development_file(dev)) is not None:
        return [read_pairs(file)]
    if data is None:
        raise OpencseError("--dev stsb needs the STS files", "Pass --data, or a file of scored pairs as --dev.")
    if dev is not None or str(data) == "hub":  # the hub has no other development set
        tasks = ["STS-B"]
    return load_sts(data, text=sts_text(data), tasks=list(tasks), split="dev")


def development_file(dev: str | Path | None) -> Path | None:
    """Return the file that `--dev` names; None for None, `none` and `stsb`."""
    return None if dev is None or str(dev) in ("none", "stsb") else demo.pairs(dev)


def sts_text(data: str | Path | None) -> Literal["senteval", "raw"]:
    """Return the text variant to read: `raw` from the hub, which has no other, otherwise that of published scores."""
    return "raw" if str(data) == "hub" else "senteval"
