"""`opencse recipes`: list the packaged recipes, or show one in full."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    invoke_without_command=True, help="List the recipes that come with opencse, or show one (`recipes show NAME`)."
)


@app.callback()
def list_recipes(context: typer.Context) -> None:
    """List the recipes with title, paper and the text columns that they need."""
    if context.invoked_subcommand is not None:
        return
    from rich.console import Console

    from opencse.commands.recipes import list_recipes as listed

    Console().print(listed())


@app.command("show")
def show(
    name: Annotated[str, typer.Argument(help="A recipe's name or TOML file.")],
    backbone: Annotated[
        str | None, typer.Option(help="Apply the settings published for this backbone (folder, hub id or name).")
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="Apply the settings of a backbone family: bert-base, roberta-large, minilm, …")
    ] = None,
    variant: Annotated[str, typer.Option(help="`sound`, or `faithful`: as published, quirks included.")] = "sound",
    overrides: Annotated[list[str], typer.Option("--set", help="Override a value: --set optimizer.lr=1e-5")] = [],  # noqa: B006
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="Compare the recipe with the settings of the paper and its code, with their sources."
        ),
    ] = False,
) -> None:
    """Print a recipe as it would be used, with all inherited settings.

    With --published: the settings of paper, README and code, beside those of the recipe and of its faithful variant.
    An empty cell means that nothing is said, "absent" that the recipe leaves the setting to the model or lacks it. A
    source that begins with the name of another recipe is inherited from it. --family shows one kind of backbone.
    """
    from opencse.foundation.decode import unknown_name_error
    from opencse.foundation.errors import OpencseError
    from opencse.recipes import FAMILIES, dump_recipe, family_of, load_recipe

    if backbone is not None and family is not None:
        raise OpencseError("--backbone and --family exclude each other")
    if family is not None and family not in (*FAMILIES, "other"):
        raise unknown_name_error("family", family, (*FAMILIES, "other"))
    if backbone is not None:
        from opencse.encoder import backbone_config

        family = family_of(backbone_config(backbone))
    if published:
        _show_published(name, family)
        return
    recipe = load_recipe(name, family=family or "other", variant=variant, overrides=overrides)
    typer.echo(f"# {recipe.name}, variant {recipe.variant}, settings for the family {recipe.family}")
    for warning in recipe.warnings():
        typer.echo(f"# warning: {warning}")
    typer.echo(dump_recipe(recipe))


def _show_published(name: str, family: str | None) -> None:
    """Print all published settings, for one family of backbones or for all."""
    from rich.console import Console
    from rich.table import Table

    from opencse.recipes.published_settings import PUBLISHED_FAMILIES, conformity

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("setting", "backbone", "published", "coded", "default", "faithful", "source"):
        table.add_column(heading, overflow="fold")
    for entry, sound, faithful in conformity(name, PUBLISHED_FAMILIES if family is None else (family,)):
        values = ("" if value is None else str(value) for value in (entry.published, entry.coded, sound, faithful))
        table.add_row(entry.key, entry.family, *values, "; ".join(filter(None, (entry.source, entry.why))))
    if not table.row_count:
        typer.echo(f"nothing was published for {name} with the family {family}")
    # Wide enough for whole cells if the output is not a terminal.
    Console(width=None if Console().is_terminal else 240).print(table, markup=False)
