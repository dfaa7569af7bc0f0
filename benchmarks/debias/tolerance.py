"""What `selection.tolerance` trades: finished runs, drawn back as far as each tolerance asks, and what they then know.

    python benchmarks/debias/tolerance.py DATA OUT/debias/seed-* --views VIEWS [--tolerances 0.5 1] [-o MODELS]
    python benchmarks/debias/tolerance.py DATA OUT/debias/seed-* --views VIEWS --shares 1 0.75 0.5 0.25

The runs are those of `opencse run debias`, whatever tolerance they had, with the weights that
training ended with: the guard looks anew, or the same share of the way is kept of each (`--shares`). VIEWS as in
wording.py. Prints a table, mean ± deviation over the runs; with `-o` the models are saved as MODELS/TOLERANCE/RUN.
All columns but probe, Oppn., Cont. and STS are development data.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from measures import cell
from wording import Development

from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import PairsTask, TextEmbeddings, distinct_texts, load_sts
from opencse.evaluation.probes import ProbeSuite, load_probe_data
from opencse.training.checkpoint import load_weights
from opencse.training.drawing_back import copy_weights, interpolate, longest_way
from opencse.training.folder import TRAINED_WEIGHTS

SHOWN = {  # what the columns show, and with how many digits
    "antonyms: affirmed · denied · verbs, %": ([f"antonyms, {kind}" for kind in ("affirmed", "denied", "verbs")], 1),
    "word order, area": (["views, area"], 1),
    "probe, %": (["probe, %"], 1),
    "Oppn. · Cont.": (["Oppn.", "Cont."], 3),
    "XNLI · CLINC · MRPC": (["XNLI", "CLINC", "MRPC"], 1),
    "STS-B dev": (["STS-B"], 1),
    "SICK-R train": (["SICK-R"], 1),
    "STS": (["STS"], 2),
    "kept, %": (["kept, %"], 0),
}


class Run:
    """A finished run: the weights before and after all of its training, and the guard's development score."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder = folder
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        self.first, self.share = record["outcome"]["first_score"], record["outcome"]["share"]
        self.encoder = load_encoder(record["backbone"], pooling="backbone")
        self.before = copy_weights(self.encoder)
        if (folder / TRAINED_WEIGHTS).is_file():
            load_weights(self.encoder, folder / TRAINED_WEIGHTS)
            self.after = copy_weights(self.encoder)
        else:
            self.after = copy_weights(load_encoder(folder / "model", pooling="backbone"))
        self.task = PairsTask(pairs=load_sts(data, tasks=["STS-B"], split="dev")[0])
        self.texts = distinct_texts([self.task])

    def score(self) -> float:
        """STS-B dev of the encoder as it is."""
        score = self.task.score(TextEmbeddings(self.texts, Embedder(self.encoder).encode(self.texts))).score
        assert score is not None
        return score

    def draw_back(self, tolerance: float) -> float:
        """Give the encoder the weights that the guard keeps; return which share of the way that is."""
        interpolate(self.encoder, self.before, self.after, 1.0)
        return longest_way(self.encoder, self.before, lambda: self.score() >= self.first - tolerance)

    def keep(self, share: float) -> float:
        """Give the encoder the weights at this share of the way; return it."""
        interpolate(self.encoder, self.before, self.after, share)
        return share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--views", type=Path, help="held-out sentences for wording.py's word order")
    parser.add_argument("--tolerances", type=float, nargs="+", default=[0.25, 0.5, 0.75, 1.0, 1.5, 100.0])
    parser.add_argument("--shares", type=float, nargs="+", help="shares of the way to keep, instead of tolerances")
    parser.add_argument("-o", "--out", type=Path, help="save the models here")
    options = parser.parse_args()
    development, prober = Development(options.data, options.views), ProbeSuite(load_probe_data(data=options.data))
    runs = [Run(folder, options.data) for folder in options.runs]
    print(f"| {'share' if options.shares else 'tolerance'} | {' | '.join(SHOWN)} |")
    print("|---:" * (len(SHOWN) + 1) + "|")
    for asked in options.shares or options.tolerances:
        lines = []
        for folder, run in zip(options.runs, runs, strict=True):
            kept = run.keep(asked) if options.shares else run.draw_back(asked)
            if options.out:
                save_encoder(run.encoder, options.out / f"{asked:g}" / folder.name, "")
            encode = Embedder(run.encoder, precision="auto").encode
            found, values = prober(encode), development.measure(encode)
            assert found.splits is not None
            assert found.transformations is not None
            split = found.splits.averages[1]
            values |= {"Oppn.": split.opposed.value, "Cont.": split.consistent.value}  # the test sets', not STS-B dev's
            values["probe, %"] = 100 * found.transformations.paraphrase_above_negation.value
            lines.append(values | {"STS": statistics.mean(task.score for task in found.sts), "kept, %": 100 * kept})
        cells = (
            " · ".join(cell([line[key] for line in lines], digits) for key in keys) for keys, digits in SHOWN.values()
        )
        print(f"| {asked:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
