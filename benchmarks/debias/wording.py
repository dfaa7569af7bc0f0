"""What `debias` is tuned on: does a model go by meaning where wording misleads, and what did it forget?

    python benchmarks/debias/wording.py DATA MODEL... [--views VIEWS]
    python benchmarks/debias/wording.py DATA minilm 'OUT/debias/seed-*/model'   # mean ± sd over seeds

All of it is development data. In percent, unless it says otherwise:

antonyms        of a sentence ("The soup is hot."), its negated antonym ("isn't cold"), its negation ("isn't hot") and
                its antonym ("is cold"), those that `opencse probe` measures, the first two are the nearest; told
                affirmed from a predicate that is affirmed, denied from one that is denied, and from verbs
order           a sentence is nearer to its rearrangement than to the same words in other roles, and the area under the
                curve of rearranged against other roles (wording/order.tsv)
probe           of `opencse probe`'s sentences the paraphrase is nearer than the negation: where the negation has other
                negative words than the sentence ("not", "no", "never", …), and where it has none ("rejected")
views           the same area for held-out sentences of VIEWS (`opencse build` with `reordered` and `swapped`)
XNLI            the entailed sentence is nearer than the contradiction
SICK            area under the curve of entailment against contradiction (train)
STS-B, SICK     Spearman x 100 on STS-B dev and SICK-R train; Oppn. and Cont. on STS-B dev (x 1)
CLINC           nearest neighbour has the same intent (dev among train)
MRPC            the paraphrase is the nearest of all second sentences (train)
"""

from __future__ import annotations

import argparse
import csv
import glob
import gzip
import random
import re
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np

WRITTEN = Path(__file__).with_suffix("")
NEGATIVE = re.compile(r"\b(?:not|no|never|none|nobody|nothing|nor|neither|without|cannot)\b|n't", re.IGNORECASE)
Quad = tuple[str, str, str, str]
"""Sentence, what means the same, and two that contradict it."""


def table(path: Path) -> list[dict[str, str]]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def quads() -> dict[str, list[Quad]]:
    """The antonym quadruples of `opencse probe`, by what the anchor is."""
    from opencse.evaluation.probes import load_probe_data

    names, found, triplets = {"negated": "denied"}, dict[str, list[Quad]](), load_probe_data().triplets[-1].triplets
    for one, other in zip(triplets[::2], triplets[1::2], strict=True):
        form = names.get(one.groups["form"], one.groups["form"])
        found.setdefault(form, []).append((one.anchor, one.positive, one.negative, other.negative))
    return found


def area(above: np.ndarray, below: np.ndarray) -> float:
    """Area under the curve, in percent."""
    from sklearn.metrics import roc_auc_score

    return 100 * roc_auc_score(np.r_[np.ones(len(above)), np.zeros(len(below))], np.r_[above, below])


def embedder(model: str) -> Callable[[list[str]], np.ndarray]:
    """What encodes sentences by a model, in the precision that is the faster one here."""
    from opencse.encoder import load_encoder
    from opencse.encoder.embedder import Embedder

    return Embedder(load_encoder(model, pooling="backbone"), precision="auto").encode


class Development:
    """The sentences and what is asked of them."""

    def __init__(self, data: Path, views: Path | None) -> None:
        import opencse
        from opencse.text.corpus import Corpus

        evaluation = data / "eval"
        self.quads = quads()
        self.order = [(r["sentence"], r["reordered"], r["swapped"]) for r in table(WRITTEN / "order.tsv")]
        self.probe: dict[str, list[tuple[str, str, str]]] = {"negative words": [], "others": []}
        for r in table(Path(opencse.__file__).parent / "assets" / "probe" / "transformations.tsv"):
            same = len(NEGATIVE.findall(r["sentence"])) == len(NEGATIVE.findall(r["negation"]))
            self.probe["others" if same else "negative words"].append((r["sentence"], r["paraphrase"], r["negation"]))
        rows = list(Corpus(views).rows(["text", "reordered", "swapped"])) if views else []
        self.reordered = [(text, other) for text, other, _ in rows if other]
        self.swapped = [(text, other) for text, _, other in rows if other]
        nli = table(evaluation / "NLI" / "xnli_dev_en_triplets.tsv.gz")
        self.nli = [(r["sent0"], r["sent1"], r["hard_neg"]) for r in nli]
        sick = table(evaluation / "SICKR" / "train.tsv.gz")
        self.sick = {
            kind: [(r["sentence1"], r["sentence2"]) for r in sick if r["entailment"].upper().startswith(kind)]
            for kind in ("ENT", "CON")
        }
        self.sts = {"STS-B": table(evaluation / "STSB" / "dev.tsv.gz"), "SICK-R": sick}
        rng = random.Random(1)
        known, asked = (table(evaluation / "CLINC150" / f"{part}.tsv.gz") for part in ("train", "dev"))
        self.known, self.asked = rng.sample(known, 3000), rng.sample(asked, 800)
        mrpc = [r for r in table(evaluation / "MRPC" / "train.tsv.gz") if r["label"] == "1"]
        self.same = [(r["sentence1"], r["sentence2"]) for r in mrpc[:700]]
        pairs = [*self.order, *self.reordered, *self.swapped, *self.nli, *self.same]
        pairs += [pair for part in (*self.sick.values(), *self.probe.values()) for pair in part]
        pairs += [quad for part in self.quads.values() for quad in part]
        pairs += [(r["sentence1"], r["sentence2"]) for part in self.sts.values() for r in part]
        texts = [text for pair in pairs for text in pair] + [r["text"] for r in (*self.known, *self.asked)]
        self.texts = list(dict.fromkeys(texts))

    def measure(self, encode: Callable[[list[str]], np.ndarray]) -> dict[str, float]:
        """All figures of one model."""
        from opencse.evaluation.sts import spearman
        from opencse.text.surface import consistency_opposition

        matrix = encode(self.texts)
        matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        place = {text: i for i, text in enumerate(self.texts)}

        def cosines(pairs: list[tuple[str, str]]) -> np.ndarray:
            first, second = (matrix[[place[pair[side]] for pair in pairs]] for side in (0, 1))
            return (first * second).sum(axis=1)

        def right(near: np.ndarray, *far: np.ndarray) -> float:
            return 100 * float(np.mean(near > np.max(far, axis=0)))

        def side(rows: list[tuple[str, ...]], i: int) -> np.ndarray:
            return cosines([(row[0], row[i]) for row in rows])

        found = {f"antonyms, {kind}": right(*(side(rows, i) for i in (1, 2, 3))) for kind, rows in self.quads.items()}
        near, far = side(self.order, 1), side(self.order, 2)
        found |= {"order": right(near, far), "order, area": area(near, far)}
        found |= {f"probe, {kind}": right(side(rows, 1), side(rows, 2)) for kind, rows in self.probe.items()}
        if self.reordered and self.swapped:
            found["views, area"] = area(cosines(self.reordered), cosines(self.swapped))
        found["XNLI"] = right(side(self.nli, 1), side(self.nli, 2))
        found["SICK, area"] = area(cosines(self.sick["ENT"]), cosines(self.sick["CON"]))
        for name, rows in self.sts.items():
            cosine = cosines([(r["sentence1"], r["sentence2"]) for r in rows])
            gold = np.array([float(r["score"]) for r in rows])
            found[name] = 100 * spearman(gold, cosine)
            if name == "STS-B":
                split = consistency_opposition([r["sentence1"] for r in rows], [r["sentence2"] for r in rows], gold)
                for part, chosen in (("Oppn.", ~split.consistent), ("Cont.", split.consistent)):
                    found[part] = spearman(gold[chosen], cosine[chosen])
        known, asked = (matrix[[place[r["text"]] for r in part]] for part in (self.known, self.asked))
        nearest = (asked @ known.T).argmax(axis=1)
        found["CLINC"] = 100 * float(
            np.mean([self.known[n]["label"] == r["label"] for n, r in zip(nearest, self.asked, strict=True)])
        )
        first, second = (matrix[[place[pair[i]] for pair in self.same]] for i in (0, 1))
        found["MRPC"] = 100 * float(np.mean((first @ second.T).argmax(axis=1) == np.arange(len(first))))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--views", type=Path)
    arguments = parser.parse_args()

    development = Development(arguments.data, arguments.views)
    columns = {
        model: [development.measure(embedder(path)) for path in sorted(glob.glob(model)) or [model]]
        for model in arguments.models
    }
    print(f"| | {' | '.join(columns)} |")
    print("|---|" + "---|" * len(columns))
    for name in next(iter(columns.values()))[0]:
        digits = 3 if name in ("Oppn.", "Cont.") else 1
        print(
            f"| {name} | {' | '.join(spread([one[name] for one in column], digits) for column in columns.values())} |"
        )


def spread(values: list[float], digits: int) -> str:
    """Mean, and standard deviation where there are several."""
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


if __name__ == "__main__":
    main()
