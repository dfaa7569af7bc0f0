"""Encoders and decoders of other families are backbones like any other."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
from tokenizers import processors
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoTokenizer

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.foundation.errors import OpencseError
from opencse.training import loop
from opencse.training.network import encode
from tests.tiny import tiny_bert, tiny_roberta
from tests.training.helpers import run, write_corpus

SHAPE = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
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
    "xlm-roberta": SHAPE | {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1},
    "deberta": SHAPE | RELATIVE,
    "deberta-v2": SHAPE | RELATIVE | {"norm_rel_ebd": "layer_norm", "share_att_key": True},  # DeBERTa-v3's, too
    "qwen3": GROUPED,
    "qwen2": GROUPED,
    "mistral": GROUPED | {"sliding_window": None},
}
DECODERS = ("qwen3", "qwen2", "mistral")


def backbone(folder: Path, kind: str, **changes: object) -> Path:
    """A masked language model in a plain folder, or a decoder as an embedder: bf16, last token, a prompt."""
    bert = kind not in (*DECODERS, "xlm-roberta", "mpnet")
    tokenizer = AutoTokenizer.from_pretrained((tiny_bert if bert else tiny_roberta)(folder / f"tokenizer-{kind}"))
    tokenizer.model_input_names = ["input_ids", "attention_mask"]
    general = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "max_position_embeddings": 66}
    config = AutoConfig.for_model(kind, **general | CONFIGS[kind] | changes)
    torch.manual_seed(0)
    if kind not in DECODERS:
        AutoModelForMaskedLM.from_config(config).save_pretrained(folder / kind)
        tokenizer.save_pretrained(folder / kind)
        return folder / kind
    AutoModel.from_config(config).to(torch.bfloat16).save_pretrained(folder / f"plain-{kind}")
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 2)])
    tokenizer.padding_side, tokenizer.mask_token = "left", None
    tokenizer.save_pretrained(folder / f"plain-{kind}")
    modules = [Transformer(str(folder / f"plain-{kind}")), Pooling(32, "lasttoken"), Normalize()]
    model = SentenceTransformer(modules=modules, prompts={"query": "the query is ", "document": ""}, device="cpu")
    model.to(torch.bfloat16).save(str(folder / kind))
    return folder / kind


@pytest.mark.parametrize("kind", CONFIGS)
def test_it_trains_and_exports(tmp_path, kind: str) -> None:
    corpus, notes = write_corpus(tmp_path, 24), []
    pooling = "backbone" if kind in DECODERS else "mean"
    settings = ["training.precision=bf16", f"encoder.pooling={pooling}", "encoder.dropout=0.1"]
    result = run(corpus, backbone(tmp_path, kind), tmp_path / "out", *settings, notify=notes.append)
    model, texts = SentenceTransformer(str(result.model), device="cpu"), ["the cat", "a dog runs in the garden", ""]
    vectors = model.encode(texts)
    assert vectors.shape == (3, 32)
    np.testing.assert_allclose(Embedder(load_encoder(result.model)).encode(texts), vectors, atol=1e-5)
    np.testing.assert_allclose([model.encode(text) for text in texts], vectors, atol=1e-4)
    packed = kind in ("distilbert", "electra", "xlm-roberta")
    assert any(f"a {kind} does not compute them packed" in note for note in notes) != packed
    assert ("a deberta trains in fp32 only" in notes) == (kind == "deberta")


def test_a_model_built_without_dropout_gets_some_when_asked(tmp_path) -> None:
    corpus = write_corpus(tmp_path, 24)
    still = backbone(tmp_path, "modernbert", attention_dropout=0.0, mlp_dropout=0.0, embedding_dropout=0.0)
    with pytest.raises(OpencseError, match=r"dropout is 0.*encoder\.dropout=0\.1"):
        run(corpus, still, tmp_path / "out")
    run(corpus, still, tmp_path / "out", "encoder.dropout=0.1")


def test_a_decoder_pools_its_last_token(tmp_path) -> None:
    folder = backbone(tmp_path, "mistral")
    plain = tmp_path / "plain-mistral"
    with pytest.raises(OpencseError, match=r"a decoder, whose first token.*encoder\.pooling=lasttoken"):
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
    for model in (load_encoder(folder, pooling="cls"), SentenceTransformer(str(result.model), device="cpu")):
        one, other = model.encode(["the cat", "the dog runs"])
        assert not np.allclose(one, other, atol=1e-3)


def test_an_instruction_is_read_in_training_too(tmp_path) -> None:
    """A view's prompt gives the vectors that `encode` gives with it, though texts are padded on the other side."""
    folder, seen = backbone(tmp_path, "qwen3"), {}

    def look(self):
        batch = self.assembler([0, 1, 2, 3])
        self.network.eval()
        seen["vectors"] = encode(self.network.encoder, batch)[0].detach().numpy()
        raise KeyboardInterrupt

    corpus = write_corpus(tmp_path, 24)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.TrainingLoop, "run", look)
        prompts = [f"views.{view}.prompt=the query is {{}}" for view in ("anchor", "twin")]
        with pytest.raises(KeyboardInterrupt):
            run(corpus, folder, tmp_path / "out", "encoder.pooling=backbone", "encoder.dropout=0.1", *prompts)
    texts = [json.loads(line)["text"] for line in corpus.read_text().splitlines()[:4]]
    model = load_encoder(folder)
    np.testing.assert_allclose(seen["vectors"], model.encode(texts, prompt_name="query"), atol=1e-5)
    assert not np.allclose(seen["vectors"], model.encode(texts), atol=1e-2)
