"""Whole runs: resumption, refusals, and what a finished run leaves."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModelForMaskedLM, AutoTokenizer

from opencse.encoder import load_encoder
from opencse.errors import OpencseError
from opencse.pretraining.settings import InputSettings, load_settings, settings_names
from opencse.pretraining.store import is_held_out_sentence, iter_sentences
from tests.pretraining.helpers import SENTENCES, SMALL, run, write_corpus
from tests.tiny import tiny_bert, tiny_roberta
from tests.training.helpers import crash_at


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def straight(tmp_path_factory, corpus) -> Path:
    out = tmp_path_factory.mktemp("straight") / "out"
    run(corpus, out)
    return out


def interrupted(corpus: Path, out: Path, step: int, monkeypatch: pytest.MonkeyPatch, *settings: str) -> None:
    with monkeypatch.context() as patch:
        crash_at(step, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, out, *settings)
    torch.manual_seed(99)  # whatever went on in between


def weights(out: Path) -> dict[str, np.ndarray]:
    return load_file(out / "model" / "model.safetensors")


def same(a: Path, b: Path) -> bool:
    first, second = weights(a), weights(b)
    return first.keys() == second.keys() and all(np.array_equal(first[k], second[k]) for k in first)


def metrics(out: Path) -> list[dict]:
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k != "seconds"} for line in lines]


@pytest.mark.parametrize("step", [1, 4, 8])  # before the first checkpoint, and between others
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, corpus, straight, monkeypatch, step) -> None:
    out = tmp_path / "out"
    interrupted(corpus, out, step, monkeypatch)
    run(corpus, out, resume=True)
    assert same(out, straight)
    assert metrics(out) == metrics(straight)
    assert not (out / "checkpoints").exists()


def test_a_stable_run_may_be_ended_earlier_than_planned(tmp_path, corpus, monkeypatch) -> None:
    plan = ("schedule.kind=stable", "schedule.decay=4")
    run(corpus, tmp_path / "short", *plan)
    interrupted(corpus, tmp_path / "long", 5, monkeypatch, *plan, "training.max_steps=40")
    run(corpus, tmp_path / "long", *plan, resume=True)
    assert same(tmp_path / "long", tmp_path / "short")


@pytest.mark.parametrize("step", [1, 4])
def test_a_changed_corpus_is_refused(tmp_path, monkeypatch, step) -> None:
    corpus = write_corpus(tmp_path)
    interrupted(corpus, tmp_path / "out", step, monkeypatch)
    corpus.write_text(corpus.read_text().replace("river", "rivet", 1))
    with pytest.raises(OpencseError, match="begun with another corpus"):
        run(corpus, tmp_path / "out", resume=True)


def test_changed_settings_are_refused(tmp_path, corpus, straight, monkeypatch) -> None:
    interrupted(corpus, tmp_path / "out", 4, monkeypatch)
    with pytest.raises(OpencseError, match="begun with another settings"):
        run(corpus, tmp_path / "out", "masking.rate=0.3", resume=True)
    with pytest.raises(OpencseError, match="already holds a run"):
        run(corpus, straight)
    assert run(corpus, straight, resume=True).outcome.steps == 10, "finished: nothing is done again"


def test_what_a_run_leaves(straight) -> None:
    folder = straight / "model"
    model = AutoModelForMaskedLM.from_pretrained(folder)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert model.config.hidden_dropout_prob == 0.1, "for fine-tuning, though pre-training had none"
    assert AutoTokenizer.from_pretrained(folder).mask_token == "[MASK]"
    assert json.loads((folder / "tokenizer.json").read_text())["truncation"] is None, "not the state of the last call"
    vectors = SentenceTransformer(str(folder), device="cpu").encode(SENTENCES[:3])
    assert vectors.shape == (3, 16)
    assert load_encoder(folder, pooling="cls").encode(SENTENCES[:3]).shape == (3, 16)
    log = metrics(straight)
    assert [line["step"] for line in log if "dev" in line] == [0, 4, 8, 10]
    assert all(np.isfinite(line["loss"]) for line in log if "loss" in line)
    record = json.loads((straight / "run.json").read_text())
    assert record["sentences"] + record["held_out"] == len(SENTENCES)
    assert "README.md" in {p.name for p in folder.iterdir()}


def test_training_learns(tmp_path, corpus) -> None:
    more = ("training.max_steps=120", "training.epochs=5", "optimizer.lr=5e-3", "training.log_every=20")
    run(corpus, tmp_path / "out", *more, "model.embeddings=random", "model.width=32")
    losses = [line["loss"] for line in metrics(tmp_path / "out") if "loss" in line]
    assert losses[-1] < losses[0] - 0.7


@pytest.fixture(scope="module")
def sentence_model(tmp_path_factory) -> Path:
    """A sentence-transformers folder without a masked-LM head, in a subfolder, with pooling and normalisation."""
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import AutoModel

    source, bare = tiny_bert(tmp_path_factory.mktemp("bert")), tmp_path_factory.mktemp("bare")
    AutoModel.from_pretrained(source).save_pretrained(bare)
    AutoTokenizer.from_pretrained(source).save_pretrained(bare)
    modules = [Transformer(str(bare)), Pooling(32, "max"), Normalize()]
    folder = tmp_path_factory.mktemp("model")
    SentenceTransformer(modules=modules, device="cpu").save_pretrained(str(folder))
    return folder


ADAPT = ("training.max_steps=4", "training.batch_size=8", "text.held_out=0.1", "optimizer.lr=1e-2")


def test_a_sentence_transformers_model_trained_further(tmp_path, corpus, sentence_model) -> None:
    result = run_adapt(corpus, tmp_path / "out", sentence_model)
    before = SentenceTransformer(str(sentence_model), device="cpu")
    after = SentenceTransformer(str(result.model), device="cpu")
    assert [type(m).__name__ for m in after] == ["Transformer", "Pooling", "Normalize"]
    assert after[1].pooling_mode == before[1].pooling_mode
    old, new = before.encode(SENTENCES[:4]), after.encode(SENTENCES[:4])
    assert np.linalg.norm(new, axis=1) == pytest.approx(1)
    assert not np.allclose(old, new, atol=1e-3)
    model, info = AutoModelForMaskedLM.from_pretrained(result.model, output_loading_info=True)
    assert not info["missing_keys"]
    words = model.get_input_embeddings().weight
    assert torch.equal(words, after[0].auto_model.get_input_embeddings().weight)
    assert load_encoder(result.model).encode(SENTENCES[:2]) == pytest.approx(new[:2], abs=1e-5)


def run_adapt(corpus, out, backbone, **options):
    from opencse.pretraining import pretrain

    return pretrain([corpus], out=out, backbone=backbone, overrides=ADAPT, progress=False, **options)


def test_a_new_head_starts_near_the_identity(sentence_model) -> None:
    from opencse.pretraining.model import load_model

    model, new = load_model(sentence_model)
    assert new
    transform = model.cls.predictions.transform
    assert torch.equal(transform.dense.weight, torch.eye(32))
    assert not transform.dense.bias.any()
    assert (transform.LayerNorm.weight == 1).all()
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


@pytest.mark.parametrize("write", [tiny_bert, tiny_roberta])
def test_a_masked_lm_keeps_its_head(tmp_path, corpus, write) -> None:
    from opencse.pretraining.model import load_model

    folder = write(tmp_path / "backbone")
    model, new = load_model(folder)
    plain = AutoModelForMaskedLM.from_pretrained(folder).state_dict()
    assert not new
    assert all(torch.equal(value, plain[name]) for name, value in model.state_dict().items())
    result = run_adapt(corpus, tmp_path / "out", folder)
    _, info = AutoModelForMaskedLM.from_pretrained(result.model, output_loading_info=True)
    assert not info["missing_keys"]


def test_held_out_sentences() -> None:
    share = InputSettings().held_out
    flags = [is_held_out_sentence(f"sentence number {i}", share) for i in range(20_000)]
    assert np.mean(flags) == pytest.approx(share, abs=0.002)
    assert is_held_out_sentence("two  words ", 0.3) == is_held_out_sentence("two words", 0.3)
    assert not any(is_held_out_sentence(s, 0.0) for s in SENTENCES)


def test_held_out_and_training_sentences_are_all(corpus) -> None:
    held, rest = (list(iter_sentences([corpus], 0.1, held_out=flag)) for flag in (True, False))
    assert sorted([*held, *rest]) == sorted(SENTENCES)
    assert 10 < len(held) < 60


def test_shipped_settings_and_refusals(tmp_path) -> None:
    assert settings_names() == ["adapt", "mini-mlm", "small-mlm"]
    for name in settings_names():
        load_settings(name)
    for overrides, message in (
        (["model.width=30", "model.heads=4"], "model: width 30 is not a multiple of heads 4"),
        (["masking.rat=0.2"], "unknown key 'rat'"),
        (["training.batch_size=many"], "expected an integer"),
    ):
        with pytest.raises(OpencseError, match=message):
            load_settings("mini-mlm", overrides)
    with pytest.raises(OpencseError, match="unknown settings 'mini'"):
        load_settings("mini")
    with pytest.raises(OpencseError, match="no such settings file"):
        load_settings(tmp_path / "absent.toml")


def test_impossible_runs(tmp_path, corpus) -> None:
    with pytest.raises(OpencseError, match=r"text.max_length is 64, but model.positions only 48"):
        run(corpus, tmp_path / "a", "text.max_length=64")
    with pytest.raises(OpencseError, match="no such file"):
        run(tmp_path / "absent.txt", tmp_path / "b")
    with pytest.raises(OpencseError, match=r"0 sentences are left|yields only"):
        run(corpus, tmp_path / "c", "text.held_out=0.9999999")
    assert not any((tmp_path / name).exists() for name in "abc"), "a refused run leaves nothing"
    assert len(SMALL)
