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
    from opencse.commands.recipes import list_recipes as listed
    from opencse.foundation.result_table import show

    show(listed())


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
        from opencse.commands.recipes import published_table
        from opencse.foundation.result_table import show as show_table

        show_table(published_table(name, family))
        return
    recipe = load_recipe(name, family=family or "other", variant=variant, overrides=overrides)
    typer.echo(f"# {recipe.name}, variant {recipe.variant}, settings for the family {recipe.family}")
    for warning in recipe.warnings():
        typer.echo(f"# warning: {warning}")
    typer.echo(dump_recipe(recipe))
