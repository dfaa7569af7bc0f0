"""The published figures of surface similarity, measured again: OssCSE Table 2 and Example 1, DebCSE Tables 1 and 4.

    python benchmarks/views/surface_tables.py --data FOLDER [--views FOLDER]

FOLDER holds `eval/STS*/test.tsv.gz` (with SentEval's text), `eval/STSB` and `eval/NLI`. With
`../papers/osscse.txt` beside it, Example 1 is read from there. `--views` adds the overlap of views
that `opencse build` wrote.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import re
from itertools import groupby
from pathlib import Path

import numpy as np

from opencse.text.surface import consistency_opposition, lexical_overlap, match_error_rate

PUBLISHED = {  # consistent pairs, opposed pairs, median human score, median MER
    "STS12 MSRvid": (406, 344, 2.4, 0.444),
    "STS13 headlines": (495, 255, 2.6, 0.625),
    "STS13 OnWN": (286, 275, 2.4, 0.556),
    "STS14 deft-forum": (251, 199, 2.6, 0.4375),
    "STS14 headlines": (483, 267, 3, 0.6),
    "STS14 images": (461, 289, 3.2, 0.5),
    "STS15 answers-students": (494, 256, 3, 0.75),
    "STS15 headlines": (517, 233, 2.6, 0.625),
    "STS15 images": (548, 202, 2.5, 0.538),
    "STS16 answer-answer": (134, 120, 2, 0.5),
    "STS16 headlines": (160, 89, 2, 0.625),
    "STS16 plagiarism": (153, 77, 3, 0.737),
    "STS16 postediting": (180, 64, 3, 0.416),
    "STS16 question-question": (75, 134, 2, 0.4),
    "STSB train": (3532, 2217, 3, 0.536),
    "STSB test": (855, 524, 2.8, 0.516),
}


def read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def split_row(name: str, rows: list[dict[str, str]], suffix: str) -> str:
    sides = [[row[f"sentence{k}{suffix}"] for row in rows] for k in (1, 2)]
    split = consistency_opposition(*sides, [float(row["score"]) for row in rows])
    counts = f"{split.consistent.sum()} / {(~split.consistent).sum()}"
    published = PUBLISHED.get(name)
    shown = f"{published[0]} / {published[1]}" if published else "not in the table"
    medians = f"{published[2]} / {published[3]}" if published else ""
    exact = "yes" if published and counts == shown else "no" if published else ""
    ours = f"{split.median_score:g} / {split.median_error_rate:.4f}"
    return f"| {name} | {shown} | {counts} | {exact} | {medians} | {ours} |"


def table_2(data: Path) -> None:
    print(
        "| set | published Cont. / Oppn. | ours | equal | published medians | ours |\n|---|---|---|---|---|---|"
    )
    for task in ("STS12", "STS13", "STS14", "STS15", "STS16"):
        rows = read(data / "eval" / task / "test.tsv.gz")
        for subset, group in groupby(rows, key=lambda row: row["subset"]):
            print(split_row(f"{task} {subset}", list(group), "_senteval"))
    for part in ("train", "test"):
        rows = read(data / "eval" / "STSB" / f"{part}.tsv.gz")
        print(split_row(f"STSB {part}", rows, "_senteval"))
        print(
            split_row(f"STSB {part}", rows, "").replace(f"STSB {part}", f"STSB {part}, raw text", 1)
        )


def example_1(paper: Path) -> None:
    if not paper.exists():
        return
    text = paper.read_text(encoding="utf-8").replace("-\n", "")
    example = re.search(
        r"Example 1 Sentence Transformations of “(.*?)”(.*?)\nNegation vs", text, re.DOTALL
    )
    assert example is not None
    source = " ".join(example[1].split())
    found = re.findall(
        r"\([iv]+\) (\w+): (.*?)\s*\(UnSup: .*?MER: ([\d.]+)\)", " ".join(example[2].split())
    )
    print("\n| transformation | printed MER | MER |\n|---|---|---|")
    for name, sentence, printed in found:
        print(f"| {name} | {printed} | {match_error_rate([source], [sentence])[0]:.3f} |")


def overlaps(data: Path, views: Path | None) -> None:
    print("\n| pairs | overlap of positives | overlap of negatives |\n|---|---|---|")
    print("| supervised NLI, published | 0.38 | 0.28 |")
    total: list[tuple[np.ndarray, np.ndarray]] = []
    for name in ("snli_dev", "snli_test", "xnli_dev_en"):
        rows = read(data / "eval" / "NLI" / f"{name}_triplets.tsv.gz")
        anchor, positive, negative = (
            [row[key] for row in rows] for key in ("sent0", "sent1", "hard_neg")
        )
        pair = lexical_overlap(anchor, positive), lexical_overlap(anchor, negative)
        total.append(pair)
        print(f"| {name} ({len(rows)}) | {pair[0].mean():.2f} | {pair[1].mean():.2f} |")
    print("| SimCSE, published | 1.0 | 0.09 |\n| DebCSE, published | 0.56 | 0.21 |")
    if views is not None:
        import pyarrow.parquet as pq

        from opencse.text.views.builder import built_columns

        table = pq.read_table(sorted(views.glob("part-*.parquet")))
        for name in built_columns(next(views.glob("part-*.parquet"))):
            made = [
                (row["text"], row[name])
                for row in table.select(["text", name]).to_pylist()
                if row[name]
            ]
            if made:
                overlap, rate = (
                    measure(*zip(*made, strict=True)).mean()
                    for measure in (lexical_overlap, match_error_rate)
                )
                print(f"| built: {name} ({len(made)}) | {overlap:.2f} (MER {rate:.2f}) | |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--views", type=Path)
    args = parser.parse_args()
    table_2(args.data)
    example_1(args.data.parent / "papers" / "osscse.txt")
    overlaps(args.data, args.views)


if __name__ == "__main__":
    main()
