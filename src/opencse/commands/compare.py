"""`opencse.compare`: runs side by side, over their seeds; `opencse.compare_search`: which searches a model changes."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.commands.command_line import apply, takes
from opencse.commands.options import CompareCommand, CompareOptions
from opencse.commands.reports.charts import chart, draw_averages, draw_shared
from opencse.commands.reports.page import output_folder, render_template, write_page
from opencse.debias.meaning_block import upgrade
from opencse.debias.payload import agreement
from opencse.debias.reranker import Reranker, reranker_of
from opencse.encoder.backbone import model_source
from opencse.encoder.embedder import Embedder, own_similarity
from opencse.encoder.loading import load_encoder
from opencse.evaluation import Encode, ScoredPairs, load_sts, read_pairs
from opencse.evaluation.bootstrap import PairScores, interval
from opencse.evaluation.estimate import Estimate, mean_estimate
from opencse.evaluation.probes.probe_suite import ProbeData, ProbeScores, run_probes, short_names
from opencse.evaluation.retrieval import search
from opencse.evaluation.task import Similarity
from opencse.foundation.errors import OpencseError
from opencse.foundation.figures import can_draw, short
from opencse.foundation.files import write_json, write_text
from opencse.foundation.numbers import LEAST_ROWS, LEAST_SEARCHED, unit_rows
from opencse.foundation.result_table import Cell, Number, Table, show
from opencse.foundation.roles import as_documents, as_queries, encode_roles
from opencse.foundation.terminal import print_text
from opencse.text.user_text import collect_passages, collect_queries
from opencse.training.run_groups import FinishedRun, find_runs, group_runs, read_run

Item = TypeVar("Item")
RunScores = Mapping[FinishedRun, Mapping[str, float | None]]
RunPairs = Mapping[str, PairScores]
"""Scores of a run for every pair, by the name of the set."""


@takes(CompareOptions)
def compare(options: CompareOptions) -> Table:
    """Compare groups of runs.

    Returns:
        Mean and standard deviation over seeds, differences from the baseline, and training times.

    Raises:
        OpencseError: A folder holds no run, or runs were scored on different tasks.
    """
    groups = group_runs([read_run(folder) for folder in find_runs(options.runs)])
    runs = [run for members in groups.values() for run in members]
    sets = [read_pairs(given) for given in options.pairs]
    if not sets and options.data is not None:
        sets = load_sts(str(options.data))
    pairs: dict[FinishedRun, RunPairs] = {}
    if sets:
        measured: dict[FinishedRun, Mapping[str, float | None]] = {}
        for run in runs:
            probed = _measured(run, sets)
            measured[run] = {result.task: result.score for result in probed.sts}
            pairs[run] = probed.pairs
        scores: RunScores = measured
    else:
        scores = written_scores(runs)
    table = compare_groups(groups, scores, pairs)
    if options.out is not None:
        out = Path(options.out)
        write_text(out / "comparison.md", table.markdown())
        page = render_group_comparison(groups, scores, table, pairs)
        write_text(out / "comparison.html", page)
        write_json(out / "comparison.json", _single_runs(groups, scores))
    return table


def _single_runs(groups: Mapping[str, Sequence[FinishedRun]], scores: RunScores) -> dict[str, Any]:
    """Return seed, time and scores of each run, by the label of its group."""
    single = {}
    for label, members in groups.items():
        single[label] = [
            {"seed": run.seed, "seconds": run.seconds, "scores": scores[run]} for run in members
        ]
    return single


def command(options: CompareCommand) -> None:
    """Compare runs, or the searches of two models, and print what differs."""
    if options.texts is None:
        if options.queries is not None:
            raise OpencseError("--queries goes with --texts", "Add --texts DOCS.")
        show(apply(compare, options))
        return
    if len(options.runs) != 2:
        problem = f"--texts compares two models, not {len(options.runs)}"
        raise OpencseError(problem, "Name the one in use, then the one that may replace it.")
    old, new = options.runs
    show(
        compare_search(
            old, new, options.texts, queries=options.queries, column=options.column, out=options.out
        )
    )
    if options.out is not None:
        print_text(f"page: {Path(options.out) / 'search.html'}")


def compare_groups(
    groups: Mapping[str, Sequence[FinishedRun]],
    scores: RunScores,
    pairs: Mapping[FinishedRun, RunPairs] | None = None,
) -> Table:
    """Compare groups of runs with the first group.

    Args:
        groups: Runs that differ only in their seed, by a label, the baseline first (`group_runs`).
        scores: The scores of each run, by the same tasks.
        pairs: What the scores were computed from, if the models were evaluated now; then the
            difference from the first group gets an interval.
    """
    names = list(next(iter(scores.values())))
    has_average = len(names) > 1
    draws = _draws_of_groups(groups, pairs or {})
    baseline: str | None = None
    averages: dict[str, Number] = {}
    rows: list[list[Cell]] = []
    for label, runs in groups.items():
        run_scores = [[scores[run][name] for name in names] for run in runs]
        averages[label] = spread([spread(row).value for row in run_scores])
        gain: Cell = ""
        if baseline is None:
            baseline = label
        else:
            gain = _gain(averages[label], averages[baseline])
            if draws:
                gain = _with_interval(gain, draws[label] - draws[baseline])

        row: list[Cell] = [label, " ".join(str(run.seed) for run in runs)]
        for task_scores in zip(*run_scores, strict=True):
            row.append(spread(task_scores))
        if has_average:
            row.append(averages[label])
        seconds = statistics.fmean(run.seconds for run in runs)
        rows.append([*row, gain, Number(seconds, 0)])
    heads = ["run", "seeds", *names]
    if has_average:
        heads.append("average")
    heads += ["against the first", "seconds"]

    notes = ["Spearman × 100; mean ± standard deviation (n − 1) over seeds."]
    if any(len(runs) == 1 for runs in groups.values()):
        notes.append(
            "One seed has no standard deviation: a difference may be chance (train with more seeds)."
        )
    if pairs:
        notes.append(
            "Against the first: with the 95 % bootstrap interval over pairs, which does not cover "
            "other seeds."
        )
    return Table(heads, rows, notes=notes)


def _gain(average: Number, baseline: Number) -> Number:
    """Return the difference of two averages, undefined if one of them is."""
    if average.value is None or baseline.value is None:
        return Number(None)
    return Number(average.value - baseline.value, signed=True)


def _with_interval(gain: Number, draws: np.ndarray) -> Number:
    """Return a difference with its 95 % interval, from its values in each draw."""
    if gain.value is None:
        return gain
    low, high = interval(draws)
    aside = f"{Number(low, 1, signed=True)} to {Number(high, 1, signed=True)}"
    return replace(gain, aside=aside)


def averages(groups: Mapping[str, Sequence[FinishedRun]], scores: RunScores) -> dict[str, Any]:
    """Return the average score of each run, by the label of its group; runs with an undefined score are left out."""
    found = {}
    for label, runs in groups.items():
        defined = []
        for run in runs:
            values = [value for value in scores[run].values() if value is not None]
            if values and len(values) == len(scores[run]):
                defined.append(statistics.fmean(values))
        found[label] = defined
    return found


def group_verdict(measured: Mapping[str, Sequence[float]], uncertain: Collection[str] = ()) -> str:
    """Return in one sentence which group of runs is ahead of the first, and whether that may be chance.

    Args:
        measured: The average score of each run, by the label of its group.
        uncertain: Labels of groups for which the interval over test pairs includes 0.
    """
    (first, baseline), *groups = measured.items()
    others = {label: values for label, values in groups if values}
    if not baseline or not others:
        return "Can't say: there are not two groups of runs with a score."
    best = max(others, key=lambda label: statistics.fmean(others[label]))
    values = others[best]
    gain = statistics.fmean(values) - statistics.fmean(baseline)
    points = Number(abs(gain), 2)
    relation = "above" if gain > 0 else "below"
    line = f"{short(best)} averages {points} points {relation} {short(first)}"
    if len(values) == 1 or len(baseline) == 1:
        return f"{line}, but one seed can't tell that from chance."
    if best in uncertain:
        return f"{line}, but the interval over test pairs includes 0."
    if min(values) > max(baseline) or max(values) < min(baseline):
        return f"{line}; every seed is on that side of all seeds of {short(first)}."
    return f"{line}, but their seeds overlap."


def render_group_comparison(
    groups: Mapping[str, Sequence[FinishedRun]],
    scores: RunScores,
    table: Table,
    pairs: Mapping[FinishedRun, RunPairs],
) -> str:
    """Return a page with the verdict, a chart of the seeds, and the table."""
    measured = averages(groups, scores)
    drawn = {label: values for label, values in measured.items() if values}
    charts = []
    if can_draw() and drawn:
        charts.append(
            chart(
                "Average score by run",
                "If the dots of two rows overlap, the difference may be chance.",
                partial(draw_averages, drawn),
            )
        )
    verdict = group_verdict(measured, _uncertain(groups, pairs))
    return render_template("groups.html.j2", verdict=verdict, charts=charts, table=table)


def _uncertain(
    groups: Mapping[str, Sequence[FinishedRun]], pairs: Mapping[FinishedRun, RunPairs]
) -> set[str]:
    """Return the groups whose difference from the first has an interval over test pairs that includes 0."""
    if not pairs:
        return set()
    draws = _draws_of_groups(groups, pairs)
    first = next(iter(draws.values()))
    found = set()
    for label, drawn in draws.items():
        low, high = interval(drawn - first)
        if low <= 0 <= high:
            found.add(label)
    return found


def spread(scores: Sequence[float | None]) -> Number:
    """Return mean and sample standard deviation for a cell of a table, undefined if one score is."""
    defined = [score for score in scores if score is not None]
    if len(defined) < len(scores):
        return Number(None)
    if len(defined) == 1:
        return Number(defined[0], aside="n = 1")
    return Number(statistics.fmean(defined), deviation=statistics.stdev(defined))


def _measured(run: FinishedRun, tasks: Sequence[ScoredPairs]) -> ProbeScores:
    """Return the scores of a run on some tasks, and the scores of each of their pairs."""
    model = load_encoder(run.folder)
    encoder = Embedder(model, precision="auto", progress=f"encode {run.folder.name}")
    return run_probes(ProbeData(sts=tasks), encoder)


def _draws_of_groups(
    groups: Mapping[str, Sequence[FinishedRun]], pairs: Mapping[FinishedRun, RunPairs]
) -> dict[str, np.ndarray]:
    """Return each group's average over runs and sets in each draw of the pairs, times 100."""
    if not pairs:
        return {}
    averages = {}
    for label, runs in groups.items():
        draws = [100 * scored.draws for run in runs for scored in pairs[run].values()]
        averages[label] = np.mean(draws, axis=0)
    return averages


def written_scores(runs: Sequence[FinishedRun]) -> RunScores:
    """Return the scores of results.json on `sts`, or else the first suite that all runs have.

    Raises:
        OpencseError: There is no score that all runs have.
    """
    shared = []
    for name in ("sts", *runs[0].scores):
        if all(name in run.scores for run in runs):
            shared.append(name)
    if not shared:
        without = next((run for run in runs if not run.scores), runs[-1])
        raise OpencseError(
            f"{without.folder}: holds no scores that all runs have",
            "Pass --data or --pairs, so that the models are evaluated now.",
        )
    scores = {run: run.scores[shared[0]] for run in runs}
    first = runs[0]
    for run in runs:
        if set(scores[run]) != set(scores[first]):
            raise OpencseError(
                f"{run.folder}: scored on {', '.join(scores[run])}, but {first.folder} on {', '.join(scores[first])}",
                "Pass --data or --pairs, so that all are evaluated on the same.",
            )
    return scores


# Texts that are searched; of more, a random sample.
_DOCUMENTS = 5000
# Hits that are compared.
_TOP = 10
# Sentences that are used as queries if none are given.
_SENTENCES = 100
# Queries on the page ...
_LISTED = 40
# ... and how many of them need no click.
_OPENED = 5
# Hits of each list on the page.
_SHOWN = 5
EMBED_AGAIN = "Stored vectors of both models cannot be compared: embed your documents again, and don't mix them."
# Largest difference of a coordinate if the old vector was kept in half precision, or in bf16.
_UPGRADED = 1e-2


@dataclass(frozen=True)
class SearchHit:
    """One hit of a search.

    Attributes:
        text: The text.
        cosine: Its similarity to the query; the reranker's score if the model has a meaning block.
        agreement: How far query and text claim the same, from −1 to 1; None without a block.
    """

    text: str
    cosine: float
    agreement: float | None = None


@dataclass(frozen=True, kw_only=True)
class SearchPair:
    """The first ten hits of both models for one query."""

    query: str
    old: tuple[SearchHit, ...]
    new: tuple[SearchHit, ...]

    @property
    def shared(self) -> int:
        """Number of hits in both lists."""
        return len({hit.text for hit in self.old} & {hit.text for hit in self.new})

    @property
    def same_first(self) -> bool:
        """Whether both models find the same text first."""
        return self.old[0].text == self.new[0].text

    def changed(self, first: int) -> bool:
        """Return whether the lists differ in their first hits, which are all that is shown."""
        return [hit.text for hit in self.old[:first]] != [hit.text for hit in self.new[:first]]


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchComparison(JupyterMixin):
    """Comparison of two models on the same searches.

    Attributes:
        old: Name of the model in use.
        new: Name of the model that may replace it.
        texts: Number of texts searched.
        own_queries: Whether the queries are the user's; otherwise they are sentences of the texts.
        overlap: Share of the first ten hits that both models have, with a 95 % bootstrap interval
            over queries.
        same_first: Share of queries with the same first hit.
        strength: Strength of the meaning block that the new model has next to the old one; None if
            it has none.
        new_hits: Share of new vectors among the ten nearest of a new model's query, while half of
            the documents still have upgraded old vectors; a half if these don't lose ranks. None
            without a block.
        lists: The lists of every query, the most changed first.
    """

    old: str = "old"
    new: str = "new"
    texts: int
    own_queries: bool = True
    overlap: Estimate
    same_first: Estimate
    strength: float | None
    new_hits: float | None
    lists: tuple[SearchPair, ...] = field(repr=False)

    def headline(self) -> str:
        """Return the main result as one sentence."""
        if self.texts < LEAST_SEARCHED or len(self.lists) < LEAST_ROWS:
            return (
                f"Can't say how much {self.new} in place of {self.old} changes: {len(self.lists)} searches of "
                f"{self.texts} texts are too few (at least {LEAST_ROWS} of {LEAST_SEARCHED})."
            )
        kind = "your queries" if self.own_queries else "sentences of your texts as queries"
        stay = 100 * (self.overlap.value or 0)
        first = 100 * (self.same_first.value or 0)
        return (
            f"With {self.new} in place of {self.old}, {stay:.0f} % of the first {_TOP} hits stay and {first:.0f} % of "
            f"{len(self.lists)} searches keep their first hit ({kind})."
        )

    def advice(self) -> str:
        """Return what to do with an index of the old model's vectors."""
        if self.strength is None or self.new_hits is None:
            return EMBED_AGAIN
        return (
            "Your stored vectors stay valid: opencse.debias.meaning_block.upgrade converts them (strength "
            f"{self.strength:.2f}), and as_query converts queries, so that search works as it does now. Switch to full "
            "queries when all documents are embedded again. If you switch half-way, "
            f"{100 * self.new_hits:.0f} % of the first ten hits are among the new vectors (50 % would be neutral). "
            "The new model's hits were reranked with opencse.Reranker."
        )

    def __repr__(self) -> str:
        return f"<SearchComparison: {self.headline()}>"

    def __rich__(self) -> RenderableType:
        lines: list[Text] = []
        changed = [pair for pair in self.lists if pair.changed(2)]
        for pair in changed[:3]:
            shared = f"{pair.shared} of {len(pair.new)} hits shared"
            lines.append(Text(f"{pair.query}   ({shared})", style="bold"))
            for name, hits in (("old", pair.old), ("new", pair.new)):
                for rank, hit in enumerate(hits[:2], 1):
                    lines.append(Text(f"  {name} {rank}  {hit.cosine:.2f}  {short(hit.text, 100)}"))
        return Group(*lines, Text(self.advice()), Text(self.headline(), style="bold"))


def compare_search(
    old: Any,
    new: Any,
    texts: Any,
    *,
    queries: Any = None,
    column: str | None = None,
    out: str | Path | None = None,
) -> SearchComparison:
    """Search the same texts with two models, and compare the lists of hits.

    Args:
        old: The model in use: a model folder, a run, a hub id, `minilm`, or a
            `SentenceTransformer`.
        new: The model that may replace it.
        texts: Your documents, as for `check`.
        queries: Searches that your users make: a list, a file with one per line, or a table with a
            column `query`. By default sentences of the texts.
        column: Column of a table that holds the text; by default `text`, or the likeliest by name.
        out: Folder for `search.html`, a page with the lists, and `search.json`.

    Returns:
        Overlap of the lists, whether stored vectors stay usable, and the lists; it displays itself
        in a notebook.

    Raises:
        OpencseError: A file cannot be read, or there is no such model.
    """
    if out is not None:
        output_folder(out)
    passages = collect_passages(texts, column=column)
    rng = np.random.default_rng(0)
    searched = _sampled(passages, _DOCUMENTS, rng)
    if queries is not None:
        searches = collect_queries(queries)
    else:
        sentences = dict.fromkeys(text for passage in searched for text in passage.sentences)
        searches = _sampled(list(sentences), _SENTENCES, rng)
    sources = [model_source(old), model_source(new)]
    old_model, new_model = [load_encoder(source) for source in sources]
    old_embedder = Embedder(old_model, precision="auto", progress="encoding")
    new_embedder = Embedder(new_model, precision="auto", progress="encoding")
    compared = compare_searches(
        old_embedder,
        new_embedder,
        [passage.text for passage in searched],
        searches,
        reranker_of(new_model, new_embedder.precision),
        (own_similarity(old_model), own_similarity(new_model)),
    )
    old_name, new_name = short_names(sources)
    result = replace(compared, old=old_name, new=new_name, own_queries=queries is not None)
    if out is not None:
        write_page(out, "search", render_search_comparison(result), asdict(result))
    return result


def _sampled(items: Sequence[Item], count: int, rng: np.random.Generator) -> list[Item]:
    """Return some items at random in their order, or all of them if there are not so many."""
    chosen = rng.permutation(len(items))[:count].tolist()
    return [items[i] for i in sorted(chosen)]


def compare_searches(
    old: Encode,
    new: Encode,
    texts: Sequence[str],
    queries: Sequence[str],
    reranker: Reranker | None = None,
    similarities: tuple[Similarity | None, Similarity | None] = (None, None),
) -> SearchComparison:
    """Search the same texts with two models, and compare the lists of hits.

    Args:
        old: The model in use, from n texts to a matrix of shape (n, dim).
        new: The other model.
        texts: The texts to search.
        queries: The queries; a query that is also a text does not find itself.
        reranker: Sorts the new model's hits, and encodes in its place; None for the cosine.
        similarities: The similarity of the old and of the new model, of vectors as they are; None
            for the cosine.

    Raises:
        OpencseError: There are fewer than two different texts.
    """
    texts = list(dict.fromkeys(texts))
    if len(texts) < 2:
        raise OpencseError("one text cannot be searched", "Give at least two different texts.")
    old_similarity, new_similarity = similarities
    with_roles = [*as_documents(texts), *as_queries(queries)]
    old_vectors = encode_roles(old, with_roles)
    old_lists = _hits(texts, queries, old_vectors, old_similarity)
    if reranker is None:
        new_vectors = encode_roles(new, with_roles)
        new_lists = _hits(texts, queries, new_vectors, new_similarity)
    else:
        # The reranker's rows begin with the model's vectors; encoding twice would take twice as long.
        packed = reranker.packed([*texts, *queries], show_progress_bar=True)
        new_vectors = packed[:, : reranker.length]
        new_lists = _hits(texts, queries, packed, reranker.similarity)
        new_lists = _with_agreement(new_lists, texts, packed, reranker)
    pairs = []
    for query, old_hits, new_hits in zip(queries, old_lists, new_lists, strict=True):
        pairs.append(SearchPair(query=query, old=old_hits, new=new_hits))

    count = len(texts)
    old_unit = unit_rows(old_vectors)
    new_unit = unit_rows(new_vectors)
    strength, fresh_hits = _index_upgrade(old_unit[:count], new_unit[:count], new_unit[count:])
    overlaps = np.array([pair.shared / len(pair.new) for pair in pairs])
    same_first = np.array([pair.same_first for pair in pairs])
    return SearchComparison(
        texts=count,
        overlap=mean_estimate(overlaps),
        same_first=mean_estimate(same_first),
        strength=strength,
        new_hits=fresh_hits,
        lists=tuple(sorted(pairs, key=lambda pair: (pair.shared, pair.same_first))),
    )


def _index_upgrade(
    old: np.ndarray, new: np.ndarray, queries: np.ndarray
) -> tuple[float | None, float | None]:
    """Return the strength of the block that a new model has next to the old one, and try a half-upgraded index.

    Args:
        old: Unit vectors of n documents by the old model, (n, d).
        new: Unit vectors of the same documents by the new model, (n, d').
        queries: Unit vectors of queries by the new model, (m, d').

    Returns:
        The strength, and the share of new vectors among the first hits if every second document
        has one; None and None if the new model is not the old one with a block.
    """
    d = old.shape[1]
    # A block adds dimensions, the last of which is 0 in documents, and leaves the others as they are.
    if new.shape[1] <= d or new[:, -1].any():
        return None, None
    begin = new[:, :d]
    if np.abs(unit_rows(begin) - old).max() > _UPGRADED:
        return None, None
    ratios = np.linalg.norm(new[:, d:], axis=1) / np.linalg.norm(begin, axis=1)
    strength = float(np.median(ratios))
    fresh = np.arange(len(old)) % 2 == 0
    index = np.where(fresh[:, None], new, upgrade(old, strength, new.shape[1]))
    nearest = np.argsort(-(queries @ index.T), axis=1, kind="stable")[:, :_TOP]
    return strength, float(fresh[nearest].mean())


def _hits(
    texts: Sequence[str],
    queries: Sequence[str],
    vectors: np.ndarray,
    similarity: Similarity | None = None,
) -> Iterator[tuple[SearchHit, ...]]:
    """Yield the first hits of each query; the vectors are those of the texts, then of the queries."""
    if similarity is None:
        vectors = unit_rows(vectors)
    of_texts = vectors[: len(texts)]
    of_queries = vectors[len(texts) :]
    # One hit more, because a query that is a text finds itself first.
    found = search(of_queries, of_texts, _TOP + 1, similarity=similarity)
    for query, rows, cosines in zip(queries, *found, strict=True):
        hits = []
        for row, cosine in zip(rows, cosines, strict=True):
            if texts[row] != query:
                hits.append(SearchHit(texts[row], round(float(cosine), 4)))
        yield tuple(hits[:_TOP])


def _with_agreement(
    lists: Iterable[tuple[SearchHit, ...]],
    texts: Sequence[str],
    packed: np.ndarray,
    reranker: Reranker,
) -> Iterator[tuple[SearchHit, ...]]:
    """Yield the hits of each query with their agreement; the rows are those of the texts, then of the queries."""
    place = {text: row for row, text in enumerate(texts)}
    parts = reranker.unpacked(packed)
    for number, hits in enumerate(lists):
        query = np.full(len(hits), len(texts) + number)
        found = [place[hit.text] for hit in hits]
        values = agreement(parts[query], parts[found])
        with_agreement = []
        for hit, value in zip(hits, values, strict=True):
            with_agreement.append(replace(hit, agreement=round(float(value), 4)))
        yield tuple(with_agreement)


def render_search_comparison(result: SearchComparison) -> str:
    """Return the page, with both lists of the searches whose shown hits differ; texts in it are escaped and clipped."""
    changed = [pair for pair in result.lists if pair.changed(_SHOWN)][:_LISTED]
    charts = []
    if can_draw() and result.lists:
        counts = [0] * (_TOP + 1)
        for pair in result.lists:
            counts[pair.shared] += 1
        charts.append(
            chart(
                "How much of each list stays?",
                f"Searches by the number of their first {_TOP} hits that both models find. Far to the right, little "
                "changes.",
                partial(draw_shared, counts),
            )
        )
    return render_template(
        "search.html.j2",
        result=result,
        charts=charts,
        lists=changed,
        opened=_OPENED,
        shown_hits=_SHOWN,
    )
