"""What a meaning block gains and costs, by its strength; every text is encoded once.

    python benchmarks/debias/curve.py DATA NAME=MODEL[,MODEL...]... -o OUT.csv [--strengths 0,0.5] [--final]

MODEL is a folder with a block (OUT/model of `opencse run debias`); of several, one for each seed, a
cell has mean and standard deviation. DATA is the folder of the evaluation sets. Columns are the
strengths that are asked for and the model's own, which is the only one of a model of
`--same-width`; what a model scored is kept beside it (`curve.json`). Rows are measures of
measures.py, with `--final` those on test sets too, and:

complaints      block/complaints/meaning.tsv and search.tsv: the same meaning above the opposite, in
percent
false hits      of the contradictions of XNLI dev, the share above the threshold that 90 % of the
entailed pairs pass
CondaQA         human edits of sentences with a negation: the paraphrase edit above the affirmative
one (`--held-out`)
Cranfield       nDCG@10 (`--held-out`)

`--rescored` adds a column by `opencse.Reranker`, which sorts the first hits of a search. `--by-kind`
writes a second table: complaints by kind, in percent. Nothing is tuned on what `--held-out`
measures.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from measures import Measures, cell, write_table

from opencse.debias.meaning_block import block_of, rescale
from opencse.debias.reranker import Reranker
from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation.task import Encode

RESCORED = "rescored"


class Encoded:
    """Vectors at strength 1 of every text that was asked for, each encoded once; at the model's own if they are cut."""

    def __init__(self, model: str) -> None:
        encoder = load_encoder(model, device="cpu")
        block = block_of(encoder)
        assert block is not None
        self.encoder = encoder
        self.block, self.chosen, self.cut = block, block.strength, encoder[-1] is not block
        if not self.cut:
            block.strength = 1.0
        self._encode: Encode = Embedder(encoder, precision="bf16").encode
        self._place: dict[str, int] = {}
        self._vectors = np.zeros((0, encoder.get_embedding_dimension() or 0), np.float32)

    def at(self, strength: float) -> Encode:
        """Return the function from texts to vectors of a strength."""
        width = int(self.block.config["width"])
        return self if self.cut else lambda texts: rescale(self(texts), 1.0, strength, width)

    def reranked(self) -> tuple[Encode, Reranker]:
        """Return the function from texts to what the reranker compares, at the model's own strength, and the reranker."""
        self.block.strength = self.chosen
        reranker = Reranker(self.encoder, precision="bf16")
        rows: dict[str, np.ndarray] = {}

        def packed(texts: Sequence[str]) -> np.ndarray:
            new = [text for text in dict.fromkeys(texts) if text not in rows]
            if new:
                self.block.strength = self.chosen
                rows.update(zip(new, reranker.packed(new), strict=True))
                self.block.strength = self.chosen if self.cut else 1.0
            return np.stack([rows[text] for text in texts])

        return packed, reranker

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors at strength 1."""
        new = [text for text in dict.fromkeys(texts) if text not in self._place]
        if new:
            self._place |= {text: len(self._place) + i for i, text in enumerate(new)}
            self._vectors = np.concatenate([self._vectors, self._encode(new)])
        return self._vectors[[self._place[text] for text in texts]]


def scored(
    model: str, strengths: list[float], measures: Measures, *, final: bool, rescored: bool
) -> tuple[float, dict[float | str, Any]]:
    """Return the strength of a model, and its measures at this one, at others, and by the block's own similarity."""
    known = Path(model).parent / "curve.json"
    found = json.loads(known.read_text(encoding="utf-8")) if known.is_file() else {}
    encoded = Encoded(model)
    for strength in [encoded.chosen] if encoded.cut else sorted({*strengths, encoded.chosen}):
        if str(strength) not in found:
            found[str(strength)] = measures(encoded.at(strength), final=final)
            known.write_text(json.dumps(found), encoding="utf-8")
    if rescored and RESCORED not in found:
        packed, reranker = encoded.reranked()
        found[RESCORED] = measures(packed, final=final, similarity=reranker.similarity)
        known.write_text(json.dumps(found), encoding="utf-8")
    return encoded.chosen, {
        key if key == RESCORED else float(key): values for key, values in found.items()
    }


def write_kinds(path: Path, columns: dict[str, list[dict[str, float | None]]]) -> None:
    """Write complaints by kind: triplets and searches."""
    mark = "complaints, meaning kind: "
    kinds = [
        key.removeprefix(mark) for key in next(iter(columns.values()))[0] if key.startswith(mark)
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["meaning, searches, %", *columns])
        for kind in kinds:
            keys = [f"complaints, {name} kind: {kind}" for name in ("meaning", "search")]
            cells = (
                ", ".join(cell([one.get(key) for one in runs], 0) for key in keys)
                for runs in columns.values()
            )
            writer.writerow([kind, *cells])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("models", nargs="+", metavar="NAME=MODEL[,MODEL...]")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--strengths", default="0,0.5", help="beside that of the model")
    parser.add_argument("--final", action="store_true", help="test sets, too")
    parser.add_argument(
        "--rescored", action="store_true", help="by the block's own similarity, too"
    )
    parser.add_argument("--held-out", action="store_true", help="CondaQA and Cranfield, too")
    parser.add_argument("--by-kind", type=Path, metavar="CSV", help="complaints by kind, too")
    options = parser.parse_args()
    measures = Measures(options.data, held_out=options.held_out)
    strengths = [*map(float, options.strengths.split(","))]
    columns: dict[str, list[dict[str, float | None]]] = {}
    for name, paths in (one.split("=", 1) for one in options.models):
        settings = {"final": options.final, "rescored": options.rescored}
        runs = [scored(model, strengths, measures, **settings) for model in paths.split(",")]
        if 0.0 in runs[0][1] and (untouched := [runs[0][1][0.0]]) not in columns.values():
            columns[f"{name}, untouched"] = untouched
        own = sorted({chosen for chosen, _ in runs})
        columns[f"{name}, β {' to '.join(f'{each:g}' for each in own)} (chosen)"] = [
            found[at] for at, found in runs
        ]
        if options.rescored and all(RESCORED in found for _, found in runs):
            columns[f"{name}, reranked"] = [found[RESCORED] for _, found in runs]
        for strength in strengths:
            if strength > max(own) and strength in runs[0][1]:
                columns[f"{name}, β {strength:g}"] = [found[strength] for _, found in runs]
    write_table(options.out, columns)
    if options.by_kind:
        write_kinds(options.by_kind, columns)


if __name__ == "__main__":
    main()
