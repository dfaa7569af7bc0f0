"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Recipe = Annotated[str, typer.Argument(help="A recipe's name (see `opencse recipes`) or a TOML file.")]
Corpus = Annotated[
    str,
    typer.Argument(
        help="Raw sentences: .txt (one per line), .jsonl, .csv, .tsv (each also .gz), .parquet, or a folder of Parquet "
        "files or saved by `datasets`; documents in Markdown or HTML, or a folder of these; "
        "or `demo`, the sample sentences that come with opencse."
    ),
]
Backbone = Annotated[
    str,
    typer.Option(
        help="The model to start from: a folder, a hub id (bert-base-uncased), or a bundled name: minilm, mini-mlm."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Output folder.")]
Dev = Annotated[
    str | None,
    typer.Option(
        help="Scored pairs that choose the best step: a .csv, .tsv or .jsonl file with sentence1, sentence2, score; "
        "`stsb` for STS-B dev below --data; or `none`. By default STS-B dev if --data is given, else none.",
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        envvar="OPENCSE_DATA",
        help="The STS files: a folder with eval/STS12/test.tsv.gz …, or SentEval's data/downstream; or `hub`.",
    ),
]
Guard = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="Your own guards, which must not get worse, beside those that come with opencse. A file of searches, one "
        "per line: what each finds first in your texts today is still found. Or a folder with questions.tsv (group, "
        "question), answers.tsv (question, passage), topics.tsv (topic, text), long.tsv (summary, text), or "
        "searches.txt and documents.txt. For recipes that have guards, such as debias.",
    ),
]
Variant = Annotated[str, typer.Option(help="`sound`, or `faithful`: the system as published, quirks included.")]
Overrides = Annotated[
    list[str], typer.Option("--set", help="Override a value of the recipe; repeatable: --set optimizer.lr=1e-5")
]
Column = Annotated[
    str | None,
    typer.Option(help="Column of a table that holds the text; by default `text`, or the likeliest by name."),
]
Seed = Annotated[int | None, typer.Option(help="Shorthand for --set training.seed=…")]
Seeds = Annotated[
    str | None,
    typer.Option(help="Several runs, one for each seed: 1,2,3 or 1-5, in OUT/seed-1 and so on. See `opencse compare`."),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in the output folder.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the run in the output folder.")]
Device = Annotated[
    str, typer.Option(help="Device: `auto` (an accelerator if there is one), cpu, cuda, cuda:1, mps, xpu.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also print the time of each part.")]
Track = Annotated[
    list[str],
    typer.Option(help="Also log to tensorboard, wandb or trackio; repeatable. metrics.jsonl is always written."),
]


def begin(device: str, *, quiet: bool, verbose: bool) -> None:
    """Apply the options for device and verbosity.

    Raises:
        OpencseError: There is no such device, or both `--quiet` and `--verbose` are given.
    """
    from opencse.foundation.errors import OpencseError
    from opencse.foundation.progress import Verbosity, set_verbosity

    if quiet and verbose:
        raise OpencseError("--quiet and --verbose exclude each other")
    set_verbosity(Verbosity.QUIET if quiet else Verbosity.VERBOSE if verbose else Verbosity.NORMAL)
    if device != "auto":
        from opencse.encoder.device import use_device

        use_device(device)
