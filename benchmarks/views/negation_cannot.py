"""Negations beside the references of CANNOT: how often ours is one of them, up to contraction; and the share of nulls.

    python benchmarks/views/negation_cannot.py --data FOLDER

FOLDER holds `eval/CANNOT/negation_pairs.tsv.gz`. A sentence counts once per source, with all of its
references. Most references of "wikifactcheck" reword the sentence or change a number, so no
insertion of "not" can meet them.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
from collections import Counter, defaultdict
from pathlib import Path

from opencse.text.views.registry import Negation, SourceRow

SPELLINGS = (
    ("can't", "can not"),
    ("cannot", "can not"),
    ("won't", "will not"),
    ("shan't", "shall not"),
)
CLITICS = (
    ("n't", " not"),
    ("'re", " are"),
    ("'m", " am"),
    ("'ve", " have"),
    ("'ll", " will"),
    ("'s", " is"),
)


def spelled_out(text: str) -> str:
    """Undo contractions, case and punctuation."""
    text = text.lower().replace("’", "'")
    for short, full in SPELLINGS + CLITICS:
        text = text.replace(short, full)
    return " ".join(re.findall(r"\w+", text))


def is_insertion(sentence: str, negated: str) -> bool:
    """Whether a reference differs by a negation word (and do) alone."""
    a, b = spelled_out(sentence).split(), spelled_out(negated).split()
    gone, come = Counter(a) - Counter(b), Counter(b) - Counter(a)
    return "not" in (come | gone) and sum(gone.values()) <= 2 and sum(come.values()) <= 3


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=Path)
    args = parser.parse_args()
    references: dict[tuple[str, str], list[str]] = defaultdict(list)
    path = args.data / "eval" / "CANNOT" / "negation_pairs.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            references[row["source"], row["sentence"]].append(row["negated"])
    keys = list(references)
    print(
        "| mode | source | sentences | null | equal | differs in contraction | other |\n|---|---|---|---|---|---|---|"
    )
    for spec in (Negation(), Negation(mode="faithful")):
        views = spec.open()(
            [SourceRow(id=i, text=sentence) for i, (_, sentence) in enumerate(keys)]
        )
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for (source, sentence), view in zip(keys, views, strict=True):
            few = references[source, sentence]
            if view.text is None:
                kind = "null"
            elif view.text in few:
                kind = "equal"
            elif spelled_out(view.text) in map(spelled_out, few):
                kind = "contraction"
            else:
                kind = "other"
            groups = [source, "all"]
            if any(is_insertion(sentence, one) for one in few):
                groups.append("references that insert or drop a not")
            for group in groups:
                counts[group][kind] += 1
        for group, count in sorted(counts.items()):
            size = sum(count.values())
            cells = [
                f"{100 * count[kind] / size:.1f} %"
                for kind in ("null", "equal", "contraction", "other")
            ]
            print(f"| {spec.mode} | {group} | {size} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
