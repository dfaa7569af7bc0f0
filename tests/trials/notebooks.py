"""Trials of the functions that notebooks call, with texts, tables and models in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.trials.trial import Expected, Trial
from tests.trials.world import World, not_finite

Made = Callable[[list[str]], Any]


def trials(world: World) -> Iterator[Trial]:
    """Each odd object as a corpus of `train`, as texts and queries of `compare_search`, and as a model."""
    texts = list(world.sentences)
    for name, (make, expected) in _corpora().items():
        yield _call(f"train: {name}", lambda work, m=make: _train(world, m(texts), work), expected)
        if name not in ("a column of its own name",):
            yield _call(f"compare_search: texts {name}", lambda _, m=make: _search(world, m(texts)), expected)
    for name, (make, expected) in _queries().items():
        yield _call(f"compare_search: queries {name}", lambda _, m=make: _search(world, texts, m(texts)), expected)
    for name, (make, expected) in _options(world).items():
        yield _call(name, make, expected)


def _call(name: str, call: Callable[[Path], object], expected: Expected) -> Trial:
    return Trial("notebooks", name, lambda _: [], expected, call=call, check=not_finite)


def _train(world: World, corpus: Any, work: Path, **options: Any) -> object:
    import opencse

    settings = {"backbone": world.model, "out": work / "out", "overrides": ["training.max_steps=2"]}
    return opencse.train(world.recipe, corpus, progress=False, **settings | options)


def _search(world: World, texts: Any, queries: Any = None) -> object:
    import opencse

    return opencse.compare_search(world.encoder, world.other, texts, queries=queries)


def _frame(**columns: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(columns)


def _dataset(**columns: Any) -> Any:
    from datasets import Dataset

    return Dataset.from_dict(columns)


def _twice(texts: list[str]) -> Any:
    import pandas as pd

    return pd.DataFrame([[t, t] for t in texts], columns=["text", "text"])


def _categorical(texts: list[str]) -> Any:
    import pandas as pd

    return pd.DataFrame({"text": pd.Series(texts, dtype="category")})


def _numbered(texts: list[str]) -> Any:
    import pandas as pd

    return pd.DataFrame({0: texts})


def _half(texts: list[str]) -> Any:
    import pandas as pd

    return pd.DataFrame({"text": pd.Series([*texts, "\ud800"], dtype=object)})


def _streamed(texts: list[str]) -> Any:
    return _dataset(text=texts).to_iterable_dataset()


def _several(texts: list[str]) -> Any:
    from datasets import DatasetDict

    return DatasetDict({"train": _dataset(text=texts)})


def _arrays(texts: list[str]) -> Any:
    import numpy as np

    return np.array(texts)


def _corpora() -> dict[str, tuple[Made, Expected]]:
    import pyarrow as pa

    return {
        "a list": (lambda t: t, "works"),
        "a tuple": (tuple, "works"),
        "a generator": (lambda t: (x for x in t), "works"),
        "an array": (_arrays, "works"),
        "a DataFrame": (lambda t: _frame(text=t), "works"),
        "a DataFrame of other columns": (lambda t: _frame(id=range(len(t)), body=t), "works"),
        "a DataFrame with missing cells": (lambda t: _frame(text=[None, math.nan, *t]), "either"),
        "a DataFrame of mixed cells": (lambda t: _frame(text=[*t, 3, {}]), "clear"),
        "a DataFrame of numbers": (lambda t: _frame(text=range(len(t))), "clear"),
        "a DataFrame of lists": (lambda t: _frame(text=[[x] for x in t]), "clear"),
        "a DataFrame of bytes": (lambda t: _frame(text=[x.encode() for x in t]), "clear"),
        "a DataFrame of categories": (_categorical, "either"),
        "a DataFrame with a column twice": (_twice, "clear"),
        "a DataFrame of numbered columns": (_numbered, "either"),
        "an empty DataFrame": (lambda _: _frame(), "clear"),
        "a DataFrame without rows": (lambda _: _frame(text=[]), "clear"),
        "a DataFrame of half surrogates": (_half, "clear"),
        "a Series": (lambda t: _frame(text=t)["text"], "works"),
        "a Dataset": (lambda t: _dataset(text=t), "works"),
        "a Dataset of numbers": (lambda t: _dataset(text=list(range(len(t)))), "clear"),
        "a Dataset without rows": (lambda _: _dataset(text=[]), "clear"),
        "a Dataset without columns": (lambda _: _dataset(), "clear"),
        "a Dataset that is streamed": (_streamed, "either"),
        "a DatasetDict": (_several, "clear"),
        "a table of large strings": (lambda t: pa.table({"text": pa.array(t, pa.large_string())}), "works"),
        "a table of dictionaries": (lambda t: pa.table({"text": pa.array(t).dictionary_encode()}), "either"),
        "a table with a column twice": (lambda t: pa.Table.from_arrays([pa.array(t)] * 2, ["text", "text"]), "clear"),
        "an empty list": (lambda _: [], "clear"),
        "blank texts": (lambda _: ["", " ", "\n"], "clear"),
        "numbers": (lambda _: [1, 2, 3], "clear"),
        "a number among texts": (lambda t: [*t, 3], "clear"),
        "half a surrogate pair": (lambda t: [*t, "\ud800"], "clear"),
        "None among texts": (lambda t: [None, *t], "works"),
        "bytes": (lambda t: t[0].encode(), "clear"),
        "a dictionary": (lambda t: {"text": t}, "clear"),
        "a set": (set, "either"),
        "None": (lambda _: None, "clear"),
        "a number": (lambda _: 3, "clear"),
        "a path with a NUL byte": (lambda _: "a\0b.txt", "clear"),
        "a path too long": (lambda _: "a" * 5000 + ".txt", "clear"),
        "a text in place of a path": (lambda t: t[0], "clear"),
    }


def _queries() -> dict[str, tuple[Made, Expected]]:
    return {
        "a list": (lambda t: t[:3], "works"),
        "a DataFrame": (lambda t: _frame(query=t[:3]), "either"),
        "a Series": (lambda t: _frame(query=t[:3])["query"], "works"),
        "a Dataset": (lambda t: _dataset(query=t[:3]), "either"),
        "an array": (lambda t: _arrays(t[:3]), "works"),
        "an empty list": (lambda _: [], "clear"),
        "blank": (lambda _: ["", " "], "clear"),
        "None among them": (lambda t: [None, *t[:3]], "works"),
        "numbers": (lambda _: [1, 2], "clear"),
        "a number": (lambda _: 3, "clear"),
        "a dictionary": (lambda t: {"query": t}, "clear"),
        "half a surrogate pair": (lambda _: ["\ud800"], "clear"),
    }


def _options(world: World) -> dict[str, tuple[Callable[[Path], object], Expected]]:
    import opencse

    texts = list(world.sentences)

    def compared(old: Any, new: Any = None, **options: Any) -> Callable[[Path], object]:
        return lambda _: opencse.compare_search(old, world.other if new is None else new, texts, **options)

    def trained(**options: Any) -> Callable[[Path], object]:
        return lambda work: _train(world, texts, work, **options)

    def loaded(_: Path) -> object:
        from sentence_transformers import SentenceTransformer

        return opencse.compare_search(SentenceTransformer(str(world.encoder)), world.other, texts)

    return {
        "compare_search: a loaded model": (loaded, "works"),
        "compare_search: None as a model": (compared(None), "clear"),
        "compare_search: a number as a model": (compared(3), "clear"),
        "compare_search: a model that is a NUL byte": (compared("\0"), "clear"),
        "compare_search: 0 documents": (compared(world.encoder, documents=0), "clear"),
        "compare_search: -1 documents": (compared(world.encoder, documents=-1), "clear"),
        "compare_search: 1 document": (compared(world.encoder, documents=1), "either"),
        "compare_search: seed -1": (compared(world.encoder, seed=-1), "clear"),
        "compare_search: 0 words": (compared(world.encoder, words=0), "either"),
        "compare_search: no such precision": (compared(world.encoder, precision="fp8"), "clear"),
        "compare_search: out is empty": (compared(world.encoder, out=""), "either"),
        "train: overrides a text": (trained(overrides="training.max_steps=2"), "clear"),
        "train: overrides without a value": (trained(overrides=["training.max_steps"]), "clear"),
        "train: out with a NUL byte": (trained(out="a\0b"), "clear"),
        "train: out is empty": (trained(out=""), "either"),
        "train: seed a text": (trained(seed="x"), "clear"),
        "train: seed -1": (trained(seed=-1), "clear"),
        "train: backbone None": (trained(backbone=None), "clear"),
    }
