"""Choose the pair score of two texts, and report what it gives on sets that nothing was chosen on.

    python benchmarks/debias/pair_score.py DATA MODEL -o OUT [--choose]

MODEL is `minilm` or a folder with a meaning block, DATA the folder of the evaluation sets. What the
block says of each text is kept in OUT/NAME.npz, so that a second run is quick.

With `--choose`, OUT/pair-score-grid.csv gets a line for each form that was tried: the development
sets, the guards with their first 100 hits reranked, questions written for this (`pairs/`), and
false alarms, the share of paraphrases lowered by more than 0.05. *Power* is the penalty κ x with
the doubt x = max(0, a − c · c') max(0, φ · φ')ᵖ; its numbers are κ, a and p. *Squared* is κ x². *Soft*
is κ ln(1 + (x / w)²), with κ, a, p and w.

The form that ranks has fewer false alarms than the earlier one, 0.8, 0.6, 6, by about a third. Of
the soft forms at which near, middle, far and roles lose at most half a point against it, questions
of a cache and duplicate questions lose nothing, and no guard loses more than 0.35 points against
the untouched model, it has nearly the fewest false alarms that a change of κ / w of 2 allows:
squared forms have still fewer, but there a hundredth of agreement moves a score by up to a tenth.
*Search* was not looked at.

Without it, OUT/pair-score-NAME.csv gets the results with 95 % intervals (Wilson for shares, bootstrap
for areas and searches): untouched, by the cosine with the block, reranked, and for a cache. `--only
complaints` reports the triplets whose name begins so, which is quick for a large model.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from measures import Measures
from pyarrow import parquet
from wording import area, quads, table

from opencse.debias.payload import (
    CACHING,
    OPPOSITE,
    RANKING,
    SHARPNESS,
    Parts,
    Penalty,
    compared,
    loss,
    readings,
    score_pairs,
)
from opencse.debias.reranker import Reranker
from opencse.evaluation.retrieval import NeighbourTask, RetrievalTask
from opencse.evaluation.task import distinct_texts
from opencse.evaluation.written_sets import (
    TripletSet,
    load_development,
    load_guard,
    read_triplets,
)
from opencse.foundation.roles import plain

PAIRS = Path(__file__).parent / "pairs"
HITS = 100
SURE = 0.9
LOWERED = 0.05
Rows = Sequence[tuple[str, str, str]]
Score = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""From cosines of old vectors, of vectors, of codes and of topics to scores."""


class Stored:
    """What the block says of texts, each encoded once and kept in a file."""

    def __init__(self, reranker: Reranker, path: Path) -> None:
        self.reranker = reranker
        self.path = path
        self.place: dict[str, int] = {}
        self.rows = np.zeros((0, 0), np.float32)
        if path.is_file():
            kept = np.load(path)
            texts = json.loads(kept["texts"].tobytes().decode("utf-8"))
            self.place = {text: row for row, text in enumerate(texts)}
            self.rows = kept["rows"]

    def add(self, texts: Sequence[str]) -> None:
        """Encode the texts that are not known yet."""
        # A text with a role in a search is encoded like any other, and stored once.
        new = [text for text in dict.fromkeys(map(plain, texts)) if text not in self.place]
        if not new:
            return
        rows = self.reranker.packed(new, show_progress_bar=True)
        self.rows = np.concatenate([self.rows, rows]) if self.place else rows
        for text in new:
            self.place[text] = len(self.place)
        texts = json.dumps(list(self.place)).encode("utf-8")
        np.savez(self.path, texts=np.frombuffer(texts, np.uint8), rows=self.rows)

    def __call__(self, texts: Sequence[str]) -> Parts:
        """Return the parts of texts that were added."""
        return self.reranker.unpacked(self.rows[[self.place[plain(text)] for text in texts]])

    def old(self, parts: Parts) -> np.ndarray:
        """Return the vectors of the model without the block."""
        vectors = parts.vectors[:, : int(self.reranker.block.config["width"])]
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def cosines(
        self, first: Sequence[str], second: Sequence[str], *, paired: bool
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return what a `Score` takes, and which pairs are a yes/no question and an answer."""
        one, other = self(first), self(second)
        found = compared(one, other, paired=paired)
        old = self.old(one), self.old(other)
        without = (old[0] * old[1]).sum(axis=1) if paired else old[0] @ old[1].T
        return [without, found.vectors, found.codes, found.topics], found.answers


def untouched(
    old: np.ndarray, new: np.ndarray, codes: np.ndarray, topics: np.ndarray
) -> np.ndarray:
    return old


def with_block(
    old: np.ndarray, new: np.ndarray, codes: np.ndarray, topics: np.ndarray
) -> np.ndarray:
    return new


def penalised(penalty: Penalty, sharpness: int) -> Score:
    """Return the form of `opencse.debias.payload`."""

    def scored(
        old: np.ndarray, new: np.ndarray, codes: np.ndarray, topics: np.ndarray
    ) -> np.ndarray:
        return new - loss(codes, topics, penalty, sharpness)

    return scored


def squared(size: float, least: float, sharpness: int) -> Score:
    """Return the form whose penalty grows with the square of the doubt."""

    def scored(
        old: np.ndarray, new: np.ndarray, codes: np.ndarray, topics: np.ndarray
    ) -> np.ndarray:
        return new - size * loss(codes, topics, Penalty(1.0, least), sharpness) ** 2

    return scored


def ramped(size: float, least: float, start: float, end: float) -> Score:
    """Return the form of the first trial: a ramp over the topics' cosine."""

    def scored(
        old: np.ndarray, new: np.ndarray, codes: np.ndarray, topics: np.ndarray
    ) -> np.ndarray:
        same_topic = np.clip((topics - start) / (end - start), 0.0, 1.0)
        return new - size * np.maximum(0.0, least - codes) * same_topic

    return scored


class Triples:
    """Triplets, and the cosines of their pairs."""

    def __init__(self, stored: Stored, rows: Rows) -> None:
        anchor, positive, negative = zip(*rows, strict=True)
        self.right, self.answers = stored.cosines(anchor, positive, paired=True)
        self.wrong, self.opposed = stored.cosines(anchor, negative, paired=True)

    def ordered(self, score: Score) -> np.ndarray:
        """Return whether each rewording scores above its contradiction."""
        return self._scores(score, "right") > self._scores(score, "wrong")

    def false_hits(self, score: Score) -> np.ndarray:
        """Return whether each contradiction reaches what 90 % of the rewordings reach."""
        threshold = np.quantile(self._scores(score, "right"), 1 - SURE)
        return self._scores(score, "wrong") >= threshold

    def _scores(self, score: Score, side: str) -> np.ndarray:
        cosines = self.right if side == "right" else self.wrong
        answers = self.answers if side == "right" else self.opposed
        if score is untouched:
            return cosines[0]
        return np.where(answers, cosines[1], score(*cosines))


class Search:
    """A search whose first 100 hits by the old vectors are reranked."""

    def __init__(self, stored: Stored, task: RetrievalTask) -> None:
        self.task = task
        self.cosines, self.answers = stored.cosines(task.queries, task.corpus, paired=False)

    def ranked(self, score: Score) -> np.ndarray:
        """Return the main score of each query."""
        from opencse.evaluation.retrieval import measures

        scores = score(*self.cosines)
        if score is not untouched:
            scores = np.where(self.answers, self.cosines[1], scores)
        found = []
        for row, query in enumerate(self.task.queries):
            base = self.cosines[0][row].copy()
            own = np.zeros(len(base), bool)
            if self.task.others_only:
                own = np.array([text == query for text in self.task.corpus])
                base[own] = -9
            first = np.argsort(-base, kind="stable")[:HITS]
            order = base - 100
            order[first] = scores[row][first]
            relevance = np.zeros(len(base))
            for place, grade in self.task.relevant[row].items():
                relevance[place] = grade
            found.append(100 * measures(order[~own], relevance[~own])[self.task.main])
        return np.array(found)


class Neighbours:
    """The ten nearest texts, the first 100 by the old vectors reranked, and their topics."""

    def __init__(self, stored: Stored, task: NeighbourTask) -> None:
        texts = list(task.texts())
        self.labels = np.array(task.labels)
        self.cosines, self.answers = stored.cosines(texts, texts, paired=False)

    def ranked(self, score: Score) -> np.ndarray:
        """Return the share of each text's ten neighbours that have its topic."""
        base = self.cosines[0].copy()
        np.fill_diagonal(base, -9)
        scores = np.where(self.answers, self.cosines[1], score(*self.cosines))
        if score is untouched:
            scores = base
        found = []
        for row in range(len(base)):
            first = np.argsort(-base[row], kind="stable")[:HITS]
            best = first[np.argsort(-scores[row][first], kind="stable")[:10]]
            found.append(100 * float((self.labels[best] == self.labels[row]).mean()))
        return np.array(found)


def duplicates() -> RetrievalTask:
    """Return duplicate questions, searched among themselves, related ones and the guard's."""
    rows = table(PAIRS / "duplicates.tsv")
    guard = next(task for task in load_guard() if task.name == "guard-questions")
    assert isinstance(guard, RetrievalTask)
    asked = [row["question"] for row in rows]
    again = [row["duplicate"] for row in rows]
    corpus = [*asked, *again, *(row["related"] for row in rows), *guard.corpus]
    count = len(rows)
    relevant = [{(place + count) % (2 * count): 1.0} for place in range(2 * count)]
    return RetrievalTask(
        name="duplicate questions",
        queries=[*asked, *again],
        corpus=corpus,
        relevant=relevant,
        others_only=True,
        main="recall@1",
    )


def cache_rows(part: str) -> list[tuple[str, str, str]]:
    found = table(PAIRS / "cache.tsv")
    return [(r["anchor"], r["positive"], r["negative"]) for r in found if r["part"] == part]


def rows_of(triplets: TripletSet) -> list[tuple[str, str, str]]:
    return [(each.anchor, each.positive, each.negative) for each in triplets.triplets]


def searches(stored: Stored, tasks: Sequence[object]) -> dict[str, Search | Neighbours]:
    found: dict[str, Search | Neighbours] = {}
    for task in tasks:
        if isinstance(task, RetrievalTask):
            found[task.name] = Search(stored, task)
        elif isinstance(task, NeighbourTask):
            found[task.name] = Neighbours(stored, task)
    return found


def paraphrases(data: Path) -> dict[str, list[tuple[str, str]]]:
    """Return pairs that say the same and belong to no test set, by name."""
    found = {}
    for part, name in (("dev", "STS-B dev, 4.5 or more"), ("train", "STS-B train, 4.5 or more")):
        found[name] = [
            (row["sentence1"], row["sentence2"])
            for row in table(data / "eval" / "STSB" / f"{part}.tsv.gz")
            if float(row["score"]) >= 4.5 and row["sentence1"] != row["sentence2"]
        ]
    random.seed(1)
    found["STS-B train, 4.5 or more"] = random.sample(found["STS-B train, 4.5 or more"], 250)
    translated = parquet.read_table(data / "views" / "back_translations.parquet").to_pandas()
    near_english = translated["pivot"].isin(["da", "sv", "af", "ro", "sl", "el", "he"])
    chosen = translated[
        (translated["set"] == "flores-dev") & near_english & (translated["system"] != "argos")
    ]
    chosen = chosen[chosen["text"] != chosen["back_translation"]]
    chosen = chosen.drop_duplicates("text").sample(300, random_state=1)
    found["back-translations"] = list(zip(chosen["text"], chosen["back_translation"], strict=True))
    mrpc = table(data / "eval" / "MRPC" / "train.tsv.gz")
    same = [(row["sentence1"], row["sentence2"]) for row in mrpc if row["label"] == "1"]
    found["MRPC train"] = same[:700]
    for task in load_development():
        if task.name in ("dev-meaning", "dev-roles"):
            found[f"rewordings, {task.name}"] = [(a, b) for a, b, _ in rows_of(task)]
    rows = table(PAIRS / "duplicates.tsv")
    found["rewordings, duplicates"] = [(row["question"], row["duplicate"]) for row in rows]
    return found


class FalseAlarms:
    """How many paraphrases a form lowers."""

    def __init__(self, stored: Stored, data: Path) -> None:
        self.cosines = {}
        for name, pairs in paraphrases(data).items():
            first, second = zip(*pairs, strict=True)
            stored.add([*first, *second])
            self.cosines[name] = stored.cosines(first, second, paired=True)

    def share(self, score: Score) -> float:
        """Return the share lowered by more than 0.05, the mean of the sets."""
        shares = []
        for cosines, answers in self.cosines.values():
            lowered = cosines[1] - score(*cosines) > LOWERED
            shares.append(np.mean(lowered & ~answers))
        return float(np.mean(shares))


def choose(stored: Stored, measures: Measures, data: Path, path: Path) -> None:
    """Write the scores of every form that was tried."""
    sets = {
        task.name: task
        for task in measures.tasks
        if isinstance(task, TripletSet) and task.name.startswith("dev-")
    }
    guards = [task for task in measures.tasks if task.name.startswith("guard-")]
    tasks = [*sets.values(), *guards, duplicates()]
    stored.add([*distinct_texts(tasks), *(text for row in cache_rows("choose") for text in row)])
    triples = {name: Triples(stored, rows_of(task)) for name, task in sets.items()}
    triples["cache questions"] = Triples(stored, cache_rows("choose"))
    grades = np.array([each.groups["grade"] for each in sets["dev-meaning"].triplets])
    searched = searches(stored, [*guards, duplicates()])
    alarms = FalseAlarms(stored, data)

    forms: dict[str, Score] = {"untouched": untouched, "with the block": with_block}
    for size, least, start, end in (
        (0.8, 0.2, 0.6, 0.8),
        (0.8, 0.5, 0.7, 0.9),
        (0.8, 0.8, 0.6, 0.8),
    ):
        forms[f"ramp: {size:g}, {least:g}, {start:g} to {end:g}"] = ramped(size, least, start, end)
    for size, least, sharpness in product(
        (0.4, 0.6, 0.8, 1.0, 1.2, 2.0), (0.2, 0.4, 0.6, 0.8, 1.0), (2, 4, 6, 8)
    ):
        name = f"power: {size:g}, {least:g}, {sharpness}"
        forms[name] = penalised(Penalty(size, least), sharpness)
    for size, least, sharpness in product((2, 3, 4, 5, 6), (0.4, 0.5, 0.6), (4, 5, 6)):
        name = f"squared: {size:g}, {least:g}, {sharpness}"
        forms[name] = squared(size, least, sharpness)
    for slope, least, soft in product((1.5, 2, 2.5), (0.4, 0.5, 0.6), (0.25, 0.35, 0.5)):
        size = round(slope * soft, 3)
        name = f"soft: {size:g}, {least:g}, {SHARPNESS}, {soft:g}"
        forms[name] = penalised(Penalty(size, least, soft), SHARPNESS)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        head = ["form", "near", "middle", "far", "search", "roles", "cache questions"]
        head += ["false hits, meaning", "false hits, cache questions", *searched, "false alarms"]
        writer.writerow(head)
        for name, form in forms.items():
            ordered = triples["dev-meaning"].ordered(form)
            cells = [100 * ordered[grades == grade].mean() for grade in ("near", "middle", "far")]
            for key in ("dev-search", "dev-roles", "cache questions"):
                cells.append(100 * triples[key].ordered(form).mean())
            for key in ("dev-meaning", "cache questions"):
                cells.append(100 * triples[key].false_hits(form).mean())
            cells += [search.ranked(form).mean() for search in searched.values()]
            cells.append(100 * alarms.share(form))
            writer.writerow([name, *(f"{cell:.1f}" for cell in cells)])


def share(right: np.ndarray) -> str:
    """Return a share in percent with its Wilson interval."""
    count, z = len(right), 1.96
    p = float(np.mean(right))
    center = (p + z * z / (2 * count)) / (1 + z * z / count)
    half = z * np.sqrt(p * (1 - p) / count + z * z / (4 * count**2)) / (1 + z * z / count)
    return f"{100 * p:.1f} ({100 * (center - half):.1f} to {100 * (center + half):.1f})"


def mean(values: np.ndarray) -> str:
    """Return a mean with its bootstrap interval."""
    rng = np.random.default_rng(0)
    drawn = values[rng.integers(0, len(values), (2000, len(values)))].mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{values.mean():.1f} ({low:.1f} to {high:.1f})"


def area_with_interval(above: np.ndarray, below: np.ndarray) -> str:
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(200):
        drawn.append(area(rng.choice(above, len(above)), rng.choice(below, len(below))))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return f"{area(above, below):.1f} ({low:.1f} to {high:.1f})"


def report(stored: Stored, measures: Measures, data: Path, only: str | None) -> Iterator[list[str]]:
    """Yield the lines of the table."""
    forms = {
        "untouched": untouched,
        "with the block": with_block,
        "reranked": penalised(RANKING, SHARPNESS),
        "for a cache": penalised(CACHING, SHARPNESS),
    }
    yield ["", "rows", *forms]
    sets = {}
    for task in measures.tasks:
        if isinstance(task, TripletSet):
            sets[task.name] = rows_of(task)
            grades = {each.groups.get("grade", "") for each in task.triplets} - {""}
            for grade in sorted(grades):
                sets[f"{task.name}, {grade}"] = [
                    (each.anchor, each.positive, each.negative)
                    for each in task.triplets
                    if each.groups["grade"] == grade
                ]
    sets["XNLI dev"] = measures.development.nli
    sets["cache questions, chosen on"] = cache_rows("choose")
    sets["cache questions, not chosen on"] = cache_rows("report")
    sets["constraint searches"] = rows_of(read_triplets(PAIRS / "constraints.tsv"))
    if only is not None:
        sets = {name: rows for name, rows in sets.items() if name.startswith(only)}
    stored.add([text for rows in sets.values() for row in rows for text in row])
    for name, rows in sets.items():
        triples = Triples(stored, rows)
        yield [
            f"{name}: rewording above contradiction, %",
            str(len(rows)),
            *(share(triples.ordered(form)) for form in forms.values()),
        ]
        yield [
            f"{name}: false hits of a cache, %",
            str(len(rows)),
            *(share(triples.false_hits(form)) for form in forms.values()),
        ]
    if only is not None:
        return
    unseen = quads()["unseen"]
    stored.add([text for row in unseen for text in row])
    both = [Triples(stored, [(a, b, c) for a, b, c, _ in unseen])]
    both.append(Triples(stored, [(a, b, d) for a, b, _, d in unseen]))
    cells = []
    for form in forms.values():
        cells.append(share(both[0].ordered(form) & both[1].ordered(form)))
    yield ["unseen opposites: nearest of four, %", str(len(unseen)), *cells]
    yield from _answered(stored, measures, forms)
    yield from _searched(stored, measures, forms)
    yield from _caught(stored, data, forms)


def _answered(stored: Stored, measures: Measures, forms: dict[str, Score]) -> Iterator[list[str]]:
    """Yield how many yes/no questions find both the yes and the no among the first two hits."""
    rows = table(PAIRS / "answers.tsv")
    guard = next(task for task in measures.tasks if task.name == "guard-answers")
    assert isinstance(guard, RetrievalTask)
    questions = [row["question"] for row in rows]
    pool = [*(row["yes"] for row in rows), *(row["no"] for row in rows), *guard.corpus]
    stored.add([*questions, *pool])
    cosines, answers = stored.cosines(questions, pool, paired=False)
    for label, kept in (("as it ships", True), ("if agreement counted", False)):
        cells = []
        for form in forms.values():
            scores = form(*cosines)
            if kept and form is not untouched:
                scores = np.where(answers, cosines[1], scores)
            first = np.argsort(-scores, axis=1, kind="stable")[:, :2]
            found = [{row, row + len(rows)} == set(first[row]) for row in range(len(rows))]
            cells.append(share(np.array(found)))
        yield [f"yes/no questions: both answers first, {label}, %", str(len(rows)), *cells]


def _searched(stored: Stored, measures: Measures, forms: dict[str, Score]) -> Iterator[list[str]]:
    tasks = [*measures.tasks, duplicates()]
    tasks = [task for task in tasks if isinstance(task, RetrievalTask | NeighbourTask)]
    stored.add(distinct_texts(tasks))
    for name, search in searches(stored, tasks).items():
        values = {key: search.ranked(form) for key, form in forms.items()}
        count = str(len(values["untouched"]))
        yield [f"{name}, first 100 reranked", count, *(mean(each) for each in values.values())]
        changes = [mean(each - values["untouched"]) for each in values.values()]
        yield [f"{name}: change in points", count, *changes]


def _caught(stored: Stored, data: Path, forms: dict[str, Score]) -> Iterator[list[str]]:
    """Yield areas, and the shares of pairs that are lowered and read as opposite."""
    sick = {
        part: table(data / "eval" / "SICKR" / f"{part}.tsv.gz")
        for part in ("trial", "train", "test")
    }
    pairs = {}
    for part, rows in sick.items():
        for kind in ("ENTAILMENT", "CONTRADICTION"):
            chosen = [row for row in rows if row["entailment"].upper() == kind]
            pairs[f"SICK {part}, {kind.lower()}"] = [
                (row["sentence1"], row["sentence2"]) for row in chosen
            ]
    similar = table(data / "eval" / "STSB" / "dev.tsv.gz")
    pairs["STS-B dev, scored 4.5 or more"] = [
        (row["sentence1"], row["sentence2"]) for row in similar if float(row["score"]) >= 4.5
    ]
    stored.add([text for some in pairs.values() for pair in some for text in pair])
    for part in sick:
        cells = []
        for form in forms.values():
            scores = []
            for kind in ("entailment", "contradiction"):
                first, second = zip(*pairs[f"SICK {part}, {kind}"], strict=True)
                scores.append(form(*stored.cosines(first, second, paired=True)[0]))
            cells.append(area_with_interval(*scores))
        yield [f"SICK {part}: entailed against contradicted, area", "", *cells]
    for name, some in pairs.items():
        first, second = (stored(side) for side in zip(*some, strict=True))
        cosine = compared(first, second, paired=True).vectors
        for label, penalty in (("reranked", RANKING), ("for a cache", CACHING)):
            lowered = cosine - score_pairs(first, second, penalty) > LOWERED
            yield [f"{name}: lowered by more than 0.05, {label}, %", str(len(some)), share(lowered)]
        opposite = np.array(readings(first, second)) == "says the opposite"
        yield [
            f"{name}: says the opposite (below {OPPOSITE:g}), %",
            str(len(some)),
            share(opposite),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("model")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--choose", action="store_true", help="score the forms on development sets")
    parser.add_argument("--only", metavar="PREFIX", help="report only triplets of this name")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    name = Path(options.model).name
    stored = Stored(Reranker(options.model), options.out / f"{name}.npz")
    measures = Measures(options.data, held_out=True)
    if options.choose:
        choose(stored, measures, options.data, options.out / "pair-score-grid.csv")
        return
    with (options.out / f"pair-score-{name}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        for line in report(stored, measures, options.data, options.only):
            writer.writerow(line)
            file.flush()


if __name__ == "__main__":
    main()
