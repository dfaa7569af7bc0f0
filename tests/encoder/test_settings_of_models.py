"""Settings of a model are honoured or refused when it is loaded, pooled otherwise, or given a meaning block."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

import opencse
from opencse.debias.meaning_block import MeaningBlock
from opencse.debias.shipped import append_block, encoding_settings
from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.embedder import Embedder
from opencse.foundation.errors import OpencseError
from tests.tiny import WORDS, tiny_bert, tiny_roberta


@pytest.fixture
def built(tmp_path) -> SentenceTransformer:
    return SentenceTransformer(
        modules=[Transformer(str(tiny_bert(tmp_path / "plain"))), Pooling(32, "mean")], device="cpu"
    )


def test_another_pooling_keeps_prompts_similarity_and_cut(built, tmp_path) -> None:
    built.prompts = {"query": "the house : ", "document": ""}
    built.default_prompt_name = "query"
    built.similarity_fn_name = "dot"
    built.truncate_dim = 12
    save_encoder(built, tmp_path / "model")
    other = load_encoder(tmp_path / "model", pooling="cls", device="cpu")
    expected = SentenceTransformer(
        modules=[built[0], Pooling(32, "cls")], device="cpu", truncate_dim=12
    )
    texts = ["the cat sits", "no"]
    vectors = expected.encode(texts, prompt="the house : ")
    np.testing.assert_allclose(other.encode(texts), vectors, atol=1e-5)
    assert other.similarity_fn_name == "dot"


def test_a_model_that_cuts_its_vectors_gets_no_block(built) -> None:
    block = MeaningBlock.beside(built, code=3, inner=5, hidden=7, code_hidden=4)
    whole = encoding_settings(built)
    built.truncate_dim = 12
    assert encoding_settings(built) != whole
    with pytest.raises(OpencseError, match="cut its vectors to 12 numbers"):
        append_block(built, block)


def test_roberta_reads_no_more_tokens_than_it_has_positions_for(tmp_path) -> None:
    folder = tiny_roberta(tmp_path / "roberta")
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": int(1e30)}))
    model = load_encoder(folder, pooling="mean", device="cpu")
    assert model.max_seq_length == 64
    assert model.encode(["cat " * 500]).shape == (1, 32)


def test_an_adapter_beside_modules_json_is_named(built, tmp_path) -> None:
    built.save(str(tmp_path / "lora"))
    (tmp_path / "lora" / "config.json").unlink()
    (tmp_path / "lora" / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(OpencseError, match="an adapter"):
        load_encoder(tmp_path / "lora")


def test_the_bundled_encoder_has_a_usual_pooling() -> None:
    model = load_encoder("mini-mlm", device="cpu")
    expected = load_encoder("mini-mlm", pooling="mean", device="cpu").encode(["a cat"])
    np.testing.assert_allclose(model.encode(["a cat"]), expected, atol=1e-6)


def test_vectors_that_depend_on_the_batch_are_noted(built, tmp_path, capsys) -> None:
    built.tokenizer.padding_side = "left"
    save_encoder(built, tmp_path / "left")
    load_encoder(tmp_path / "left", device="cpu")
    assert "pads texts on the left" in capsys.readouterr().err


def test_vectors_do_not_depend_on_the_size_of_batches(built) -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 20))) for _ in range(50)]
    one, many = (Embedder(built, token_budget=size).encode(texts) for size in (1, 5000))
    np.testing.assert_allclose(one, many, atol=1e-5)


def test_a_lone_path_or_string_is_one_item(built, tmp_path) -> None:
    save_encoder(built, tmp_path / "model")
    rows = [f"the {a} cat\ta {b} dog\t{i % 6}" for i, (a, b) in enumerate(zip(WORDS, WORDS[::-1]))]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(["sentence1\tsentence2\tscore", *rows]))
    model = str(tmp_path / "model")
    found = [opencse.evaluate(model, pairs=given) for given in (path, str(path), [path])]
    averages = {scores.results["pairs"].average for scores in found}
    assert len(averages) == 1
    recipe = opencse.load_recipe("simcse", overrides="optimizer.lr=1e-4")
    assert recipe.optimizer.lr == 1e-4
