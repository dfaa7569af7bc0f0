"""The command line: one command per file, errors in one line."""

from __future__ import annotations

import sys

import typer

from opencse import __version__
from opencse.cli import build, evaluate, recipes, run, train
from opencse.errors import OpencseError

app = typer.Typer(
    name="opencse",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Sentence embeddings that follow meaning instead of wording, learned without labels.",
    epilog="Start with: `opencse run simcse corpus.txt --backbone minilm -o out/`",
)
app.command()(run.run)
app.command()(train.train)
app.command()(build.build)
app.command()(evaluate.evaluate)
app.add_typer(recipes.app, name="recipes")


@app.callback(invoke_without_command=True)
def _options(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        typer.echo(f"opencse {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; what a user can mend is one line and exit code 2."""
    from opencse.training.loop import Interrupted

    try:
        app()
    except OpencseError as error:
        print(f"opencse: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except Interrupted as stop:
        print(f"opencse: {stop}", file=sys.stderr)  # noqa: T201
        sys.exit(130)


if __name__ == "__main__":
    main()
