"""From model names and data on disk to findings, and what they depend on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.loading import is_sentence_transformer, load_encoder
from opencse.encoder.precision_choice import describe, model_config
from opencse.encoder.weights_hash import pooling_name, weights_hash
from opencse.errors import OpencseError
from opencse.evaluation import DEVELOPMENT_SETS, TripletSet, development_set, read_pairs
from opencse.evaluation.listed_opposites import group_by_listed
from opencse.evaluation.sources import Text
from opencse.models import resolve
from opencse.probing.probe import Findings, Material, Prober
from opencse.probing.sentences import packaged, read_sentences
from opencse.probing.sets import load_probe_sts
from opencse.progress import note


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Material, and what a reader should know of it."""

    material: Material
    notes: tuple[str, ...]


def gather(
    *,
    data: str | Path | None = None,
    pairs: Sequence[str | Path] = (),
    sentences: str | Path | None = None,
    text: Text = "senteval",
    limit: int = 2000,
) -> Gathered:
    """Read what models are to be probed on.

    Args:
        data: STS tasks, as for `opencse.evaluation.load_sts`; None for none.
        pairs: Files of scored pairs.
        sentences: Sentences with transformations or built views (`opencse.probing.read_sentences`); None for those
            that come with the package.
        text: The text variant of the STS tasks.
        limit: Sentences that are taken.

    Raises:
        OpencseError: Anything wrong with a file, naming file and line.
    """
    notes = []
    own = read_sentences(packaged() if sentences is None else sentences, limit=limit)
    notes.append(
        f"Sentences: {'those that come with opencse' if sentences is None else own.name}, {len(own)}"
        + (f" of {own.total}, drawn by chance." if own.total > len(own) else ".")
    )
    sets = None if data is None else load_probe_sts(data, text=text)
    if sets is None:
        notes.append("No STS data was given (--data), so that agreement with people was not measured on it.")
    else:
        notes.append(f"STS text: {sets.tasks[0].text}. Published figures are for senteval, tokenised and lower-cased.")
        notes += [f"Not among the STS sets: {name} ({reason})." for name, reason in sets.lacking.items()]
    material = Material(
        sts=() if sets is None else sets.tasks,
        split_sets=() if sets is None else sets.split_sets,
        pairs=[read_pairs(path) for path in pairs],
        sentences=own,
        views=None if sentences is None else own,
        triplets=_written() if sentences is None else (),
    )
    return Gathered(material=material, notes=tuple(notes))


def _written() -> list[TripletSet]:
    """Return the development sets, and the first of them by whether training has seen the opposites."""
    sets = [development_set(name) for name in DEVELOPMENT_SETS]
    return [*sets, group_by_listed(sets[0])]


def probe_models(
    models: Sequence[str], material: Material, *, precision: Precision = "auto", pooling: str | None = None
) -> tuple[dict[str, Findings], dict[str, dict[str, Any]]]:
    """Probe models one after another; only one is in memory at a time.

    Args:
        models: Folders, hub ids, bundled names or folders of runs.
        material: What to probe on.
        precision: See `Embedder`.
        pooling: For encoders without a pooling of their own.

    Returns:
        Findings by short name, and for each what its figures depend on.
    """
    prober = Prober(material)
    findings: dict[str, Findings] = {}
    settings: dict[str, dict[str, Any]] = {}
    for name, label in zip(models, short_names(models), strict=True):
        own = pooling is None or is_sentence_transformer(resolve(name))
        model = load_encoder(name, pooling="backbone" if own else str(pooling))
        note(f"probing {label} {describe(precision, model_config(model), model.device)}")
        embedder = Embedder(model, precision=precision, progress=f"encode {label}")
        findings[label] = prober(embedder)
        settings[label] = {
            "model": name,
            "weights sha256": weights_hash(model),
            "pooling": pooling_name(model),
            "dimension": embedder.dimension,
            "maximum length": model.max_seq_length,
            "prompt": embedder.prompt or "none",
            "precision": embedder.precision,
            "texts encoded": len(prober.texts),
            "seconds": round(findings[label].seconds, 1),
        }
    return findings, settings


def short_names(models: Sequence[str]) -> list[str]:
    """The end of each name: as many parts of its path as tell it from the others, without a last `model`.

    Raises:
        OpencseError: A model is named twice.
    """
    parts = []
    for name in models:
        path = Path(name)
        pieces = path.resolve().parts if os.path.isdir(path) else path.parts
        parts.append(pieces[:-1] if pieces[-1:] == ("model",) and len(pieces) > 1 else pieces)
    if len(set(parts)) < len(parts):
        name = next(name for name, pieces in zip(models, parts, strict=True) if parts.count(pieces) > 1)
        raise OpencseError(f"the model {name} is named twice", "Name it once.")
    for count in range(1, max(map(len, parts), default=1)):
        short = ["/".join(pieces[-count:]) for pieces in parts]
        if len(set(short)) == len(short):
            return short
    return ["/".join(pieces) for pieces in parts]
