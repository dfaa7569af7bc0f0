"""What a polarity head on the frozen encoder is worth, and which targets of `target_similarity` suit it.

    python benchmarks/debias/polarity.py VIEWS DATA --order ORDER -o benchmarks/results/debias-polarity.jsonl

VIEWS are built views with the columns that targets.toml reads; DATA is the folder of the evaluation sets; ORDER are
other sentences with `reordered` and `swapped`. Only the head is trained. The similarity of two sentences is then the
target itself, c - w (1 - p) max(c, 0)^k, with c the cosine of the untouched model and p that of the head. A twelfth of
the rows and a third of the pairs of opposites, chosen by their hash, are kept from training. All figures are of
development sets, by the names of measures.py; the probe and the STS test sets are not read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from wording import area, quads, table

import opencse
from opencse.data.mixture import mix_rows
from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.encoder.layer_means import with_layer_means
from opencse.evaluation import DEVELOPMENT_SETS, development_set
from opencse.evaluation.correlation import spearman
from opencse.io.corpus import Corpus, column_names, read_rows
from opencse.io.files import write_text
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("views", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--order", type=Path, required=True)
    parser.add_argument("--seeds", type=lambda text: [int(seed) for seed in text.split(",")], default=[1, 2, 3])
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the recipe")
    options = parser.parse_args()
    recipe = load_recipe(
        Path(__file__).with_name("targets.toml"),
        having=["paraphrases"],
        overrides=["build.paraphrase.path=unused", *options.set],
    )
    lines = [line for seed in options.seeds for line in measured(options, recipe, seed)]
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    write_text(options.out, text)


def measured(options: argparse.Namespace, recipe: Recipe, seed: int) -> Iterator[dict[str, Any]]:
    """The untouched model, and each head and target of one seed."""
    whole = recipe.polarity_heads["polarity"]
    train, held = rows_of(options.views, recipe, seed)
    development = Development(options.data, held, options.order)
    texts, pairs = constructed_pairs(train, whole)
    plain = Embedder(load_encoder(options.backbone, pooling="backbone"), precision="auto")
    untouched = plain.encode(development.texts)
    untouched = untouched / np.linalg.norm(untouched, axis=1, keepdims=True)

    def line(name: str, similarity: Similarity) -> dict[str, Any]:
        measures = {key: round(value, 2) for key, value in development.measure(similarity).items()}
        return {"similarity": name, "seed": seed, "measures": measures}

    if seed == options.seeds[0]:  # it is the same for all
        yield line("untouched", lambda i, j: untouched[i] @ untouched[j].T)
    model = with_layer_means(load_encoder(options.backbone, pooling="backbone"), whole.depths)
    layers = Embedder(model, precision="auto")
    trained_on, asked = (torch.from_numpy(layers.encode(each)) for each in (texts, development.texts))
    for label, changes in HEADS.items():
        settings = replace(whole, **changes)
        width = trained_on.shape[1] * len(settings.depths) // len(whole.depths)  # the last layer comes first
        means = trained_on[:, :width].contiguous()
        started = time.process_time()
        head = PolarityProjection(width, settings.width, settings.hidden)
        train_head(head, means, pairs, settings, seed=seed)
        seconds = time.process_time() - started
        with torch.no_grad():
            codes = head.encode(asked[:, :width]).numpy()
        for strength, power in TARGETS:

            def similarity(
                i: np.ndarray, j: np.ndarray, codes: np.ndarray = codes, w: float = strength, k: float = power
            ) -> np.ndarray:
                cosines = untouched[i] @ untouched[j].T
                return cosines - w * (1 - codes[i] @ codes[j].T) * np.clip(cosines, 0, None) ** k

            name = f"{label}, w {strength:g}, k {power:g}"
            yield line(name, similarity) | {"seconds": round(seconds, 1)}


if __name__ == "__main__":
    main()
