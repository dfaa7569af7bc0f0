"""What is caught, and what is hit by mistake: every score on the same pairs, with intervals.

    python benchmarks/debias/caught.py DATA [MODEL] [--cache ENCODINGS.npz]

MODEL is a folder of `opencse run debias`, or the name of a bundled model, which gets the block that
ships. Every text is encoded once; `--cache` keeps the encodings. Five scores are compared: the
cosine of the untouched model, that of v, the pair score of `opencse.Reranker`, and the two of
words_only.py. It writes to benchmarks/results:

debias-triplets.csv   the rewording above the contradiction, in percent, on all sets and on their
                      triplets matched in edit distance; 95 % intervals by bootstrap
debias-caught.csv     pairs lowered by more than 0.05 against the cosine of the same model
debias-hits.csv       contradictions that a cache takes for a hit, where 80, 90 and 95 % of the
                      rewordings are accepted
debias-guards.csv     what searches lose if the first hundred hits are sorted by each score, with
                      intervals over their queries
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measures import complaints, condaqa, cranfield
from rapidfuzz.distance import Indel
from sklearn.metrics import roc_auc_score
from wording import quads, table
from words_only import flags, near_score, words_score

from opencse.debias.payload import CACHING, RANKING, Parts, score_pairs
from opencse.debias.reranker import Reranker
from opencse.encoder import load_encoder
from opencse.evaluation.probes import load_probe_data
from opencse.evaluation.retrieval import RetrievalTask, measures
from opencse.evaluation.written_sets import load_development, load_guard, read_triplets

RESULTS = Path(__file__).parents[1] / "results"
FOLDER = Path(__file__).parent
LOWERED = 0.05
DRAWS = 1000
MATCHED = 0.08
"""Two texts are as far from a third if their edit distances, as shares of the words, differ by less."""

Triple = tuple[str, ...]
"""A sentence, its rewording, and one or two contradictions."""
Pair = tuple[str, str]


class Encodings:
    """Vector, code and topic of every text, encoded once, with e at the front of the vectors."""

    def __init__(self, model: str, cache: Path | None) -> None:
        self.reranker = Reranker(load_encoder(model, device="cpu"))
        self.cache = cache
        self.place: dict[str, int] = {}
        self.packed = np.zeros((0, 0), np.float32)
        if cache is not None and cache.exists():
            stored = np.load(cache, allow_pickle=False)
            texts = bytes(stored["texts"]).decode().split("\0")
            self.place = {text: i for i, text in enumerate(texts)}
            self.packed = stored["packed"]

    def add(self, texts: Sequence[str]) -> None:
        """Encode the texts that are new, the short ones first, and keep them."""
        new = sorted({text for text in texts if text not in self.place}, key=len)
        for start in range(0, len(new), 200):
            some = new[start : start + 200]
            packed = self.reranker.packed(some)
            self.packed = np.concatenate([self.packed, packed]) if len(self.packed) else packed
            for text in some:
                self.place[text] = len(self.place)
            print(f"{start + len(some)} of {len(new)} texts", flush=True)
        if new and self.cache is not None:
            texts = np.frombuffer("\0".join(self.place).encode(), np.uint8)
            np.savez(self.cache, texts=texts, packed=self.packed)

    def rows(self, texts: Sequence[str]) -> np.ndarray:
        """Return the encodings of texts, one in each row."""
        return self.packed[[self.place[text] for text in texts]]


@dataclass
class Scores:
    """The scores of n pairs, by name."""

    found: dict[str, np.ndarray]

    @classmethod
    def of(cls, encodings: Encodings, first: Sequence[str], second: Sequence[str]) -> Scores:
        """Return the scores of n pairs of texts."""
        one = encodings.rows(first)
        other = encodings.rows(second)
        parts: tuple[Parts, Parts] = (
            encodings.reranker.unpacked(one),
            encodings.reranker.unpacked(other),
        )
        width = int(encodings.reranker.block.config["width"])
        e = _unit(one[:, :width])
        its = _unit(other[:, :width])
        cosine = (e * its).sum(axis=1)
        flagged = flags(first, second)
        return cls(
            {
                "untouched": cosine,
                "block": (parts[0].vectors * parts[1].vectors).sum(axis=1),
                "reranked": score_pairs(*parts, RANKING),
                "cache": score_pairs(*parts, CACHING),
                "words": words_score(cosine, flagged),
                "words, near": near_score(cosine, flagged),
            }
        )


SHOWN = ("untouched", "block", "reranked", "words", "words, near")


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def interval(values: np.ndarray, statistic: Callable[[np.ndarray], float] = np.mean) -> str:
    """Return a statistic of n values in percent, with its 95 % bootstrap interval."""
    rng = np.random.default_rng(1)
    drawn = [statistic(values[rng.integers(0, len(values), len(values))]) for _ in range(DRAWS)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{100 * statistic(values):.0f} ({100 * low:.0f} to {100 * high:.0f})"


def area(above: np.ndarray, below: np.ndarray) -> str:
    """Return the area under the curve in percent, with its 95 % bootstrap interval."""
    rng = np.random.default_rng(1)

    def measured(one: np.ndarray, other: np.ndarray) -> float:
        labels = np.r_[np.ones(len(one)), np.zeros(len(other))]
        return float(roc_auc_score(labels, np.r_[one, other]))

    drawn = []
    for _ in range(DRAWS // 4):
        one = above[rng.integers(0, len(above), len(above))]
        other = below[rng.integers(0, len(below), len(below))]
        drawn.append(measured(one, other))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{100 * measured(above, below):.0f} ({100 * low:.0f} to {100 * high:.0f})"


def distance(first: str, second: str) -> float:
    """Return the share of words that an edit changes, 0 for the same words in the same order."""
    return float(Indel.normalized_distance(first.lower().split(), second.lower().split()))


def is_matched(triple: Triple) -> bool:
    """Return whether the contradiction is about as far from the sentence in words as the rewording."""
    sentence, same, opposed, *_ = triple
    return abs(distance(sentence, same) - distance(sentence, opposed)) < MATCHED


def triplet_sets(data: Path) -> dict[str, list[Triple]]:
    """Return the triplets by name: those that others made first."""
    sets: dict[str, list[Triple]] = {}
    condaqa_set = condaqa(data)
    sets["CondaQA"] = [(t.anchor, t.positive, t.negative) for t in condaqa_set.triplets]
    nli = table(data / "eval" / "NLI" / "xnli_dev_en_triplets.tsv.gz")
    sets["XNLI dev"] = [(row["sent0"], row["sent1"], row["hard_neg"]) for row in nli]
    for each in [*complaints(), *load_development()]:
        grades = {triplet.groups.get("grade") for triplet in each.triplets}
        for grade in sorted(grades, key=str):
            name = each.name.removeprefix("dev-") + (f", {grade}" if grade else "")
            sets[name] = [
                (t.anchor, t.positive, t.negative)
                for t in each.triplets
                if t.groups.get("grade") == grade
            ]
    for name, found in quads().items():
        sets[f"antonyms, {name}"] = [*found]
    for path in ("wording/questions.tsv", "pairs/cache.tsv", "pairs/constraints.tsv"):
        triplets = read_triplets(FOLDER / path).triplets
        sets[Path(path).stem] = [(t.anchor, t.positive, t.negative) for t in triplets]
    return sets


def pair_sets(data: Path) -> dict[str, tuple[bool, list[Pair]]]:
    """Return pairs by name, with whether they should be caught."""
    sets: dict[str, tuple[bool, list[Pair]]] = {}
    sick = table(data / "eval" / "SICKR" / "trial.tsv.gz")
    sick += table(data / "eval" / "SICKR" / "test.tsv.gz")
    for label, caught in (("CONTRADICTION", True), ("ENTAILMENT", False)):
        found = [row for row in sick if row["entailment"].upper() == label]
        sets[f"SICK, {label.lower()}"] = caught, _pairs(found, "sentence1", "sentence2")
    sts = [r for r in table(data / "eval" / "STSB" / "dev.tsv.gz") if float(r["score"]) >= 4.5]
    sets["STS-B, 4.5 or more"] = False, _pairs(sts, "sentence1", "sentence2")
    conda = table(data / "eval" / "CondaQA" / "dev.tsv.gz")
    sets["CondaQA, affirmative edit"] = True, _pairs(conda, "sentence", "affirmative")
    sets["CondaQA, paraphrase"] = False, _pairs(conda, "sentence", "paraphrase")
    for name, path in (("SNLI", "snli_dev.tsv.gz"), ("XNLI", "xnli_dev_en.tsv.gz")):
        rows = table(data / "eval" / "NLI" / path)[:3000]
        for label, caught in (("contradiction", True), ("entailment", False)):
            found = [row for row in rows if row["label"] == label]
            sets[f"{name}, {label}"] = caught, _pairs(found, "sentence1", "sentence2")
    order = table(FOLDER / "wording" / "order.tsv")
    sets["word order, reordered"] = False, _pairs(order, "sentence", "reordered")
    sets["word order, roles exchanged"] = True, _pairs(order, "sentence", "swapped")
    probed = load_probe_data().sentences
    for column in probed.kinds:
        _, sentences, changed = probed.pairs(column)
        pairs = list(zip(sentences, changed, strict=True))
        sets[f"probe, {column}"] = column == "negation", pairs
    return sets


def _pairs(rows: Sequence[dict[str, str]], first: str, second: str) -> list[Pair]:
    return [(row[first], row[second]) for row in rows]


def write_triplets(encodings: Encodings, sets: dict[str, list[Triple]]) -> None:
    """Write how often the rewording is above the contradiction."""
    with (RESULTS / "debias-triplets.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["rewording above contradiction, %", "triplets", *SHOWN])
        for name, triples in sets.items():
            first, same, *others = zip(*triples, strict=True)
            above = Scores.of(encodings, first, same).found
            opposed = [Scores.of(encodings, first, other).found for other in others]
            below = {score: np.max([each[score] for each in opposed], axis=0) for score in SHOWN}
            matched = np.array([is_matched(triple) for triple in triples])
            for suffix, chosen in (("", np.ones_like(matched)), (", matched", matched)):
                if chosen.sum() < 20:
                    continue
                cells = [interval((above[s] > below[s])[chosen]) for s in SHOWN]
                writer.writerow([name + suffix, int(chosen.sum()), *cells])


def write_caught(encodings: Encodings, sets: dict[str, tuple[bool, list[Pair]]]) -> None:
    """Write the share of pairs that a score lowers, of contradictions and of everything else."""
    against = {"reranked": "block", "words": "untouched", "words, near": "untouched"}
    with (RESULTS / "debias-caught.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["lowered by more than 0.05, %", "should be", "pairs", *against])
        for name, (caught, pairs) in sets.items():
            first, second = zip(*pairs, strict=True)
            found = Scores.of(encodings, first, second).found
            cells = [interval(found[base] - found[s] > LOWERED) for s, base in against.items()]
            writer.writerow([name, "yes" if caught else "no", len(pairs), *cells])
        for label, corpus in (("SICK", "SICK"), ("SNLI", "SNLI"), ("XNLI", "XNLI")):
            same = Scores.of(encodings, *zip(*sets[f"{corpus}, entailment"][1], strict=True)).found
            opposed = Scores.of(
                encodings, *zip(*sets[f"{corpus}, contradiction"][1], strict=True)
            ).found
            names = ("untouched", "block", *against)
            print(label, "area", {s: area(same[s], opposed[s]) for s in names}, flush=True)


def write_hits(encodings: Encodings, sets: dict[str, list[Triple]]) -> None:
    """Write how many contradictions a cache takes for a hit."""
    chosen = ("XNLI dev", "CondaQA", "complaints, meaning", "questions", "cache")
    scores = ("untouched", "block", "cache", "words", "words, near")
    with (RESULTS / "debias-hits.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["false hits, %", "rewordings accepted, %", "pairs", *scores])
        for name in chosen:
            first, same, opposed = zip(*sets[name], strict=True)
            above = Scores.of(encodings, first, same).found
            below = Scores.of(encodings, first, opposed).found
            for accepted in (80, 90, 95):
                cells = []
                for score in scores:
                    threshold = np.quantile(above[score], 1 - accepted / 100)
                    cells.append(interval(below[score] >= threshold))
                writer.writerow([name, accepted, len(first), *cells])


FIRST = 100
"""Hits that are sorted again."""


def guard_tasks(data: Path) -> list[RetrievalTask]:
    """Return the guards that are searches, and Cranfield."""
    tasks = [task for task in load_guard() if isinstance(task, RetrievalTask)]
    return [*tasks, cranfield(data)]


def query_scores(encodings: Encodings, task: RetrievalTask) -> dict[str, np.ndarray]:
    """Return the main metric of each query by score, (n,); a score sorts the first hits of a search."""
    found: dict[str, list[float]] = {score: [] for score in SHOWN}
    packed = encodings.rows(task.corpus)
    width = int(encodings.reranker.block.config["width"])
    vectors = encodings.reranker.unpacked(packed).vectors
    e = _unit(packed[:, :width])
    for query, grades in zip(task.queries, task.relevant, strict=True):
        row = encodings.rows([query])
        relevance = np.zeros(len(task.corpus))
        relevance[list(grades)] = list(grades.values())
        own = [i for i, text in enumerate(task.corpus) if text == query] if task.others_only else []
        searched = {
            "untouched": (_unit(row[:, :width]) @ e.T)[0],
            "block": (encodings.reranker.unpacked(row).vectors @ vectors.T)[0],
        }
        for score in SHOWN:
            if score in searched:
                scores = searched[score]
            else:
                searching = searched["block" if score == "reranked" else "untouched"]
                first = np.argsort(-searching)[: FIRST + len(own)]
                texts = [task.corpus[i] for i in first]
                scores = searching - 10
                scores[first] = Scores.of(encodings, [query] * len(texts), texts).found[score]
            metric = measures(np.delete(scores, own), np.delete(relevance, own))[task.main]
            found[score].append(metric)
    return {score: np.array(values) for score, values in found.items()}


def write_guards(encodings: Encodings, tasks: Sequence[RetrievalTask]) -> None:
    """Write what each search loses, in points, with an interval over its queries."""
    scores = ("block", "reranked", "words", "words, near")
    with (RESULTS / "debias-guards.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["change, in points", "queries", "untouched", *scores])
        for task in tasks:
            by_score = query_scores(encodings, task)
            before = by_score["untouched"]
            cells = [points(by_score[score] - before) for score in scores]
            name = f"{task.name.removeprefix('guard-')}, {task.main}"
            writer.writerow([name, len(before), f"{100 * before.mean():.1f}", *cells])
            print(name, len(before), *cells, flush=True)


def points(change: np.ndarray) -> str:
    """Return a mean change in points, with its 95 % bootstrap interval."""
    rng = np.random.default_rng(1)
    drawn = [change[rng.integers(0, len(change), len(change))].mean() for _ in range(DRAWS)]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{100 * change.mean():+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("model", nargs="?", default="minilm")
    parser.add_argument("--cache", type=Path)
    parser.add_argument(
        "--only", choices=("triplets", "caught", "hits", "guards"), help="write one table"
    )
    options = parser.parse_args()
    triples = triplet_sets(options.data)
    pairs = pair_sets(options.data)
    encodings = Encodings(options.model, options.cache)
    texts = [text for some in triples.values() for triple in some for text in triple]
    texts += [text for _, some in pairs.values() for pair in some for text in pair]
    tasks = guard_tasks(options.data)
    for task in tasks:
        # As plain strings: a task's texts know whether they are queries or documents.
        texts += [str(text) for text in task.texts()]
    encodings.add(texts)
    written = {
        "triplets": lambda: write_triplets(encodings, triples),
        "caught": lambda: write_caught(encodings, pairs),
        "hits": lambda: write_hits(encodings, triples),
        "guards": lambda: write_guards(encodings, tasks),
    }
    for name, write in written.items():
        if options.only in (None, name):
            write()


if __name__ == "__main__":
    main()
