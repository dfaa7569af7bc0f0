"""Recipes under sentence-transformers' own trainer: what holds there, and what does not."""

from __future__ import annotations

import os
import shutil
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.multiprocessing as mp
from datasets import Dataset
from safetensors.torch import load_file, save_file
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)

import opencse
from opencse.encoder import load_encoder
from opencse.foundation.errors import OpencseError
from opencse.losses import InfoNCELoss
from tests.tiny import WORDS, tiny_bert


def texts(count: int, shift: int = 0) -> list[str]:
    return [
        " ".join(WORDS[(i * 7 + k * k + shift) % len(WORDS)] for k in range(3 + i % 4))
        for i in range(count)
    ]


def dataset(columns: list[str], rows: int = 16) -> Dataset:
    """A text in each column; in further columns every third is empty, which stands for none."""
    made = {c: texts(rows, 5 * k) for k, c in enumerate(columns)}
    return Dataset.from_dict(
        {c: [t if c == "text" or i % 3 else "" for i, t in enumerate(ts)] for c, ts in made.items()}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("bert") / "model", layers=1)


def arguments(out: Path, **more) -> SentenceTransformerTrainingArguments:
    options = {
        "per_device_train_batch_size": 8,
        "max_steps": 4,
        "learning_rate": 1e-3,
        "use_cpu": True,
        "save_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "logging_strategy": "no",
        "seed": 1,
    }
    return SentenceTransformerTrainingArguments(output_dir=str(out), **options | more)


def train(
    folder: Path,
    out: Path,
    recipe: str,
    *settings: str,
    keep: bool = True,
    resume: str | None = None,
    **more,
):
    model = load_encoder(folder, pooling="cls", dropout=more.pop("dropout", 0.1))
    loss = opencse.sentence_transformers_loss(recipe, model, overrides=settings)
    trainer = SentenceTransformerTrainer(
        model,
        arguments(out, **more),
        dataset(loss.columns),
        loss=loss,
        callbacks=[loss.callback()] if keep else [],
    )
    trainer.train(resume_from_checkpoint=resume)
    return {n: p.detach().clone() for n, p in loss.named_parameters()}, loss


@pytest.mark.parametrize("recipe", ["rankcse-listmle", "debcse", "dclr"])
def test_recipes_train_and_the_model_is_a_plain_one(folder, tmp_path, recipe: str) -> None:
    before = load_encoder(folder, pooling="cls").state_dict()
    weights, loss = train(folder, tmp_path, recipe, max_steps=2)
    assert any(
        not torch.equal(weights["model." + n], before[n]) for n in before if "model." + n in weights
    )
    assert all(np.isfinite(float(value)) for value in loss.reports.values())
    loss.model.save_pretrained(str(tmp_path / "model"))
    assert SentenceTransformer(str(tmp_path / "model"), device="cpu").encode(["the cat"]).shape == (
        1,
        32,
    )


def test_the_value_is_that_of_the_losses(folder) -> None:
    model = load_encoder(folder, pooling="cls", dropout=0.0).train()
    settings = ["encoder.projector=none", "views.negative.dropout=0.0"]
    loss = opencse.sentence_transformers_loss("hince", model, overrides=settings)
    rows = dataset(loss.columns, 6)
    features = [model.preprocess(list(rows[c])) for c in loss.columns]
    vectors = {
        c: model(dict(f))["sentence_embedding"] for c, f in zip(loss.columns, features, strict=True)
    }
    there = torch.tensor([bool(t) for t in rows["negative"]])
    embeddings = {
        "anchor": vectors["text"],
        "twin": vectors["text"],
        "negative": vectors["negative"] * there[:, None],
    }
    present = {"anchor": torch.ones(6).bool(), "twin": torch.ones(6).bool(), "negative": there}
    (only,) = loss.recipe.losses
    assert isinstance(only, InfoNCELoss)
    expected = only(embeddings, present=present).value
    assert loss(features).item() == pytest.approx(expected.item(), rel=1e-5)


def test_losses_without_a_recipe(folder) -> None:
    model = load_encoder(folder, pooling="cls", dropout=0.0).train()
    losses = [
        InfoNCELoss(temperature=0.1, anchor="question", positive="answer"),
        InfoNCELoss(name="back", weight=0.5, anchor="answer", positive="question"),
    ]
    loss = opencse.sentence_transformers_loss(model=model, losses=losses)
    assert loss.columns == ["question", "answer"]
    features = [model.preprocess(texts(6)), model.preprocess(texts(12)[6:])]
    question, answer = (model(dict(f))["sentence_embedding"] for f in features)
    expected = losses[0](question, answer).value + losses[1](answer, question).value
    assert loss(features).item() == pytest.approx(expected.item(), rel=1e-5)
    same = {"anchor": "text", "twin": "text"}
    one = opencse.sentence_transformers_loss(model=model, losses=[InfoNCELoss()], columns=same)
    assert one.columns == ["text"]
    with pytest.raises(OpencseError, match="either a recipe or losses"):
        opencse.sentence_transformers_loss("simcse", model, losses=losses)
    with pytest.raises(OpencseError, match="unknown view 'ancor'"):
        opencse.sentence_transformers_loss(
            model=model, losses=[InfoNCELoss()], columns={"ancor": "text"}
        )
    with pytest.raises(OpencseError, match="two losses share a name"):
        opencse.sentence_transformers_loss(model=model, losses=[InfoNCELoss(), InfoNCELoss()])


def test_what_the_loss_owns_follows_the_models_mode(folder) -> None:
    """The trainer leaves a loss in training mode while it evaluates: BatchNorm would learn from the evaluation data."""
    model = load_encoder(folder, pooling="cls")
    loss = opencse.sentence_transformers_loss(
        "simcse", model, overrides=["encoder.projector=diffcse"]
    )
    features = [model.preprocess(texts(6))]
    counts = []
    for training in (True, False):
        loss.train()
        model.train(training)
        loss(features)
        counts.append(int(loss.head.projector[1].num_batches_tracked))
    assert counts == [1, 1]


@pytest.mark.skipif(
    version("sentence-transformers") < "6.2",
    reason="before 6.2 no run of its trainer resumes exactly",
)
def test_with_the_callback_a_resumed_run_is_the_straight_one(folder, tmp_path) -> None:
    saving = {"save_strategy": "steps", "save_steps": 2, "lr_scheduler_type": "constant"}
    straight, _ = train(folder, tmp_path / "straight", "simcse", **saving)
    checkpoint = tmp_path / "again" / "checkpoint-2"
    shutil.copytree(tmp_path / "straight" / "checkpoint-2", checkpoint)
    resumed, _ = train(folder, tmp_path / "again", "simcse", resume=str(checkpoint), **saving)
    assert straight.keys() == resumed.keys()
    for name, tensor in straight.items():
        assert torch.equal(tensor, resumed[name]), name


def test_a_checkpoint_without_the_loss_is_refused(folder, tmp_path) -> None:
    saving = {"save_strategy": "steps", "save_steps": 2, "max_steps": 2}
    train(folder, tmp_path, "simcse", keep=False, **saving)
    with pytest.raises(OpencseError, match="would start again"):
        train(
            folder,
            tmp_path,
            "simcse",
            resume=str(tmp_path / "checkpoint-2"),
            **saving | {"max_steps": 4},
        )


def worker(rank: int, folder: Path, port: int) -> None:
    torch.set_num_threads(1)
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "ACCELERATE_USE_CPU": "true",
    }
    weights, _ = train(
        folder / "model",
        folder / f"out{rank}",
        "hince",
        *STILL,
        **ONE_STEP,
        per_device_train_batch_size=4,
    )
    save_file({n: w.contiguous() for n, w in weights.items()}, folder / f"rank{rank}.safetensors")


STILL = ("views.negative.dropout=0.0",)
ONE_STEP = {
    "dropout": 0.0,
    "max_steps": 2,
    "optim": "sgd",
    "learning_rate": 0.1,
    "lr_scheduler_type": "constant",
}


@pytest.mark.slow
def test_two_processes_do_what_one_does(tmp_path) -> None:
    """Encoder and projector: the loss is that of the global batch in both, so its own weights need no averaging."""
    tiny_bert(tmp_path / "model", layers=1)
    mp.spawn(worker, (tmp_path, 29500 + os.getpid() % 1000), nprocs=2)
    first, second = (load_file(tmp_path / f"rank{rank}.safetensors") for rank in (0, 1))
    expected, _ = train(tmp_path / "model", tmp_path / "one", "hince", *STILL, **ONE_STEP)
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        assert torch.equal(tensor, second[name]), name
        if "pooler" in name:  # new in this model, drawn in each process, and not used
            continue
        own = expected[name.replace("model.module.", "model.")]
        torch.testing.assert_close(tensor, own, rtol=1e-4, atol=1e-5, msg=name)


@pytest.mark.parametrize(
    ("recipe", "settings", "match"),
    [
        ("sncse", [], "templates around its texts"),
        ("esimcse", [], "repeats other tokens at each step"),
        ("simcse", ["encoder.poling=cls"], "unknown key"),
    ],
)
def test_what_a_plain_trainer_cannot_give_is_refused(folder, recipe, settings, match) -> None:
    with pytest.raises(OpencseError, match=match):
        opencse.sentence_transformers_loss(
            recipe, load_encoder(folder, pooling="cls"), overrides=settings
        )


def test_other_vocabularies_and_other_columns_are_refused(folder, tmp_path) -> None:
    from tests.tiny import tiny_roberta

    other = tiny_roberta(tmp_path / "roberta", layers=1)
    settings = [f"teachers.a.model={other}", "teachers.a.pooling=cls"]
    with pytest.raises(OpencseError, match=r"another vocabulary.*opencse train"):
        opencse.sentence_transformers_loss(
            "rankcse-listmle", load_encoder(folder, pooling="cls"), overrides=settings
        )
    model = load_encoder(folder, pooling="cls")
    loss = opencse.sentence_transformers_loss("hince", model)
    assert loss.columns == ["text", "negative"]
    with pytest.raises(OpencseError, match=r"1 text columns.*text, negative.*select_columns"):
        loss([model.preprocess(["a cat"])])
