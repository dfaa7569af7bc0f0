"""What users do, in one call each: train a recipe; or build, train, evaluate before and after, and summarise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse import demo
from opencse.errors import OpencseError
from opencse.recipes import Recipe, family_of, load_recipe
from opencse.training import Run
from opencse.training import train as train_run
from opencse.training.folder import check_folder, write_json

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from opencse.evaluation import ScoredPairs

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """What `run` came to.

    Attributes:
        run: The training run.
        before: Scores of the untouched backbone, by task.
        after: Scores of the trained model, by task.
    """

    run: Run
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)


def train(
    recipe: str | Path | Recipe,
    corpus: str | Path,
    *,
    backbone: str | Path,
    out: str | Path,
    dev: str | Path | None = None,
    data: str | Path | None = None,
    tell: Tell = lambda _: None,
    **options: Any,
) -> Run:
    """Train a sentence encoder; see `opencse.training.train` for the further options.

    Args:
        recipe: A name, a TOML file, or a resolved recipe.
        corpus: Raw sentences in any format of `opencse.text`, or `"demo"`.
        backbone: A folder, a hub id or a bundled name.
        out: The run's folder.
        dev: Scored pairs that choose the best step: a file, `"stsb"` (STS-B dev below `data`) or `"none"`. By default
            STS-B dev where `data` is given, and none otherwise.
        data: The STS files (`opencse.evaluation`).
        tell: Receives short notes for the user.
        **options: `variant`, `overrides`, `resume`, `overwrite`, `track`, `progress`.

    Raises:
        OpencseError: Anything that the user can mend.
    """
    pairs = _dev_pairs(dev, data, tell)
    return train_run(
        recipe,
        demo.corpus(corpus),
        backbone=backbone,
        out=out,
        dev=None if pairs is None else lambda encoder: _dev_scorer(encoder, pairs),
        tell=tell,
        **options,
    )
