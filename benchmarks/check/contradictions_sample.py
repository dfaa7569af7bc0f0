"""Contradictions of `opencse check` to judge by hand: do they contradict their sentences?

    python benchmarks/check/contradictions_sample.py CORPUS [--count 100] [--skip 0] [--seed 1] > sample.tsv

The sample is drawn from what `check` uses: sentences that have both a contradiction and a rewording, each with every
contradiction that a rule makes of it, in the mix in which they occur. `--skip` passes over lines judged before.
"""

from __future__ import annotations

import argparse
import random
from itertools import islice

from opencse.data.documents import DocumentPassage
from opencse.io import demo
from opencse.io.corpus import read_texts
from opencse.probing.contradictions import SentenceRewriter, rewrite_sentences

LINES = 14_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    lines = list(islice(read_texts(demo.corpus(options.corpus)), options.skip, options.skip + LINES))
    passages = [DocumentPassage("corpus", (line,)) for line in lines]
    found: list[tuple[str, str, str]] = []
    for chunk in rewrite_sentences(passages, SentenceRewriter(options.seed), seed=options.seed):
        found += [(kind, s.text, new) for s in chunk if s.rewordings for kind, new in s.contradictions.items()]
        if len(found) >= 5 * options.count:
            break
    print("kind\tsentence\tcontradiction")
    for row in random.Random(options.seed).sample(found, min(options.count, len(found))):
        print("\t".join(row))


if __name__ == "__main__":
    main()
