"""`opencse.compare_search`: which searches change when a model is replaced, and a page to judge them on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.commands.command_line import takes
from opencse.commands.measuring_options import SearchOptions
from opencse.commands.reports.page import output_folder, render_template, write_page
from opencse.encoder.backbone import model_source
from opencse.encoder.embedder import Embedder
from opencse.encoder.loading import load_encoder
from opencse.evaluation import Encode
from opencse.evaluation.probes.estimates import Estimate, mean_estimate
from opencse.evaluation.probes.probe_suite import short_names
from opencse.evaluation.upgrade import IndexUpgrade, index_upgrade
from opencse.foundation.errors import OpencseError
from opencse.foundation.evidence import LEAST_ROWS, LEAST_SEARCHED
from opencse.foundation.unit_rows import unit_rows
from opencse.text.user_text import collect_passages, collect_queries

_DOCUMENTS = 5000  # texts that are searched; more are sampled at random
_TOP = 10  # hits that are compared
_SENTENCES = 100  # used as queries if none are given
_JUDGED = 40  # queries on the page
_SHOWN = 5  # hits of each list on the page


@dataclass(frozen=True, kw_only=True)
class SearchHit:
    """One hit of a search; `other_rank` is that in the list of the other model, from 1, or None if it is not there."""

    text: str
    cosine: float
    other_rank: int | None


@dataclass(frozen=True, kw_only=True)
class SearchPair:
    """The first ten hits of both models for one query."""

    query: str
    old: tuple[SearchHit, ...]
    new: tuple[SearchHit, ...]

    @property
    def shared(self) -> int:
        """Number of hits in both lists."""
        return sum(hit.other_rank is not None for hit in self.new)


@dataclass(frozen=True, kw_only=True, repr=False)
class SearchComparison(JupyterMixin):
    """Comparison of two models on the same searches.

    Attributes:
        old: Name of the model in use.
        new: Name of the model that may replace it.
        texts: Number of texts searched.
        own_queries: Whether the queries are the user's; otherwise they are sentences of the texts.
        overlap: Share of the first ten hits that both models have, with a 95 % bootstrap interval over queries.
        same_first: Share of queries with the same first hit.
        index: How stored vectors of the old model go together with the new one.
        lists: The lists of every query, the most changed first.
    """

    old: str
    new: str
    texts: int
    own_queries: bool
    overlap: Estimate
    same_first: Estimate
    index: IndexUpgrade
    lists: tuple[SearchPair, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as nested dictionaries, the content of `search.json`."""
        return asdict(self)

    def headline(self) -> str:
        """Return the main result as one sentence."""
        kind = "your queries" if self.own_queries else "sentences of your texts as queries"
        if self.texts < LEAST_SEARCHED or len(self.lists) < LEAST_ROWS:
            return (
                f"Can't say how much {self.new} in place of {self.old} changes: {len(self.lists)} searches of "
                f"{self.texts} texts are too few (at least {LEAST_ROWS} of {LEAST_SEARCHED})."
            )
        kept, first = (100 * (share.value or 0) for share in (self.overlap, self.same_first))
        return (
            f"With {self.new} in place of {self.old}, {kept:.0f} % of the first {_TOP} hits stay and {first:.0f} % of "
            f"{len(self.lists)} searches keep their first hit ({kind})."
        )

    def __repr__(self) -> str:
        return f"<SearchComparison: {self.headline()}>"

    def __rich__(self) -> RenderableType:
        lines: list[Text] = []
        for pair in self.lists[:3]:
            lines.append(Text(f"{pair.query}   ({pair.shared} of {len(pair.new)} hits shared)", style="bold"))
            for name, hits in (("old", pair.old), ("new", pair.new)):
                lines += [
                    Text(f"  {name} {i}  {hit.cosine:.2f}  {hit.text[:100]}") for i, hit in enumerate(hits[:2], 1)
                ]
        return Group(*lines, Text(self.index.advice()), Text(self.headline(), style="bold"))


@takes(SearchOptions)
def compare_search(options: SearchOptions) -> SearchComparison:
    """Compare the searches of two models.

    Returns:
        Overlap of the lists, whether stored vectors stay usable, and the lists; it displays itself in a notebook.

    Raises:
        OpencseError: A file cannot be read, or there is no such model.
    """
    if options.out is not None:
        output_folder(options.out)
    found = collect_passages(options.texts, column=options.column, words=options.words)
    rng = np.random.default_rng(0)
    searched = [found[i] for i in sorted(rng.permutation(len(found))[:_DOCUMENTS].tolist())]
    if options.queries is not None:
        asked = collect_queries(options.queries)
    else:
        sentences = list(dict.fromkeys(text for passage in searched for text in passage.sentences))
        asked = [sentences[i] for i in sorted(rng.permutation(len(sentences))[:_SENTENCES].tolist())]
    sources = [model_source(options.old), model_source(options.new)]
    encoders = [Embedder(load_encoder(each), precision="auto", progress="encoding") for each in sources]
    labels = short_names(sources)
    result = compare_searches(
        encoders[0],
        encoders[1],
        [passage.text for passage in searched],
        asked,
        names=(labels[0], labels[1]),
        own_queries=options.queries is not None,
    )
    if options.out is not None:
        write_page(options.out, "search", render_search_comparison(result), result.to_dict())
    return result


def compare_searches(
    old: Encode,
    new: Encode,
    texts: Sequence[str],
    queries: Sequence[str],
    *,
    names: tuple[str, str] = ("old", "new"),
    own_queries: bool = True,
) -> SearchComparison:
    """Search the same texts with two models, and compare the lists of hits.

    Args:
        old: The model in use, from n texts to a matrix of shape (n, dim).
        new: The other model.
        texts: The texts to search.
        queries: The queries; a query that is also a text does not find itself.
        names: Names of the two models.
        own_queries: Whether the queries are the user's.

    Raises:
        OpencseError: There are fewer than two different texts.
    """
    texts = list(dict.fromkeys(texts))
    if len(texts) < 2:
        raise OpencseError("one text cannot be searched", "Give at least two different texts.")
    position = {text: i for i, text in enumerate(texts)}
    own = np.array([position.get(query, -1) for query in queries])
    found, matrices = [], []
    for encode in (old, new):
        vectors = unit_rows(encode([*texts, *queries]))
        matrices.append(vectors)
        similarity = vectors[len(texts) :] @ vectors[: len(texts)].T
        similarity[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
        order = np.argsort(-similarity, axis=1, kind="stable")[:, : min(_TOP, max(1, len(texts) - 1))]
        cosines = np.take_along_axis(similarity, order, axis=1)
        found.append([dict(zip(*each, strict=True)) for each in zip(order.tolist(), cosines.tolist(), strict=True)])
    pairs = [
        SearchPair(query=query, old=_hits(texts, ours, theirs), new=_hits(texts, theirs, ours))
        for query, ours, theirs in zip(queries, *found, strict=True)
    ]
    return SearchComparison(
        old=names[0],
        new=names[1],
        texts=len(texts),
        own_queries=own_queries,
        overlap=mean_estimate(np.array([pair.shared / len(pair.new) for pair in pairs])),
        same_first=mean_estimate(np.array([pair.old[0].text == pair.new[0].text for pair in pairs])),
        index=index_upgrade(matrices[0][: len(texts)], *np.split(matrices[1], [len(texts)])),
        lists=tuple(sorted(pairs, key=lambda pair: (pair.shared, pair.old[0].text == pair.new[0].text))),
    )


def _hits(texts: Sequence[str], found: dict[int, float], other: dict[int, float]) -> tuple[SearchHit, ...]:
    """Return a list of hits, from the cosines by row in their order, and those of the other model."""
    ranks = {row: rank for rank, row in enumerate(other, 1)}
    return tuple(
        SearchHit(text=texts[row], cosine=round(cosine, 4), other_rank=ranks.get(row)) for row, cosine in found.items()
    )


def render_search_comparison(result: SearchComparison, *, seed: int = 0) -> str:
    """Return the page; for each query, the model on the left is drawn at random with the seed."""
    rng = random.Random(seed)
    differ = (
        pair for pair in result.lists if [h.text for h in pair.old[:_SHOWN]] != [h.text for h in pair.new[:_SHOWN]]
    )
    changed = [(pair, rng.random() < 0.5) for pair in islice(differ, _JUDGED)]
    return render_template(
        "search.html.j2",
        result=result,
        lists=[(pair, (pair.new, pair.old) if swap else (pair.old, pair.new)) for pair, swap in changed],
        data=[_record(pair, swap) for pair, swap in changed],
        shown_hits=_SHOWN,
    )


def _record(pair: SearchPair, swap: bool) -> dict[str, str]:
    """Return the data of a judgement: for each side, the first hit that has another rank in the other list."""
    old, new = (
        next(hit.text for rank, hit in enumerate(hits, 1) if hit.other_rank != rank) for hits in (pair.old, pair.new)
    )
    left, right = (new, old) if swap else (old, new)
    return {"query": pair.query, "left": left, "right": right, "new": "left" if swap else "right"}
