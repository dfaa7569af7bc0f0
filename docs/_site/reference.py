"""Write the generated part of the reference: the API from `__all__`, the commands from `--help`, the recipes from TOML.

Sphinx calls it before it reads the pages. The pages lie in docs/reference/generated, which git
ignores.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import contents
import typer.main
from sphinx.application import Sphinx

import opencse
from opencse.commands.main import app as cli
from opencse.losses import LOSSES
from opencse.recipes import dump_recipe, load_recipe, recipe_names
from opencse.text.views.registry import VIEWS

SOURCES = Path(opencse.__file__).parent
Pages = dict[str, str]
"""The text of each page by its path in the folder."""


def public_modules() -> Iterator[ModuleType]:
    """Yield the package, then every package and module below it that declares public names."""
    yield opencse
    for found in pkgutil.walk_packages(opencse.__path__, "opencse."):
        if (SOURCES.parent / found.name.replace(".", "/") / "__init__.py").exists():
            module = importlib.import_module(found.name)
            if getattr(module, "__all__", None):
                yield module


def directive(path: str, value: object, described: dict[int, str]) -> str:
    """Return the autodoc directive for one public name, or a link if another page describes the same object."""
    if inspect.ismodule(value):
        return ""
    if inspect.isclass(value) or inspect.isroutine(value):
        home = described.setdefault(id(value), path)
        if home != path:
            return f"`{path}`: see :py:obj:`{home}`.\n"
    if inspect.isclass(value):
        return f".. autoclass:: {path}\n   :members:\n   :show-inheritance:\n"
    if inspect.isroutine(value):
        return f".. autofunction:: {path}\n"
    return f".. autodata:: {path}\n   :no-value:\n"


def api_page(module: ModuleType, described: dict[int, str]) -> str:
    """Return the page of a module's public names, in reStructuredText, which the docstrings are written in."""
    name = module.__name__
    body = "\n".join(
        directive(f"{name}.{each}", getattr(module, each), described) for each in module.__all__
    )
    return f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n   :no-members:\n\n{body}"


def options_table(command: Any) -> str:
    """Return the arguments and options of a command as a table of two columns, which a narrow screen can show."""
    rows = ["| option | meaning |", "|---|---|"]
    for param in command.params:
        if getattr(param, "hidden", False) or param.name == "help":
            continue
        names = (
            param.opts + param.secondary_opts
            if param.param_type_name == "option"
            else [param.metavar or param.name.upper()]
        )
        meaning = " ".join((getattr(param, "help", None) or "").split()).replace("|", "\\|")
        if param.required and param.param_type_name == "option":
            meaning += " Required."
        elif shown := default_of(param):
            meaning += f" Default: {shown}."
        rows.append(f"| {', '.join(f'`{each}`' for each in names)} | {meaning} |")
    return "\n".join(rows) if len(rows) > 2 else ""


def default_of(param: Any) -> str:
    """Return the default of an option as the table shows it; of a pair of flags, the one that holds."""
    default = param.default() if callable(param.default) else param.default
    if param.secondary_opts:
        return f"`{(param.opts if default else param.secondary_opts)[0]}`"
    return "" if default in (None, False, "", (), []) else f"`{default}`"


def help_text(command: Any) -> str:
    """Return the help of a command as Markdown: runs of example commands become blocks of code."""
    parts: list[str] = []
    for paragraph in inspect.cleandoc(command.help or "").split("\n\n"):
        prose = [line for line in paragraph.splitlines() if not line.strip().startswith("opencse ")]
        examples = [
            line.strip() for line in paragraph.splitlines() if line.strip().startswith("opencse ")
        ]
        if prose:
            parts.append("\n".join(prose))
        if examples and parts and parts[-1].endswith("\n```"):
            parts[-1] = parts[-1].removesuffix("```") + "\n".join([*examples, "```"])
        elif examples:
            parts.append("\n".join(["```bash", *examples, "```"]))
    return "\n\n".join(parts)


def command_page(path: str, command: Any) -> str:
    """Return the page of a command, with its subcommands."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    names = [
        f"{(each.metavar or each.name.upper()).rstrip('.')}{'...' if each.nargs == -1 else ''}"
        for each in arguments
    ]
    usage = " ".join(
        [
            path,
            *(name if each.required else f"[{name}]" for name, each in zip(names, arguments)),
            "[OPTIONS]",
        ]
    )
    text = (
        f"# {path}\n\n{help_text(command)}\n\n```text\n{usage}\n```\n\n{options_table(command)}\n"
    )
    for name, sub in getattr(command, "commands", {}).items():
        text += "\n" + command_page(f"{path} {name}", sub).replace("# ", "## ", 1)
    return text


def recipe_page(name: str) -> str:
    """Return the page of a recipe: what it says of itself, its file, and its settings for BERT-base in full."""
    recipe = load_recipe(name)
    source = (SOURCES / "recipes" / "systems" / f"{name}.toml").read_text(encoding="utf-8")
    told = {"Paper:": recipe.paper, "Differences from the published system:": recipe.differs}
    facts = [f"**{label}** {value}\n" for label, value in told.items() if value]
    families = ", ".join(f"`{each}`" for each in sorted(recipe_families(source)))
    return (
        f"# {name}\n\n{recipe.title}\n\n"
        + "\n".join(facts)
        + (f"\n**Own settings for:** {families}\n" if families else "")
        + f"\n## File\n\n```toml\n{source.strip()}\n```\n\n## Resolved, without a family\n\n"
        f"```toml\n{dump_recipe(recipe).strip()}\n```\n"
    )


def recipe_families(source: str) -> set[str]:
    """Return the families of backbones for which the file has settings."""
    import tomllib

    return set(tomllib.loads(source).get("for", {}))


def recipes_table(names: list[str]) -> str:
    """Return what each recipe is."""
    rows = ["| recipe | title |", "|---|---|"]
    rows += [f"| [`{name}`]({name}.md) | {load_recipe(name).title} |" for name in names]
    return "\n".join(rows)


def kinds_page(title: str, lead: str, kinds: dict[str, type]) -> str:
    """Return the kinds that a recipe may name, with the first line of each class."""
    rows = ["| kind | what it is |", "|---|---|"]
    for kind, cls in kinds.items():
        first = (inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        first = re.sub(r":math:`([^`]*)`", r"$\1$", first)
        rows.append(f"| {{py:class}}`{kind} <{path_of(cls)}>` | {first} |")
    return f"# {title}\n\n{lead}\n\n" + "\n".join(rows) + "\n"


def path_of(cls: type) -> str:
    """Return the public path of a class: that of the first package that exports it."""
    paths = (
        f"{m.__name__}.{cls.__name__}"
        for m in public_modules()
        if getattr(m, cls.__name__, None) is cls
    )
    return next(paths, f"{cls.__module__}.{cls.__name__}")


def listing(title: str, lead: str, pages: list[str]) -> str:
    """Return an index page."""
    return f"# {title}\n\n{lead}\n\n```{{toctree}}\n:maxdepth: 1\n\n" + "\n".join(pages) + "\n```\n"


def api_pages() -> Pages:
    """Return the pages of the Python API."""
    modules = list(public_modules())
    described: dict[int, str] = {}
    lead = (
        "Every public name, from its docstring. `opencse` itself has the few that most users need."
    )
    names = [module.__name__ for module in modules]
    pages = {f"api/{module.__name__}.rst": api_page(module, described) for module in modules}
    return {**pages, "api/index.md": listing("Python API", lead, names)}


def command_pages() -> Pages:
    """Return the pages of the command line."""
    commands = typer.main.get_command(cli).commands  # type: ignore[attr-defined]
    lead = "Every command prints the same text with `--help`. Exit codes: 0 done, 2 invalid input, 130 interrupted."
    pages = {
        f"commands/{name}.md": command_page(f"opencse {name}", command)
        for name, command in commands.items()
    }
    return {**pages, "commands/index.md": listing("Command line", lead, list(commands))}


def recipe_pages() -> Pages:
    """Return the pages of the recipes."""
    names = list(recipe_names())
    lead = (
        "The recipes in the package. Each page says where the default differs from the system as published. "
        "`opencse recipes show NAME --backbone MODEL` prints one as it would be used for a model."
    )
    pages = {f"recipes/{name}.md": recipe_page(name) for name in names}
    return {
        **pages,
        "recipes/index.md": listing("Recipes", f"{lead}\n\n{recipes_table(names)}", names),
    }


def other_pages() -> Pages:
    """Return the pages of losses and text views, from a system to its code, and the notebooks."""
    losses = "The values of `kind` in `[[losses]]` of a recipe. Each leads to its class, whose fields are its settings."
    views = "The values of `kind` in `[build.NAME]` of a recipe. Each leads to its class, whose fields are its settings."
    notebooks = sorted((contents.ROOT / "examples" / "notebooks").glob("*.ipynb"))
    return {
        "losses.md": kinds_page("Losses", losses, LOSSES),
        "views.md": kinds_page("Text views", views, VIEWS),
        "contents.md": contents.page(),
        **{f"notebooks/{path.name}": notebook_page(path) for path in notebooks},
    }


def notebook_page(path: Path) -> str:
    """Return a notebook with its links to pages as they are from the folder of generated pages."""
    return path.read_text(encoding="utf-8").replace("](../../docs/", "](../../../")


def write(folder: Path) -> None:
    """Write all pages into the folder; a page that did not change keeps its time, so that Sphinx need not read it."""
    pages = api_pages() | command_pages() | recipe_pages() | other_pages()
    for path in [path for path in folder.rglob("*") if path.is_file()]:
        if str(path.relative_to(folder)) not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages when a build starts."""
    app.connect("builder-inited", lambda app: write(Path(app.srcdir) / "reference" / "generated"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
