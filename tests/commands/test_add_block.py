"""`opencse run debias` without text: the block that comes with the package for a model is appended to it."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import asdict

import numpy as np
import pytest
import torch
from huggingface_hub import ModelCardData, metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results
from huggingface_hub.utils import validate_repo_id

import opencse
from opencse.encoder import backbone as blocks
from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.meaning_block import MeaningBlock, block_of
from opencse.foundation.errors import OpencseError
from opencse.training.strength import StrengthCurve
from tests.tiny import tiny_bert

CURVE = StrengthCurve(
    chosen=0.3,
    tolerance=0.3,
    strengths=(0.0, 0.3),
    guards={"guard-long": (80.0, 79.8)},
    meaning={"dev-meaning": (40.0, 60.0)},
)
TEXTS = ["the cat runs", "a big red dog sits in the garden"]


@pytest.fixture
def backbone(tmp_path):
    save_encoder(load_encoder(tiny_bert(tmp_path / "bert"), pooling="mean"), tmp_path / "tiny", "")
    return tmp_path / "tiny"


@pytest.fixture
def shipped(tmp_path, backbone, monkeypatch):
    """A package with a block for the backbone."""
    model = load_encoder(backbone, device="cpu")
    folder = tmp_path / "blocks" / "tiny"
    folder.mkdir(parents=True)
    key = blocks.block_key(model)
    torch.manual_seed(0)
    MeaningBlock.beside(model, code=3, inner=5, hidden=7, code_hidden=4).save(str(folder))
    measured = {"beside": key, "text": "made for a test", "rows": 7, "curve": asdict(CURVE)}
    (folder / blocks.MEASURED).write_text(json.dumps(measured))
    monkeypatch.setattr(blocks, "BLOCKS", tmp_path / "blocks")


@pytest.mark.usefixtures("shipped")
def test_the_block_is_appended_with_its_measured_strength(tmp_path, backbone) -> None:
    out = tmp_path / "out"
    result = opencse.run("debias", backbone=backbone, out=out)
    model, untouched = load_encoder(out / "model", device="cpu"), load_encoder(backbone, device="cpu")
    block = block_of(model)
    assert block is not None
    assert block.strength == 0.3
    e = untouched.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(model.encode(TEXTS)[:, :32] * np.sqrt(1 + 0.3**2), e, atol=1e-5)
    assert result.run.outcome.curve == CURVE
    assert "0.3" in (out / "report.html").read_text()
    assert {change.measure for change in result.outcome.changes} == {"guard long", "meaning"}
    assert "trust_remote_code=True" in (out / "model" / "README.md").read_text()
    with pytest.raises(OpencseError, match="already holds a run"):
        opencse.run("debias", backbone=backbone, out=out)
    opencse.run("debias", backbone=backbone, out=out, overwrite=True)


@pytest.mark.usefixtures("shipped")
def test_the_card_passes_the_checks_of_a_model_hub(tmp_path, backbone) -> None:
    (backbone / "README.md").write_text("---\nbase_model: me/tiny\nlicense: apache-2.0\n---\n# Tiny\n")
    opencse.run("debias", backbone=backbone, out=tmp_path / "out")
    written = metadata_load(tmp_path / "out" / "model" / "README.md")
    card = ModelCardData(**deepcopy(written))
    assert card.to_dict() == written
    assert (card.base_model, card.license, card.language) == ("me/tiny", "apache-2.0", "en")
    assert (card.library_name, card.pipeline_tag) == ("sentence-transformers", "sentence-similarity")
    assert len(set(card.tags)) == len(card.tags)
    validate_repo_id(card.base_model)
    name, results = model_index_to_eval_results(written["model-index"])
    assert name == "opencse debias"
    (result,) = results
    assert (result.task_type, result.dataset_type, result.dataset_name) == ("triplet", "unknown", "opencse dev-meaning")
    assert (result.metric_type, result.metric_value) == ("cosine_accuracy", 0.6)


def test_a_model_without_a_block_is_told_to_train_one(tmp_path, backbone) -> None:
    with pytest.raises(OpencseError, match=r"no meaning block for .*tiny.*Train one on your own text"):
        opencse.run("debias", backbone=backbone, out=tmp_path / "out")
    assert not (tmp_path / "out" / "model").exists()


@pytest.mark.usefixtures("shipped")
def test_what_needs_text_is_refused_without(tmp_path, backbone) -> None:
    with pytest.raises(OpencseError, match="simcse needs text"):
        opencse.run("simcse", backbone=backbone, out=tmp_path / "out")
    with pytest.raises(OpencseError, match="--guard needs text"):
        opencse.run("debias", backbone=backbone, out=tmp_path / "out", guard="x")


@pytest.mark.usefixtures("shipped")
def test_training_goes_on_from_the_block(tmp_path, backbone) -> None:
    sentences = ["The old bridge is safe.", "The soup is hot.", "Anna sold the house in 1990.", "The door is open."]
    more = [f"{text[:-1]} and the road is new." for text in sentences]
    small = ["training.max_steps=2", "training.batch_size=4", "training.precision=fp32", "block.fit_steps=4"]
    result = opencse.run("debias", [*sentences, *more], backbone=backbone, out=tmp_path / "out", overrides=small)
    block = block_of(load_encoder(result.run.model, device="cpu"))
    assert block is not None
    assert block.config["inner"] == 5
    assert result.run.recipe.optimizer.lr == pytest.approx(1e-4), "that for a block that was trained before"
    again = opencse.run(
        "debias", backbone=result.run.model, corpus=[*sentences, *more], out=tmp_path / "again", overrides=small
    )
    assert len(load_encoder(again.run.model, device="cpu")) == len(load_encoder(result.run.model, device="cpu"))
