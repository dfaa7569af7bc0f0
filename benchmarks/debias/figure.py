"""The README's picture: mean cosines of the probe's sentences with what is made of them, before and after `debias`.

    python benchmarks/debias/figure.py minilm OUT/debias/seed-1/model -o OUT/debias

The same as in the report of a run, as OUT/debias.svg and OUT/debias.png.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from wording import embedder

from opencse.commands.reports import figures
from opencse.commands.reports.drawing import save
from opencse.evaluation.probes import ProbeSuite, load_probe_data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    prober = ProbeSuite(load_probe_data())
    name = Path(options.before).name
    models = {name: prober(embedder(options.before)), f"{name} + debias": prober(embedder(options.after))}
    save(lambda palette: figures.means(models, palette), options.out)


if __name__ == "__main__":
    main()
