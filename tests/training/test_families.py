"""Every recipe on models of other families: the table in docs/guides/backbones.md."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe, recipe_names
from tests.recipes.test_every_recipe import _prepare
from tests.training.helpers import run
from tests.training.test_backbones import DECODERS, backbone

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "backbones.md"
FAMILIES = ("qwen3", "mistral", "modernbert", "xlm-roberta", "mpnet", "deberta", "deberta-v2")


def cells() -> dict[tuple[str, str], str]:
    """What the page says of each recipe and family."""
    found = re.findall(r"^\| ((?:`|all others).*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    rows = [line.split(" | ") for line in found]
    named = {name: row[1:] for row in rows for name in re.findall(r"`([\w-]+)`", row[0])}
    others = next(row[1:] for row in rows if row[0] == "all others")
    return {
        (name, kind): said
        for name in recipe_names()
        for kind, said in zip(FAMILIES, named.get(name, others), strict=True)
    }


def trained(folder: Path, name: str, kind: str, *more: str) -> None:
    start, recipe = backbone(folder, kind), load_recipe(name)
    steps, corpus = _prepare(recipe, folder)
    settings = [*steps, *(["encoder.dropout=0.1"] if recipe.block is None else [])]
    if kind in DECODERS and recipe.encoder.pooling != "mask":
        settings.append("encoder.pooling=backbone")
    result = run(corpus, start, folder / "run", *settings, *more, recipe=name)
    assert result.outcome.steps == 3
    model = SentenceTransformer(str(result.model), device="cpu", trust_remote_code=recipe.block is not None)
    assert np.isfinite(model.encode(["the cat", "a dog runs"])).all()


DIAGONAL = [(name, FAMILIES[i % len(FAMILIES)]) for i, name in enumerate(recipe_names())]


@pytest.mark.parametrize(
    ("name", "kind"), [pytest.param(*pair, marks=[] if pair in DIAGONAL else pytest.mark.slow) for pair in cells()]
)
def test_a_recipe_does_on_each_family_what_the_page_says(tmp_path, name: str, kind: str) -> None:
    said = cells()[name, kind]
    if said == "yes":
        trained(tmp_path, name, kind)
        return
    with pytest.raises(OpencseError, match=said) as caught:
        trained(tmp_path, name, kind)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy


def test_promptbert_trains_without_denoising_where_there_are_no_position_embeddings(tmp_path) -> None:
    trained(tmp_path, "promptbert", "modernbert", "encoder.denoising=none")


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAMILIES)
def test_an_onnx_graph_gives_the_same_vectors(tmp_path, kind: str) -> None:
    pytest.importorskip("onnxruntime")
    from opencse.commands.integrations.onnx import export_onnx

    pooling = "backbone" if kind in DECODERS else "mean"
    assert export_onnx(backbone(tmp_path, kind), tmp_path / "onnx", pooling=pooling).max_difference < 1e-4
