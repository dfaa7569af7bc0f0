"""What a polarity head on the frozen encoder is worth, and which targets of `target_similarity` suit it.

    python benchmarks/debias/polarity.py VIEWS DATA --order ORDER -o benchmarks/results/debias-polarity.jsonl

VIEWS are built views with the columns that targets.toml reads; DATA is the folder of the evaluation sets; ORDER are
other sentences with `reordered` and `swapped`. Only the head is trained. The similarity of two sentences is then the
target itself, c - w (1 - p) max(c, 0)^k, with c the cosine of the untouched model and p that of the head. A twelfth of
the rows and a third of the pairs of opposites, chosen by their hash, are kept from training. All figures are of
development sets, by the names of measures.py; the guards and the test sets are read for one similarity alone, the one
named by `--final`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from measures import guards, test_sets
from wording import area, quads, table

import opencse
from opencse.data.mixture import mix_rows
from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.encoder.layer_means import with_layer_means
from opencse.evaluation import DEVELOPMENT_SETS, development_set
from opencse.evaluation.correlation import spearman
from opencse.evaluation.task import Encode, unit_rows
from opencse.io.corpus import Corpus, column_names, read_rows
from opencse.io.files import write_text
from opencse.probing import ProbeSuite, load_probe_data
from opencse.recipes import Recipe, load_recipe
from opencse.training.polarity import PolarityProjection, constructed_pairs, train_head
from opencse.views.rewriting.lexicon import is_held_out_opposite

OPPOSED = {
    "antonym_swap": "text",
    "same_antonym": "text",
    "same_paraphrase": "text",
    "opposed_paraphrase": "paraphrase",
}
HEADS: dict[str, dict[str, Any]] = {
    "last layer, linear": {"depths": (1.0,), "hidden": 0},
    "three layers, linear": {"hidden": 0},
    "three layers, 256 hidden units": {},
}
TARGETS = ((0.3, 3.0), (0.5, 6.0), (0.5, 10.0))
WORD = re.compile(r"[a-z']+")
NOT = {"not", "isn't", "aren't", "wasn't", "weren't", "a", "an"}
Row = dict[str, str | None]
Similarity = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From the numbers of n and of m texts to their similarities, (n, m)."""
Texts = tuple[np.ndarray, np.ndarray]
"""Unit vectors of n texts, and their polarity codes, (n, d) and (n, width)."""


def share(text: str, parts: int) -> bool:
    """Whether a text falls into the first of `parts` equal parts, by its hash."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") % parts == 0


def rows_of(views: Path, recipe: Recipe, seed: int) -> tuple[list[Row], list[Row]]:
    """The rows that the recipe would train the head on, without the opposites held out, and held-out rows."""
    columns = [name for name in column_names(views) if name in recipe.columns]
    head = recipe.polarity_heads["polarity"]
    train: list[Row] = []
    held: list[Row] = []
    for values in read_rows(views, columns):
        row: Row = dict(zip(columns, values, strict=True))
        if share(str(row["text"]), 12):
            held.append(row)
            continue
        for column, source in OPPOSED.items():
            if (text := row.get(column)) and (of := row.get(source)):
                old, new = (set(WORD.findall(each.lower())) - NOT for each in (of, text))
                if any(is_held_out_opposite(a, b, 3) for a in old - new for b in new - old):
                    row[column] = None
        train.append(row)
    with tempfile.TemporaryDirectory() as folder:
        kept, mixture = Path(folder, "kept.parquet"), Path(folder, "mixture.parquet")
        pq.write_table(pa.Table.from_pylist(train, pa.schema([(name, pa.string()) for name in columns])), kept)
        mixed = mix_rows(Corpus(kept), recipe.corpus.parts, mixture, seed=seed)
        names = {view: recipe.views[view].text for view in head.views}
        drawn = islice(mixed.rows(list(names.values())), head.rows)
        return [dict(zip(names, row, strict=True)) for row in drawn], held


class Development:
    """The development sets, as texts and as questions about a similarity."""

    def __init__(self, data: Path, held: list[Row], order: Path) -> None:
        folder = data / "eval"
        self.quads = quads()
        predicates = table(Path(opencse.__file__).parent / "assets" / "probe" / "antonym_predicates.tsv")
        self.unseen = np.repeat([is_held_out_opposite(row["word"], row["opposite"], 3) for row in predicates], 2)
        self.triplets = {
            f"held-out views, {view}": list(_triples(held, view))
            for view in ("negation", "negative_word", "antonym_swap")
        }
        for name in DEVELOPMENT_SETS:
            for t in development_set(name).triplets:
                grade = t.groups.get("grade")
                self.triplets.setdefault(f"dev-{name} grade: {grade}" if grade else f"dev-{name}", []).append(
                    (t.anchor, t.positive, t.negative)
                )
        nli = table(folder / "NLI" / "xnli_dev_en_triplets.tsv.gz")
        self.triplets["XNLI"] = [(row["sent0"], row["sent1"], row["hard_neg"]) for row in nli]
        rows = list(read_rows(order, ["text", "reordered", "swapped"]))
        self.order = [[(str(row[0]), str(row[i])) for row in rows if row[i]] for i in (1, 2)]
        self.sts = {"STS-B": table(folder / "STSB" / "dev.tsv.gz"), "SICK-R": table(folder / "SICKR" / "train.tsv.gz")}
        draw = random.Random(1)
        self.known, self.asked = (
            draw.sample(table(folder / "CLINC150" / f"{part}.tsv.gz"), n) for part, n in (("train", 3000), ("dev", 800))
        )
        mrpc = [row for row in table(folder / "MRPC" / "train.tsv.gz") if row["label"] == "1"][:700]
        self.paraphrases = [(row["sentence1"], row["sentence2"]) for row in mrpc]
        groups = [*self.quads.values(), *self.triplets.values(), *self.order, self.paraphrases]
        texts = [text for group in groups for row in group for text in row]
        texts += [row[side] for rows in self.sts.values() for row in rows for side in ("sentence1", "sentence2")]
        self.texts = list(dict.fromkeys([*texts, *(row["text"] for row in (*self.known, *self.asked))]))
        self.place = {text: i for i, text in enumerate(self.texts)}

    def measure(self, similarity: Similarity) -> dict[str, float]:
        """All figures of one similarity."""

        def numbers(texts: list[str]) -> np.ndarray:
            return np.array([self.place[text] for text in texts])

        def side(rows: list[tuple[str, ...]], i: int) -> np.ndarray:
            pairs = [(row[0], row[i]) for row in rows]
            return np.concatenate(
                [
                    np.diag(similarity(numbers([a for a, _ in part]), numbers([b for _, b in part])))
                    for part in (pairs[start : start + 256] for start in range(0, len(pairs), 256))
                ]
            )

        found: dict[str, float] = {}
        for kind, rows in self.quads.items():
            right = side(rows, 1) > np.maximum(side(rows, 2), side(rows, 3))
            found[f"antonyms, {kind}"] = 100 * right.mean()
            if kind == "affirmed":
                found["antonyms, seen"] = 100 * right[~self.unseen].mean()
                found["antonyms, unseen"] = 100 * right[self.unseen].mean()
        for name, rows in self.triplets.items():
            found[name] = 100 * float(np.mean(side(rows, 1) > side(rows, 2)))
        found["views, area"] = area(side(self.order[0], 1), side(self.order[1], 1))
        for name, scored in self.sts.items():
            gold = np.array([float(row["score"]) for row in scored])
            found[name] = 100 * spearman(gold, side([(row["sentence1"], row["sentence2"]) for row in scored], 1))
        known, asked = (numbers([row["text"] for row in part]) for part in (self.known, self.asked))
        labels = [self.known[i]["label"] for i in similarity(asked, known).argmax(axis=1)]
        found["CLINC"] = 100 * float(np.mean([a == row["label"] for a, row in zip(labels, self.asked, strict=True)]))
        first, second = (numbers([pair[i] for pair in self.paraphrases]) for i in (0, 1))
        found["MRPC"] = 100 * float(np.mean(similarity(first, second).argmax(axis=1) == np.arange(len(first))))
        return found


def _triples(rows: list[Row], view: str) -> Iterator[tuple[str, str, str]]:
    for row in rows:
        anchor, paraphrase, other = row["text"], row.get("paraphrase"), row.get(view)
        if anchor and paraphrase and other:
            yield anchor, paraphrase, other


def target(a: Texts, b: Texts, strength: float, power: float) -> np.ndarray:
    """The targets of n and m texts, (n, m)."""
    cosines = a[0] @ b[0].T
    return cosines - strength * (1 - a[1] @ b[1].T) * np.clip(cosines, 0, None) ** power


@dataclass(frozen=True)
class Frozen:
    """The untouched model, and a polarity head that reads the averages of its layers.

    Args:
        plain: From n texts to the untouched model's vectors.
        layers: From n texts to the averages of layers, the last layer first.
        head: The head.
    """

    plain: Encode
    layers: Encode
    head: PolarityProjection

    def __call__(self, texts: Sequence[str]) -> Texts:
        """Encode n texts."""
        return unit_rows(self.plain(texts)), self.codes(self.layers(texts))

    def codes(self, averages: np.ndarray) -> np.ndarray:
        """The head's codes (n, width), of as many layers as it reads."""
        with torch.no_grad():
            return self.head.encode(torch.from_numpy(averages[:, : self.head.settings["inputs"]])).numpy()


def similarity_of(texts: Texts, strength: float, power: float) -> Similarity:
    """The targets of encoded texts, by their numbers."""

    def similarity(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        return target((texts[0][i], texts[1][i]), (texts[0][j], texts[1][j]), strength, power)

    return similarity


def encoder_of(frozen: Frozen, strength: float, power: float) -> Encode:
    """From n texts to vectors (n, n) whose cosines are the targets, all divided by one number.

    A symmetric matrix becomes a Gram matrix once enough is added to its diagonal, and nothing that ranks or correlates
    similarities sees that. Time grows with n³, memory with n². Vectors of different calls cannot be compared.
    """

    def encode(texts: Sequence[str]) -> np.ndarray:
        similarity, numbers = similarity_of(frozen(texts), strength, power), np.arange(len(texts))
        gram = torch.empty(len(texts), len(texts))
        for start in range(0, len(texts), 1024):
            rows = numbers[start : start + 1024]
            gram[rows] = torch.from_numpy(similarity(rows, numbers))
        added = 0.25
        while True:
            gram.diagonal().add_(added)
            factor, failed = torch.linalg.cholesky_ex(gram)
            if not failed:
                return factor.numpy()
            added *= 2

    return encode


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("views", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--order", type=Path, required=True)
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the recipe")
    parser.add_argument("--final", metavar="SIMILARITY", help="take guards and test sets of this one as well")
    options = parser.parse_args()
    recipe = load_recipe(
        Path(__file__).with_name("targets.toml"),
        having=["paraphrases"],
        overrides=["build.paraphrase.path=unused", *options.set],
    )
    suite = ProbeSuite(load_probe_data(data=options.data)) if options.final else None
    lines = [line for seed in options.seeds for line in measured(options, recipe, seed, suite)]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    write_text(options.out, text)


def measured(
    options: argparse.Namespace, recipe: Recipe, seed: int, suite: ProbeSuite | None
) -> Iterator[dict[str, Any]]:
    """The untouched model, and each head and target of one seed."""
    whole = recipe.polarity_heads["polarity"]
    train, held = rows_of(options.views, recipe, seed)
    development = Development(options.data, held, options.order)
    texts, pairs = constructed_pairs(train, whole)
    plain = Embedder(load_encoder(options.backbone, pooling="backbone"), precision="auto").encode
    untouched = unit_rows(plain(development.texts))

    def line(name: str, measures: Mapping[str, float | None]) -> dict[str, Any]:
        rounded = {key: None if value is None else round(value, 4) for key, value in measures.items()}
        return {"similarity": name, "seed": seed, "measures": rounded}

    if seed == options.seeds[0]:  # it is the same for all
        yield line("untouched", development.measure(lambda i, j: untouched[i] @ untouched[j].T))
    model = with_layer_means(load_encoder(options.backbone, pooling="backbone"), whole.depths)
    layers = Embedder(model, precision="auto").encode
    trained_on, asked = layers(texts), layers(development.texts)
    for label, changes in HEADS.items():
        settings = replace(whole, **changes)
        width = trained_on.shape[1] * len(settings.depths) // len(whole.depths)  # the last layer comes first
        started = time.process_time()
        head = PolarityProjection(width, settings.width, settings.hidden)
        train_head(head, torch.from_numpy(trained_on[:, :width].copy()), pairs, settings, seed=seed)
        seconds = round(time.process_time() - started, 1)
        frozen = Frozen(plain, layers, head)
        codes = frozen.codes(asked)
        for strength, power in TARGETS:
            name = f"{label}, w {strength:g}, k {power:g}"
            measures: dict[str, float | None] = {
                **development.measure(similarity_of((untouched, codes), strength, power))
            }
            if suite and name == options.final:
                encode = encoder_of(frozen, strength, power)
                measures |= guards(encode) | test_sets(suite, encode)
            yield line(name, measures) | {"seconds": seconds}


if __name__ == "__main__":
    main()
