"""`opencse.compare`: runs side by side, over their seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Literal

from opencse.commands.comparison import (
    Comparison,
    RunRecord,
    compare_groups,
    find_runs,
    group_runs,
    pair_cosines,
    read_run,
)
from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import Encode, ScoredPairs, load_sts, read_pairs
from opencse.foundation.files import write_json, write_text
from opencse.text import demo


def compare(
    runs: Sequence[str | Path],
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    pairs: Sequence[str | Path] = (),
    text: Literal["senteval", "raw"] = "senteval",
    resamples: int = 1000,
) -> Comparison:
    """Group runs that differ only in their seed, and compare the groups with the first.

    Args:
        runs: Run folders, or folders that contain them; the group of the first run is the baseline.
        out: Folder for `comparison.md` and `comparison.json`; nothing is written by default.
        data: STS tasks to evaluate the models on now, which allows a bootstrap over pairs; by default the scores
            that the runs wrote are compared.
        pairs: Files of scored pairs to evaluate on instead.
        text: Text variant of the STS tasks.
        resamples: Bootstrap samples.

    Returns:
        Mean and standard deviation over seeds, differences from the baseline with an interval over pairs (paired
        bootstrap), and training times; it displays as a table in a notebook.

    Raises:
        OpencseError: A folder holds no run, or runs were scored on different tasks.
    """
    groups = group_runs([read_run(folder) for folder in find_runs([Path(run) for run in runs])])
    sets: list[ScoredPairs] = []
    cosines = None
    if data is not None or pairs:
        sets = [read_pairs(demo.pairs(path)) for path in pairs] if pairs else load_sts(str(data), text=text)
        cosines = pair_cosines({run: _loader(run) for group in groups for run in group.runs}, sets)
    comparison = compare_groups(groups, sets=sets, cosines=cosines, resamples=resamples)
    if out is not None:
        write_text(Path(out) / "comparison.md", comparison.table().markdown())
        write_json(Path(out) / "comparison.json", asdict(comparison))
    return comparison


def _loader(run: RunRecord) -> Callable[[], Encode]:
    """Return a function that loads the model of a run."""
    return lambda: Embedder(load_encoder(run.folder), precision="auto", progress=f"encode {run.folder.name}")
