"""Join what the block is trained on into one table of rows.

    opencse build debias SENTENCES --only negation --only claim … -o VIEWS
    python benchmarks/debias/block/table.py -o ROWS.parquet --views VIEWS --translated VIEWS_OF_TRANSLATIONS \
      --translations BACK_TRANSLATIONS.parquet --antonyms ANTONYMS.tsv --plain SENTENCES.txt.gz \
      --articles VIEWS_OF_ARTICLES

VIEWS hold rewritings of sentences; VIEWS_OF_TRANSLATIONS those of the sentences and texts that
`--write-translated` writes from BACK_TRANSLATIONS (`text`, `back_translation`). PLAIN are sentences
of which nothing is claimed; VIEWS_OF_ARTICLES questions about the sentences of articles, in their
order (`--only question --only topic_question --only keywords`). Patterns (rows.py) and frames
(frames.py) come with the script. ROWS has the columns `part`, `source` (rows of one source are
never negatives of each other) and a column for each view; train.py says how they are related.
"""

from __future__ import annotations

import argparse
import collections
import gzip
import itertools
import math
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from frames import Row, contexts_of, frame_rows, read_frames
from kinds import Writer
from rapidfuzz.distance import Indel
from rows import antonyms, patterns

R = random.Random(5)
LONG, PLAIN = 34, 30
"""Words from which most rewritten sentences, and all plain ones, are left out."""
PARTS = (
    ("roles", {"roles_exchanged"}),
    ("opposites", {"same_paraphrase", "same_negation"}),
    ("claims", {"claim_reworded", "claim_opposed"}),
    ("reordered", {"reordered"}),
    ("claims_short", {"claim_opposed"}),
    ("contradicted", {"antonym_swap"}),
    ("rest", set[str]()),
)
"""Parts of the rewritten sentences, by the views that a row has; the first that fits."""
MOST = {"rest": 12_000, "contradicted": 20_000, "reordered": 12_000, "claims_short": 12_000}
"""Rows of a part at most."""
OPPOSED = ("negation", "antonym_swap", "claim_opposed", "opposed_1", "negated_paraphrase")
QUERIES = ("question", "topic_question", "keywords")
SAME = ("same_1", "claim_reworded", "same_paraphrase")


def views(folder: Path) -> Iterator[Row]:
    """Yield the rows that `opencse build` wrote, without scores."""
    for path in sorted(folder.glob("part-*.parquet")):
        names = [name for name in pq.read_schema(path).names if "." not in name and name != "id"]
        for record in pq.read_table(path, columns=names).to_pylist():
            yield {column: text for column, text in record.items() if text}


def rewritten(folder: Path) -> Iterator[tuple[str, Row]]:
    """Yield rows of rewritten sentences with their part."""
    counts = collections.Counter[str]()
    for row in views(folder):
        part = next(part for part, needs in PARTS if needs <= set(row))
        if counts[part] < MOST.get(part, math.inf) and (
            len(row["text"].split()) < LONG or R.random() < 0.3
        ):
            counts[part] += 1
            yield part, row


def translations(table: Path) -> dict[str, list[str]]:
    """Return up to four different translations back of each sentence, without the least similar eighth."""
    found = collections.defaultdict[str, list[str]](list)
    for record in pq.read_table(table, columns=["text", "back_translation"]).to_pylist():
        text, other = (
            " ".join((record[name] or "").split()) for name in ("text", "back_translation")
        )
        if (
            4 <= len(text.split()) <= 32
            and 0.6 < len(other) / len(text) < 1.5
            and other.lower() != text.lower()
        ):
            found[text].append(other)
    return {text: chosen for text, others in found.items() if (chosen := varied(text, others))}


def varied(text: str, others: list[str]) -> list[str]:
    """Return the translations that share least words with the sentence and with each other."""
    ranked = sorted(
        dict.fromkeys(others),
        key=lambda other: Indel.normalized_similarity(text.split(), other.split()),
    )
    chosen: list[str] = []
    for other in ranked[len(ranked) // 8 :]:
        if all(Indel.normalized_similarity(other.split(), one.split()) < 0.85 for one in chosen):
            chosen.append(other)
    return chosen[:4]


def paraphrased(table: Path, folder: Path) -> Iterator[tuple[str, Row]]:
    """Yield sentences with translations, their contradictions, and those of the first two translations."""
    known = {row["text"]: row for row in views(folder)}
    for text, others in translations(table).items():
        row = known.get(text, {}) | {f"same_{i}": other for i, other in enumerate(others, 1)}
        for other in reversed(others[:2]):
            for view, column in (
                ("negation", "negated_paraphrase"),
                ("antonym_swap", "opposed_paraphrase"),
            ):
                if view in known.get(other, {}):
                    row[column] = known[other][view]
        if {"negation", "antonym_swap", "negative_word"} & set(row):
            yield "paraphrases", row


def in_passages(row: Row, sentences: list[str]) -> Row:
    """Return a row, for some with a long text that claims nothing of it, or with its claims in a passage."""
    row = dict(row)
    if R.random() < 0.12:
        row["long"] = " ".join(R.sample([*R.sample(sentences, 2), row["text"]], 3))
    opposed = [column for column in OPPOSED if column in row]
    if opposed and R.random() < 0.15:
        same = [column for column in SAME if column in row]
        own = row[R.choice(same) if same and R.random() < 0.7 else "text"]
        pair, beside = (own, row[R.choice(opposed)]), R.choice(sentences)
        first = R.random() < 0.5
        row["context_same"], row["context_opposed"] = (
            f"{beside} {x}" if first else f"{x} {beside}" for x in pair
        )
    return row


def passages(sentences: list[Row]) -> Iterator[Row]:
    """Yield passages of 90 to 180 words, each with one that overlaps it, a sentence of each, and questions about it."""
    start = 0
    while start + 40 < len(sentences):
        words = np.cumsum([len(row["text"].split()) for row in sentences[start : start + 40]])
        end = start + 1 + int(np.searchsorted(words, R.randint(90, 160)))
        middle = (start + end) // 2
        passage, other = sentences[start:end], sentences[middle : middle + end - start]
        text, long = (" ".join(row["text"] for row in some) for some in (passage, other))
        if max(len(text.split()), len(long.split())) <= 180:
            row = {
                "text": text,
                "long": long,
                "related_1": R.choice(passage)["text"],
                "related_2": other[-1]["text"],
            }
            for view in QUERIES:
                if asked := [sentence[view] for sentence in passage if view in sentence]:
                    row[view] = R.choice(asked)
            yield row
        start = max(middle, start + 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--views", type=Path)
    parser.add_argument("--translated", type=Path)
    parser.add_argument("--translations", type=Path)
    parser.add_argument("--antonyms", type=Path)
    parser.add_argument("--plain", type=Path)
    parser.add_argument("--articles", type=Path)
    parser.add_argument("--rows", type=int, default=75_000, help="of the plain sentences")
    parser.add_argument("--kinds", type=int, default=0, help="trials of each kind in kinds.py")
    parser.add_argument("--patterns", type=int, default=9_000, help="size of `patterns` in rows.py")
    parser.add_argument(
        "--write-translated", action="store_true", help="write the sentences to rewrite to OUT"
    )
    options = parser.parse_args()
    if options.write_translated:
        chosen = (
            line
            for text, others in translations(options.translations).items()
            for line in (text, *others[:3])
        )
        options.out.write_text(
            "".join(f"{line}\n" for line in dict.fromkeys(chosen)), encoding="utf-8"
        )
        return
    with gzip.open(options.plain, "rt", encoding="utf-8") as lines:
        plain = [
            line.strip()
            for line in itertools.islice(lines, options.rows)
            if len(line.split()) < PLAIN
        ]
    frames = read_frames()
    contexts, numbers = contexts_of(frames), itertools.count()
    rows = [
        (part, next(numbers), in_passages(row, plain)) for part, row in rewritten(options.views)
    ]
    rows += [
        (part, next(numbers), in_passages(row, plain))
        for part, row in paraphrased(options.translations, options.translated)
    ]
    rows += [("patterns", next(numbers), row) for row in patterns(options.patterns)]
    rows += [
        ("antonyms", next(numbers), row) for row in antonyms(options.antonyms, options.translations)
    ]
    for frame in frames:
        source = next(numbers)
        rows += [(part, source, row) for part, row in frame_rows(frame, R, contexts)]
    writer = Writer(seed=5)
    for kind in writer.kinds:
        # Rows of one kind may oppose each other, so that they are never negatives.
        source = next(numbers)
        rows += [(f"kind_{kind}", source, row) for row in writer.write(kind, options.kinds)]
    rows += [("plain", next(numbers), {"text": text}) for text in plain]
    if options.articles:
        first = next(numbers)  # neighbours overlap, so that four at a time are of one source
        rows += [
            ("articles", first + i // 4, row)
            for i, row in enumerate(passages([*views(options.articles)]))
        ]
    columns = sorted({column for _, _, row in rows for column in row})
    table = {
        "part": pa.array([part for part, _, _ in rows]),
        "source": pa.array([n for _, n, _ in rows], pa.int32()),
    }
    table |= {
        column: pa.array([row.get(column) for _, _, row in rows], pa.string()) for column in columns
    }
    pq.write_table(
        pa.table(table),
        options.out,
        compression="zstd",
        compression_level=9,
        use_dictionary=["part"],
    )
    print(f"{len(frames)} frames; rows: {dict(collections.Counter(part for part, _, _ in rows))}")


if __name__ == "__main__":
    main()
