"""Documents from sentences that follow each other: what DeCLUTR trains on.

    python benchmarks/systems/documents.py SENTENCES -o documents.jsonl --lines 16

SENTENCES has one sentence a line, in the order of the articles. Each document is the next `--lines`
of them; where an article ends is not known, so some documents hold the end of one and the begin of
the next.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from opencse.text.corpus import Corpus


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sentences", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=16, help="sentences of a document")
    options = parser.parse_args()
    texts = [text for (text,) in Corpus(options.sentences).rows(("text",)) if text]
    documents = []
    for start in range(0, len(texts) - options.lines + 1, options.lines):
        documents.append(" ".join(texts[start : start + options.lines]))
    with options.out.open("w", encoding="utf-8") as file:
        for document in documents:
            file.write(json.dumps({"text": document}, ensure_ascii=False) + "\n")
    words = sorted(len(document.split()) for document in documents)
    print(
        f"{len(documents):,} documents of {words[0]} to {words[-1]} words, median {words[len(words) // 2]}"
    )


if __name__ == "__main__":
    main()
