"""Contradictions of `opencse check` to judge by hand: do they contradict their sentences?

    python benchmarks/check/contradictions_sample.py draw FOLDER [--count 200] [--seed 1] [--language de] > sample.tsv
    python benchmarks/check/contradictions_sample.py score sample.tsv [more.tsv …]

`draw` takes a file or a folder of documents, as `opencse check --texts` does, and writes a random
sample of what a check uses: sentences that have both a contradiction and a rewording, each with
every contradiction that a rule makes of it, in the mix in which they occur. The last column,
`contradicts`, is empty: fill it with `yes` or `no`. Two draws from the same texts with the same
seed and the same rules are equal.

`score` prints the share of `yes` with a 95 % Wilson interval, for each kind and over all.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from opencse.evaluation.check.contradictions import SentenceRewriter
from opencse.evaluation.estimate import rate_estimate
from opencse.foundation.errors import OpencseError
from opencse.foundation.tables import read_table
from opencse.text.documents import DocumentPassage, Documents, likely_language
from opencse.text.languages import AUTO, choose_language

COLUMNS = ("kind", "source", "sentence", "contradiction", "contradicts")
JUDGEMENTS = {"yes": True, "no": False}
MOST_PASSAGES = 20_000
OVERSAMPLED = 5  # contradictions made for each one that is drawn

Row = tuple[str, str, str, str]


def draw(
    passages: Sequence[DocumentPassage], count: int, seed: int, language: str = AUTO
) -> list[Row]:
    """Return a random sample of contradictions: kind, source, sentence and contradiction.

    Args:
        passages: The texts.
        count: Number of contradictions; fewer if the texts have fewer.
        seed: Seed of the order of the sentences, of the rules and of the sample.
        language: Code of the language of the texts, or `auto`.
    """
    found: list[Row] = []
    likely = likely_language(passage.text for passage in passages[:500])
    chosen = choose_language(language, likely)
    for chunk in SentenceRewriter(seed, chosen)(passages):
        for each in chunk:
            if each.rewordings:
                source = passages[each.passage].source
                found += [
                    (kind, source, each.text, new) for kind, new in each.contradictions.items()
                ]
        if len(found) >= OVERSAMPLED * count:
            break
    return random.Random(seed).sample(found, min(count, len(found)))


def read_judged(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the kind of each contradiction, and whether it contradicts.

    Raises:
        OpencseError: A judgement is missing or unknown; the message has the line number.
    """
    for line, row in read_table(path):
        if not row:
            continue
        judgement = str(row.get("contradicts") or "").strip().lower()
        if judgement not in JUDGEMENTS:
            raise OpencseError(
                f"{path}, line {line}: contradicts is {judgement!r}", "Write yes or no."
            )
        yield str(row["kind"]), JUDGEMENTS[judgement]


def score(judged: Sequence[tuple[str, bool]]) -> list[str]:
    """Return a line for each kind, and one for all: the share that contradicts, with its interval."""
    groups = {kind: [right for each, right in judged if each == kind] for kind, _ in judged}
    groups["all"] = [right for _, right in judged]
    lines = []
    for name, rights in groups.items():
        share = rate_estimate(sum(rights), len(rights))
        if share.value is not None and share.low is not None and share.high is not None:
            spread = f"{100 * share.low:.1f} to {100 * share.high:.1f} %"
            lines.append(
                f"{name}: {sum(rights)} of {len(rights)}, {100 * share.value:.1f} % ({spread})"
            )
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    modes = parser.add_subparsers(dest="mode", required=True)
    drawing = modes.add_parser("draw")
    drawing.add_argument("texts")
    drawing.add_argument("--count", type=int, default=200)
    drawing.add_argument("--seed", type=int, default=1)
    drawing.add_argument("--language", default=AUTO)
    scoring = modes.add_parser("score")
    scoring.add_argument("judged", type=Path, nargs="+")
    options = parser.parse_args(arguments)
    try:
        if options.mode == "score":
            print("\n".join(score([each for path in options.judged for each in read_judged(path)])))
            return
        passages = list(islice(Documents(options.texts).passages(), MOST_PASSAGES))
        print("\t".join(COLUMNS))
        for row in draw(passages, options.count, options.seed, options.language):
            print("\t".join((*row, "")))
    except OpencseError as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    main()
