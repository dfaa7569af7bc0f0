"""Does a model go by meaning where wording misleads, and what did it forget? The development sets of measures.py.

In percent, by the cosine of vectors or by another similarity of them; all texts are compared, so
that nothing depends on the number of first hits:

antonyms        of a sentence ("The soup is hot."), its negated antonym ("isn't cold"), its negation
("isn't hot") and
                its antonym ("is cold"), those that `opencse probe` measures, the first two are the
                nearest; told affirmed from a predicate that is affirmed, denied from one that is
                denied, and from verbs; unseen: the first two with opposites (wording/unseen.tsv)
                that no list, frame or pattern of the training rows has
order           the area under the curve of rearranged sentences against the same words in other
roles
                (wording/order.tsv)
XNLI            the entailed sentence is nearer than the contradiction
false hits      of its contradictions, those above the threshold that nine of ten entailed sentences
pass
SICK            area under the curve of entailment against contradiction (train)
STS-B, SICK-R   Spearman x 100 on STS-B dev and SICK-R train
CLINC           nearest neighbour has the same intent (dev among train)
MRPC            the paraphrase is the nearest of all second sentences (train)
"""

from __future__ import annotations

import csv
import gzip
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from opencse.evaluation.probes import load_probe_data
from opencse.evaluation.sts import spearman
from opencse.evaluation.task import Encode, Similarity
from opencse.foundation.numbers import unit_rows

WRITTEN = Path(__file__).with_suffix("")
Quad = tuple[str, str, str, str]
"""Sentence, what means the same, and two that contradict it."""
Similar = Callable[[Sequence[str], Sequence[str]], np.ndarray]
"""Similarities of n and m texts, (n, m)."""
SURE = 0.9
"""Share of the rewordings that are to pass a cache's threshold."""
CHUNK = 64


def table(path: Path) -> list[dict[str, str]]:
    with (gzip.open if path.suffix == ".gz" else open)(
        path, "rt", encoding="utf-8", newline=""
    ) as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def quads() -> dict[str, list[Quad]]:
    """The antonym quadruples of `opencse probe`, by what the anchor is, and those with unseen opposites."""
    names, found, triplets = (
        {"negated": "denied"},
        dict[str, list[Quad]](),
        load_probe_data().triplets[-1].triplets,
    )
    for one, other in zip(triplets[::2], triplets[1::2], strict=True):
        form = names.get(one.groups["form"], one.groups["form"])
        found.setdefault(form, []).append((one.anchor, one.positive, one.negative, other.negative))
    for row in table(WRITTEN / "unseen.tsv"):
        for word, opposite in ((row["word"], row["opposite"]), (row["opposite"], row["word"])):
            said = {each: f"{row['before']} {each}{row['after']}" for each in (word, opposite)}
            denied = {each: f"{row['before']} not {each}{row['after']}" for each in said}
            found.setdefault("unseen", []).append(
                (said[word], denied[opposite], denied[word], said[opposite])
            )
            found["unseen"].append((denied[word], said[opposite], said[word], denied[opposite]))
    return found


def area(above: np.ndarray, below: np.ndarray) -> float:
    """Area under the curve, in percent."""
    return 100 * roc_auc_score(
        np.r_[np.ones(len(above)), np.zeros(len(below))], np.r_[above, below]
    )


def pairs(similar: Similar, rows: Sequence[Any], side: int = 1) -> np.ndarray:
    """Return the similarities of the first texts of rows with another one, (n,)."""
    chunks = (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))
    return np.concatenate(
        [np.diagonal(similar([r[0] for r in c], [r[side] for r in c])) for c in chunks]
    )


def right(similar: Similar, rows: Sequence[Any]) -> float:
    """Return how many second texts of rows are nearer to the first than all others, in percent."""
    others = np.max([pairs(similar, rows, side) for side in range(2, len(rows[0]))], axis=0)
    return 100 * float((pairs(similar, rows) > others).mean())


def false_hits(similar: Similar, rows: Sequence[Any]) -> tuple[float, float]:
    """Return how many contradictions, the third texts of rows, pass the threshold that `SURE` of the second do.

    Returns:
        Their share in percent, and the threshold.
    """
    threshold = float(np.quantile(pairs(similar, rows), 1 - SURE))
    return 100 * float((pairs(similar, rows, 2) >= threshold).mean()), threshold


class Development:
    """The sentences and what is asked of them."""

    def __init__(self, data: Path) -> None:
        evaluation = data / "eval"
        self.quads = quads()
        self.order = [
            (r["sentence"], r["reordered"], r["swapped"]) for r in table(WRITTEN / "order.tsv")
        ]
        nli = table(evaluation / "NLI" / "xnli_dev_en_triplets.tsv.gz")
        self.nli = [(r["sent0"], r["sent1"], r["hard_neg"]) for r in nli]
        sick = table(evaluation / "SICKR" / "train.tsv.gz")
        self.sick = {
            kind: [
                (r["sentence1"], r["sentence2"])
                for r in sick
                if r["entailment"].upper().startswith(kind)
            ]
            for kind in ("ENT", "CON")
        }
        self.sts = {"STS-B": table(evaluation / "STSB" / "dev.tsv.gz"), "SICK-R": sick}
        rng = random.Random(1)
        known, asked = (
            table(evaluation / "CLINC150" / f"{part}.tsv.gz") for part in ("train", "dev")
        )
        self.known, self.asked = rng.sample(known, 3000), rng.sample(asked, 800)
        mrpc = [r for r in table(evaluation / "MRPC" / "train.tsv.gz") if r["label"] == "1"]
        self.same = [(r["sentence1"], r["sentence2"]) for r in mrpc[:700]]
        rows = [
            *self.order,
            *self.nli,
            *self.same,
            *(row for some in self.sick.values() for row in some),
        ]
        rows += [quad for some in self.quads.values() for quad in some]
        rows += [(r["sentence1"], r["sentence2"]) for some in self.sts.values() for r in some]
        texts = [text for row in rows for text in row] + [
            r["text"] for r in (*self.known, *self.asked)
        ]
        self.texts = list(dict.fromkeys(texts))

    def measure(
        self, encode: Encode, similarity: Similarity | None = None
    ) -> dict[str, float | None]:
        """Return all figures of one model by name, by the cosine or another similarity of its vectors."""
        vectors = encode(self.texts) if similarity else unit_rows(encode(self.texts))
        place = {text: i for i, text in enumerate(self.texts)}

        def similar(texts: Sequence[str], others: Sequence[str]) -> np.ndarray:
            first, second = (vectors[[place[text] for text in each]] for each in (texts, others))
            return np.asarray(similarity(first, second)) if similarity else first @ second.T

        found: dict[str, float | None] = {
            f"antonyms, {kind}": right(similar, rows) for kind, rows in self.quads.items()
        }
        found["order, area"] = area(pairs(similar, self.order), pairs(similar, self.order, 2))
        found["XNLI"] = right(similar, self.nli)
        found["false hits"], _ = false_hits(similar, self.nli)
        found["SICK, area"] = area(*(pairs(similar, self.sick[kind]) for kind in ("ENT", "CON")))
        for name, rows in self.sts.items():
            scored = [(row["sentence1"], row["sentence2"]) for row in rows]
            found[name] = 100 * spearman(
                np.array([float(row["score"]) for row in rows]), pairs(similar, scored)
            )
        asked, known = ([row["text"] for row in part] for part in (self.asked, self.known))
        nearest = similar(asked, known).argmax(axis=1)
        same = [
            self.known[n]["label"] == row["label"]
            for n, row in zip(nearest, self.asked, strict=True)
        ]
        found["CLINC"] = 100 * float(np.mean(same))
        first, second = zip(*self.same, strict=True)
        found["MRPC"] = 100 * float(
            (similar(first, second).argmax(axis=1) == np.arange(len(first))).mean()
        )
        return found
