"""Encoders and decoders of other families are backbones like any other."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import processors
from torch import nn
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer

import opencse
from opencse.commands.main import main
from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.dropout import checkpoint_contexts, dropout_rate
from opencse.encoder.embedder import Embedder
from opencse.encoder.loading import add_lora, keep_inputs_only
from opencse.foundation.errors import OpencseError
from opencse.recipes import load_recipe, recipe_names
from opencse.training import loop
from opencse.training.encoding import encode
from opencse.training.trained_model import load_start
from tests.recipes.test_every_recipe import _prepare
from tests.tiny import tiny_bert, tiny_roberta
from tests.training.helpers import FakeDev, crash_at, metrics, run, weights, write_corpus

SHAPE = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 64,
}
GROUPED = SHAPE | {"num_key_value_heads": 2, "head_dim": 8, "tie_word_embeddings": False}
RELATIVE = {
    "position_biased_input": False,
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "position_buckets": 16,
    "type_vocab_size": 0,
}
CONFIGS = {
    "distilbert": {"n_layers": 2, "dim": 32, "n_heads": 4, "hidden_dim": 64},
    "mpnet": SHAPE | {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
    "electra": SHAPE | {"embedding_size": 32},
    "modernbert": SHAPE | {"attention_dropout": 0.1, "mlp_dropout": 0.1, "embedding_dropout": 0.1},
    "xlm-roberta": SHAPE
    | {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1},
    "deberta": SHAPE | RELATIVE,
    "deberta-v2": SHAPE
    | RELATIVE
    | {"norm_rel_ebd": "layer_norm", "share_att_key": True},  # DeBERTa-v3's, too
    "qwen3": GROUPED,
    "qwen2": GROUPED,
    "mistral": GROUPED | {"sliding_window": None},
}
DECODERS = ("qwen3", "qwen2", "mistral")


def backbone(folder: Path, kind: str, **changes: object) -> Path:
    """A masked language model in a plain folder, or a decoder as an embedder: bf16, last token, a prompt."""
    bert = kind not in (*DECODERS, "xlm-roberta", "mpnet")
    tokenizer = AutoTokenizer.from_pretrained(
        (tiny_bert if bert else tiny_roberta)(folder / f"tokenizer-{kind}")
    )
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    general = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "max_position_embeddings": 66,
    }
    config = AutoConfig.for_model(kind, **general | CONFIGS[kind] | changes)
    torch.manual_seed(0)
    if kind not in DECODERS:
        AutoModelForMaskedLM.from_config(config).save_pretrained(folder / kind)
        tokenizer.save_pretrained(folder / kind)
        return folder / kind
    AutoModel.from_config(config).to(torch.bfloat16).save_pretrained(folder / f"plain-{kind}")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        "$A </s>", special_tokens=[("</s>", 2)]
    )
    tokenizer.padding_side, tokenizer.mask_token = "left", None
    tokenizer.save_pretrained(folder / f"plain-{kind}")
    modules = [Transformer(str(folder / f"plain-{kind}")), Pooling(32, "lasttoken"), Normalize()]
    model = SentenceTransformer(
        modules=modules, prompts={"query": "the query is ", "document": ""}, device="cpu"
    )
    model.to(torch.bfloat16).save(str(folder / kind))
    return folder / kind


@pytest.mark.parametrize("kind", CONFIGS)
def test_it_trains_and_exports(tmp_path, kind: str) -> None:
    corpus, notes = write_corpus(tmp_path, 24), []
    pooling = "backbone" if kind in DECODERS else "mean"
    settings = ["training.precision=bf16", f"encoder.pooling={pooling}", "encoder.dropout=0.1"]
    result = run(corpus, backbone(tmp_path, kind), tmp_path / "out", *settings, notify=notes.append)
    model, texts = (
        SentenceTransformer(str(result.model), device="cpu"),
        ["the cat", "a dog runs in the garden", ""],
    )
    vectors = model.encode(texts)
    assert vectors.shape == (3, 32)
    np.testing.assert_allclose(
        Embedder(load_encoder(result.model)).encode(texts), vectors, atol=1e-5
    )
    np.testing.assert_allclose([model.encode(text) for text in texts], vectors, atol=1e-4)
    packed = kind in ("distilbert", "electra", "xlm-roberta")
    assert any(f"a {kind} does not compute them packed" in note for note in notes) != packed
    assert ("a deberta trains in fp32 only" in notes) == (kind == "deberta")


def test_a_model_built_without_dropout_gets_some_when_asked(tmp_path) -> None:
    corpus = write_corpus(tmp_path, 24)
    still = backbone(
        tmp_path, "modernbert", attention_dropout=0.0, mlp_dropout=0.0, embedding_dropout=0.0
    )
    with pytest.raises(OpencseError, match=r"dropout is 0.*encoder\.dropout=0\.1"):
        run(corpus, still, tmp_path / "out")
    run(corpus, still, tmp_path / "out", "encoder.dropout=0.1")


def test_a_decoder_pools_its_last_token(tmp_path) -> None:
    folder = backbone(tmp_path, "mistral")
    plain = tmp_path / "plain-mistral"
    with pytest.raises(
        OpencseError, match=r"a decoder, whose first token.*encoder\.pooling=lasttoken"
    ):
        run(write_corpus(tmp_path, 24), plain, tmp_path / "out")
    own, other = (load_encoder(folder), load_encoder(plain, pooling="lasttoken"))
    texts = ["the cat", "a dog runs in the garden"]
    unit = other.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(own.encode(texts), unit, atol=1e-5)
    assert {p.dtype for p in own.parameters()} == {torch.float32}


def test_a_decoder_that_reads_both_ways_keeps_doing_so(tmp_path) -> None:
    """As GTE-Qwen2: `is_causal` of its configuration is false, and its first token knows the others."""
    folder = backbone(tmp_path, "qwen2", is_causal=False)
    settings = ["encoder.pooling=cls", "encoder.dropout=0.1", "training.max_steps=1"]
    result = run(write_corpus(tmp_path, 24), folder, tmp_path / "out", *settings)
    for model in (
        load_encoder(folder, pooling="cls"),
        SentenceTransformer(str(result.model), device="cpu"),
    ):
        one, other = model.encode(["the cat", "the dog runs"])
        assert not np.allclose(one, other, atol=1e-3)


def test_an_instruction_is_read_in_training_too(tmp_path) -> None:
    """A view's prompt gives the vectors that `encode` gives with it, though texts are padded on the other side."""
    folder, seen = backbone(tmp_path, "qwen3"), {}

    def look(self):
        batch = self.collator([0, 1, 2, 3])
        self.network.eval()
        seen["vectors"] = encode(self.network.encoder, batch)[0].detach().numpy()
        raise KeyboardInterrupt

    corpus = write_corpus(tmp_path, 24)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.TrainingLoop, "run", look)
        prompts = [f"views.{view}.prompt=the query is {{}}" for view in ("anchor", "twin")]
        with pytest.raises(KeyboardInterrupt):
            run(
                corpus,
                folder,
                tmp_path / "out",
                "encoder.pooling=backbone",
                "encoder.dropout=0.1",
                *prompts,
            )
    texts = [json.loads(line)["text"] for line in corpus.read_text().splitlines()[:4]]
    model = load_encoder(folder)
    np.testing.assert_allclose(seen["vectors"], model.encode(texts, prompt_name="query"), atol=1e-5)
    assert not np.allclose(seen["vectors"], model.encode(texts), atol=1e-2)


def test_a_plain_modernbert_is_told_both_settings_at_once(tmp_path) -> None:
    start = backbone(
        tmp_path, "modernbert", attention_dropout=0.0, mlp_dropout=0.0, embedding_dropout=0.0
    )
    corpus = write_corpus(tmp_path, 24)
    with pytest.raises(OpencseError, match=r"no pooling, and its dropout is 0\. Set both") as told:
        opencse.train(
            "simcse",
            corpus,
            backbone=start,
            out=tmp_path / "refused",
            overrides=["encoder.pooling=backbone"],
        )
    settings = re.findall(r"--set (\S+?)[.]?(?: |$)", told.value.remedy)
    assert len(settings) == 2
    recipe = load_recipe("simcse", overrides=settings)
    assert load_start(recipe, Backbone(start))


PAGE = Path(__file__).parents[2] / "docs" / "guides" / "backbones.md"
FAMILIES = ("qwen3", "mistral", "modernbert", "xlm-roberta", "mpnet", "deberta", "deberta-v2")


def cells() -> dict[tuple[str, str], str]:
    """What the page says of each recipe and family."""
    found = re.findall(
        r"^\| ((?:`|all others).*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
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
    model = SentenceTransformer(
        str(result.model), device="cpu", trust_remote_code=recipe.block is not None
    )
    assert np.isfinite(model.encode(["the cat", "a dog runs"])).all()


DIAGONAL = [(name, FAMILIES[i % len(FAMILIES)]) for i, name in enumerate(recipe_names())]


@pytest.mark.parametrize(
    ("name", "kind"),
    [pytest.param(*pair, marks=[] if pair in DIAGONAL else pytest.mark.slow) for pair in cells()],
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


def test_promptbert_trains_without_denoising_where_there_are_no_position_embeddings(
    tmp_path,
) -> None:
    trained(tmp_path, "promptbert", "modernbert", "encoder.denoising=none")


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAMILIES)
def test_an_onnx_graph_gives_the_same_vectors(tmp_path, kind: str) -> None:
    pytest.importorskip("onnxruntime")
    from opencse.commands.integrations.onnx import export_onnx

    pooling = "backbone" if kind in DECODERS else "mean"
    save_encoder(load_encoder(backbone(tmp_path, kind), pooling=pooling), tmp_path / "model")
    difference, _ = export_onnx(tmp_path / "model", tmp_path / "onnx")
    assert difference < 1e-4


TEXTS = ["the cat", "a dog runs in the garden", ""]
LORA = ("encoder.lora.rank=4", "encoder.lora.dropout=0.1", "encoder.pooling=backbone")


def test_a_decoder_learns_by_adapters_that_are_merged_resumes_and_loads_alone(
    tmp_path, monkeypatch
) -> None:
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
    assert {key: value.shape for key, value in expected.items()} == {
        k: tuple(v.shape) for k, v in before.items()
    }
    changed = {
        key for key in expected if not np.allclose(expected[key], before[key].float().numpy())
    }
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
        return {
            "fake": float(
                sum(p.detach().square().sum() for name, p in named if "lora_B" in name) * 1e6 % 7
            )
        }


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
    monkeypatch.setitem(sys.modules, "peft", None)
    settings = ["encoder.lora.rank=4", "encoder.pooling=mean"]
    corpus, start = write_corpus(tmp_path), tiny_bert(tmp_path / "bert")
    command = [
        "train",
        "simcse",
        str(corpus),
        "--backbone",
        str(start),
        "-o",
        str(tmp_path / "out"),
    ]
    monkeypatch.setattr(
        "sys.argv", ["opencse", *command, *(part for each in settings for part in ("--set", each))]
    )
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert (
        'the package peft is not installed. pip install "opencse[lora]"' in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"encoder.lora": {"rank": 0}}, "rank must be at least 1"),
        ({"encoder.lora": {"rank": 2, "alpha": 0}}, "alpha must lie in"),
        ({"encoder.lora": {"rank": 2, "dropout": 1}}, "dropout must lie in"),
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
    with pytest.raises(
        OpencseError, match=r"a MPNetModel cannot do gradient checkpointing.*micro_batch"
    ):
        run(write_corpus(tmp_path), backbone(tmp_path, "mpnet"), tmp_path / "out", *settings)
