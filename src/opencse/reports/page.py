"""The report: one HTML file that needs nothing else, its pictures also as files, and the numbers as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

import opencse
from opencse.errors import OpencseError
from opencse.io.files import write_json, write_text
from opencse.probing import Findings
from opencse.reports import figures
from opencse.reports.drawing import Draw, inline, save
from opencse.reports.examples import examples
from opencse.reports.palette import DARK, LIGHT
from opencse.reports.summary import cards, verdict
from opencse.reports.tables import tables
from opencse.reports.text import shown


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure: its file name without ending, title, caption, and how it is drawn."""

    name: str
    title: str
    caption: str
    draw: Draw


def write_report(
    models: Mapping[str, Findings],
    out: str | Path,
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Sequence[str] = (),
) -> Path:
    """Write `report.html`, `probe.json`, and each figure as .svg and .png below `figures/`.

    Args:
        models: Findings by label, as `opencse.probing.probe` returns them; the first is the one compared with.
        out: A folder, made if needed; files of these names in it are replaced.
        settings: For each label what its figures depend on: weights hash, pooling, …
        notes: What the reader should know of the data: sets that were left out, rows that were drawn.

    Returns:
        The path of the page.
    """
    if not models:
        raise OpencseError("there is no model to report on", "Name at least one.")
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise OpencseError(f"{out}: is a file, not a folder", "Choose another output folder.")
    pictures = list(_pictures(models))
    write_json(
        out / "probe.json",
        {
            "version": opencse.__version__,
            "notes": list(notes),
            "models": {
                name: {"settings": dict((settings or {}).get(name, {})), "findings": asdict(found)}
                for name, found in models.items()
            },
        },
    )
    for picture in pictures:
        save(picture.draw, out / "figures" / picture.name)
    write_text(out / "report.html", render(models, settings=settings, notes=notes, pictures=pictures))
    return out / "report.html"


def render(
    models: Mapping[str, Findings],
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Sequence[str] = (),
    pictures: Sequence[Picture] | None = None,
) -> str:
    """Return the page as text. Every text in it that is not ours is escaped, clipped and kept to its own direction."""
    environment = Environment(
        loader=PackageLoader("opencse.reports", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    chosen = list(_pictures(models)) if pictures is None else pictures
    first = next(iter(settings.values()), {}) if settings else {}
    return environment.get_template("report.html.j2").render(
        names=[shown(name, 60) for name in models],
        verdict=verdict(models),
        cards=cards(models),
        pictures=[(picture, Markup(inline(picture.draw, f"f{i}"))) for i, picture in enumerate(chosen)],
        tables=tables(models),
        examples=examples(models),
        settings=[(key, [shown((settings or {}).get(name, {}).get(key, ""), 80) for name in models]) for key in first],
        notes=[shown(note, 400) for note in notes],
        light=LIGHT.variables(),
        dark=DARK.variables(),
        version=opencse.__version__,
    )


def _pictures(models: Mapping[str, Findings]) -> list[Picture]:
    """The figures for which there is something to show, most telling first."""
    some = next(iter(models.values()))
    made: list[Picture] = []

    def add(name: str, title: str, caption: str, draw: Callable[..., Any], *arguments: Any) -> None:
        made.append(Picture(name=name, title=title, caption=caption, draw=partial(draw, *arguments)))

    if some.transformations is not None and some.transformations.kinds:
        add(
            "transformations",
            "What the model takes for the same meaning",
            "Mean cosine of a sentence with each transformation, 95 % interval. The paraphrase should be far to the "
            "right of the negation.",
            figures.means,
            models,
        )
        for index, (name, found) in enumerate(models.items()):
            if found.transformations is not None and {"paraphrase", "negation"} & {
                k.kind for k in found.transformations.kinds
            }:
                add(
                    f"wording-{index + 1}",
                    f"Similarity against wording: {shown(name, 40)}",
                    "Each mark is one sentence. Were meaning all that counts, paraphrases would lie to the right, "
                    "negations to the left, at any height.",
                    figures.scatter,
                    found.transformations,
                    figures.lowest_cosine(models),
                )
    if some.splits is not None:
        add(
            "splits",
            "Agreement with people, where wording helps and where it misleads",
            "A short line is good: then wording does not matter. Bars: unsupervised SimCSE as published.",
            figures.splits,
            models,
        )
    if some.suppression is not None and some.suppression.cosines:
        add(
            "suppression",
            "Same meaning, different words",
            "Cosines of pairs that people score 4 or more of 5 though they share less than 60 % of their words. "
            "A narrow peak at the right is good.",
            figures.suppression,
            models,
        )
    if some.length is not None:
        add(
            "length",
            "Does length matter?",
            "Mean cosine beyond what human scores predict, by difference of length. A flat line at 0 is free of bias.",
            figures.length,
            models,
        )
    if some.training_pairs:
        add(
            "pairs-overlap",
            "Training pairs: wording",
            "Positives that share few words and negatives that share many teach the most.",
            figures.training_pairs,
            some.training_pairs,
            "overlap",
        )
        for index, (name, found) in enumerate(models.items()):
            add(
                f"pairs-cosine-{index + 1}",
                f"Training pairs: meaning by {shown(name, 40)}",
                "Cosines of positive and of negative pairs.",
                figures.training_pairs,
                found.training_pairs,
                "cosine",
            )
    return [replace(picture, title=shown(picture.title, 120)) for picture in made]
