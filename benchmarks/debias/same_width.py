"""Vectors of the old width that follow meaning: v, turned to its principal axes and cut to half of its numbers.

    python benchmarks/debias/same_width.py TEXTS DATA MODEL -o OUT.csv [--strengths 0.5,0.6]

TEXTS has sentences, one per line, of which the first 8,000 give the axes; MODEL is a folder with a block. Each strength
is measured whole and cut (examples/same_width.py makes such a model).
"""

from __future__ import annotations

import argparse
from itertools import islice
from pathlib import Path

import numpy as np
from curve import Encoded
from measures import Measures, write_table

from opencse.text.corpus import Corpus

SENTENCES = 8_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("model")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--strengths", default="0.5,0.6")
    options = parser.parse_args()
    encoded, measures = Encoded(options.model), Measures(options.data, None, held_out=True)
    texts = list(islice(Corpus(options.texts).texts(), SENTENCES))
    columns = {"untouched": [measures(encoded.at(0.0), final=True)]}
    for strength in map(float, options.strengths.split(",")):
        whole = encoded.at(strength)
        fitted = whole(texts)
        axes = np.linalg.svd(fitted, full_matrices=False)[2][: fitted.shape[1] // 2]
        columns[f"β {strength:g}"] = [measures(whole, final=True)]
        columns[f"β {strength:g}, old width"] = [measures(lambda t, e=whole, a=axes: e(t) @ a.T, final=True)]
        write_table(options.out, columns)
        print(f"β {strength:g}", flush=True)


if __name__ == "__main__":
    main()
