"""The learning curve of a pre-training run, as a picture.

    python benchmarks/pretraining/learning_curve.py RUN... -o CURVE

RUN is the folder of `opencse pretrain`, or its metrics.jsonl; several, each of which went on from the one before, are
drawn one behind the other. Writes CURVE.svg and CURVE.png.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from matplotlib.figure import Figure

from opencse.reports.drawing import figure, legend, save
from opencse.reports.palette import Palette


def draw(lines: list[dict], palette: Palette) -> Figure:
    drawn, axes = figure(palette, 2.9)
    trained = [line for line in lines if "loss" in line]
    held_out = [line for line in lines if "dev" in line]
    axes.plot(
        [line["step"] for line in trained],
        [100 * line["accuracy"] for line in trained],
        color=palette.grid,
        label="training sentences",
    )
    axes.plot(
        [line["step"] for line in held_out],
        [line["dev"] for line in held_out],
        color=palette.series[0],
        marker="o",
        markersize=3,
        label="held-out sentences",
    )
    axes.set_xlabel("step")
    axes.set_ylabel("masked tokens guessed right, %")
    axes.set_ylim(bottom=0)
    legend(axes, palette)
    return drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("-o", "--out", type=Path, required=True)
    arguments = parser.parse_args()
    lines: list[dict] = []
    for run in arguments.runs:
        path = run / "metrics.jsonl" if run.is_dir() else run
        before = lines[-1]["step"] if lines else 0
        read = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        lines += [line | {"step": before + line["step"]} for line in read]
    for file in save(lambda palette: draw(lines, palette), arguments.out):
        print(file)


if __name__ == "__main__":
    main()
