"""Low-rank adapters, and layers that are computed again for the gradient."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from torch import nn

from opencse.commands.main import main
from opencse.encoder import load_encoder
from opencse.encoder.dropout import checkpoint_contexts, dropout_rate
from opencse.encoder.loading import add_lora, keep_inputs_only
from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe
from tests.tiny import tiny_bert
from tests.training.helpers import FakeDev, crash_at, metrics, run, weights, write_corpus
from tests.training.test_backbones import backbone

TEXTS = ["the cat", "a dog runs in the garden", ""]
LORA = ("encoder.lora.rank=4", "encoder.lora.dropout=0.1", "encoder.pooling=backbone")


def test_a_decoder_learns_by_adapters_that_are_merged_resumes_and_loads_alone(tmp_path, monkeypatch) -> None:
    pytest.importorskip("peft")
    corpus, start = write_corpus(tmp_path, 40), backbone(tmp_path, "qwen3")
    whole = run(corpus, start, tmp_path / "whole", *LORA, dev=SquaresDev())
    with monkeypatch.context() as patch:
        crash_at(4, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, start, tmp_path / "parts", *LORA, dev=SquaresDev())
    run(corpus, start, tmp_path / "parts", *LORA, dev=SquaresDev(), resume=True)
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
    expected, found = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert all((found[key] == tensor).all() for key, tensor in expected.items())

    before = load_file(start / "model.safetensors")
    assert {key: value.shape for key, value in expected.items()} == {k: tuple(v.shape) for k, v in before.items()}
    changed = {key for key in expected if not np.allclose(expected[key], before[key].float().numpy())}
    assert changed == {key for key in expected if "_proj" in key}
    for key in changed:  # what was added has the rank of the adapters
        ranks = np.linalg.matrix_rank(expected[key] - before[key].float().numpy(), tol=1e-6)
        assert 1 <= ranks <= 4
    vectors = SentenceTransformer(str(whole.model), device="cpu").encode(TEXTS)
    assert not np.allclose(vectors, load_encoder(start).encode(TEXTS), atol=1e-4)


class SquaresDev(FakeDev):
    """A score that rises and falls with the adapters."""

    def scores(self) -> dict[str, float]:
        named = self.encoder.named_parameters()
        return {"fake": float(sum(p.detach().square().sum() for name, p in named if "lora_B" in name) * 1e6 % 7)}


@pytest.mark.parametrize("kind", ["bert", "mpnet", "deberta-v2", "modernbert"])
def test_merging_changes_no_vector(tmp_path, kind: str) -> None:
    pytest.importorskip("peft")
    folder = tiny_bert(tmp_path / "bert") if kind == "bert" else backbone(tmp_path, kind)
    model = load_encoder(folder, pooling="mean").eval()
    names, plain = set(model.state_dict()), model.encode(TEXTS)
    adapter = add_lora(model[0].auto_model, rank=2, alpha=None, dropout=0.5)
    model.eval()
    np.testing.assert_array_equal(model.encode(TEXTS), plain)
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    assert trained
    assert all("lora_" in name for name in trained)
    with torch.no_grad():
        for parameter in trained.values():
            parameter.add_(0.1 * torch.randn_like(parameter))
    changed = model.encode(TEXTS)
    assert not np.allclose(changed, plain, atol=1e-3)
    adapter.merge_and_unload()
    np.testing.assert_allclose(model.encode(TEXTS), changed, atol=1e-5)
    assert set(model.state_dict()) == names


def test_without_peft_the_error_names_the_extra(tmp_path, monkeypatch, capsys) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "peft" else found(name, *more))
    settings = ["encoder.lora.rank=4", "encoder.pooling=mean"]
    corpus, start = write_corpus(tmp_path), tiny_bert(tmp_path / "bert")
    command = ["train", "simcse", str(corpus), "--backbone", str(start), "-o", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", ["opencse", *command, *(part for each in settings for part in ("--set", each))])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "encoder.lora needs the package peft. pip install 'opencse[lora]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"encoder.lora": {"rank": 0}}, "rank must be at least 1"),
        ({"encoder.lora": {"rank": 2, "alpha": 0}}, "alpha must be positive"),
        ({"encoder.lora": {"rank": 2, "dropout": 1}}, "below 1"),
        ({"encoder.lora": {}}, "'rank' is missing"),
    ],
)
def test_impossible_adapters_are_refused(settings, match) -> None:
    with pytest.raises(OpencseError, match=match):
        load_recipe("simcse", overrides=settings)
    with pytest.raises(OpencseError, match="not for a meaning block"):
        load_recipe("debias", overrides={"encoder.lora": {"rank": 2}})


@pytest.mark.parametrize("settings", [[], ["training.micro_batch=3"], ["views.twin.dropout=0.3"]])
def test_gradient_checkpointing_gives_the_same_weights(tmp_path, settings) -> None:
    corpus, start = write_corpus(tmp_path, 24), tiny_bert(tmp_path / "bert")
    run(corpus, start, tmp_path / "plain", *settings)
    run(corpus, start, tmp_path / "again", *settings, "training.gradient_checkpointing=true")
    expected, found = weights(tmp_path / "plain"), weights(tmp_path / "again")
    assert metrics(tmp_path / "plain") == metrics(tmp_path / "again")
    assert all((found[key] == tensor).all() for key, tensor in expected.items())


@pytest.mark.parametrize("kind", ["qwen3", "deberta", "deberta-v2", "modernbert"])
def test_every_layer_is_computed_again(tmp_path, kind: str) -> None:
    model = load_encoder(backbone(tmp_path, kind), pooling="mean").train()
    transformer, counts, seen = model[0].auto_model, [], []
    linear = next(module for module in transformer.modules() if isinstance(module, nn.Linear))
    linear.register_forward_hook(lambda *_: seen.append(1))
    for _ in range(2):
        seen.clear()
        model(model.preprocess(TEXTS[:2]))["sentence_embedding"].square().sum().backward()
        counts.append(len(seen))
        keep_inputs_only(transformer, model, kind)
    assert counts[1] == 2 * counts[0]


def test_a_layer_is_computed_again_at_the_dropout_of_its_view() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1))
    seen = []
    model[1].register_forward_pre_hook(lambda module, *_: seen.append(module.p))
    with dropout_rate(model, 0.7):
        out = torch.utils.checkpoint.checkpoint(
            model, torch.randn(2, 4), use_reentrant=False, context_fn=checkpoint_contexts(model)
        )
    out.sum().backward()
    assert seen == [0.7, 0.7]
    assert model[1].p == 0.1


def test_a_model_that_cannot_is_named(tmp_path) -> None:
    settings = ["training.gradient_checkpointing=true", "encoder.pooling=mean"]
    with pytest.raises(OpencseError, match=r"a MPNetModel cannot do gradient checkpointing.*micro_batch"):
        run(write_corpus(tmp_path), backbone(tmp_path, "mpnet"), tmp_path / "out", *settings)
