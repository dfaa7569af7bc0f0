"""The meaning block against a literal transcription, on several architectures, and the upgrade of old vectors."""

import json
import shutil

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling
from tokenizers import Tokenizer, decoders
from transformers import PreTrainedTokenizerFast

from opencse.debias.meaning_block import (
    MeaningBlock,
    as_query,
    average,
    rescale,
    upgrade,
)
from opencse.debias.shipped import append_block, both_tokenizers, same_tokens
from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.backbone import weights_hash
from opencse.encoder.embedder import Embedder
from opencse.foundation.errors import OpencseError
from tests.encoder.families import FAMILIES, padded_batch
from tests.tiny import tiny_bert, tiny_roberta

TEXTS = [
    "the cat runs",
    "a big red dog sits in the garden today",
    "never",
    "the child reads a book and sings",
]
SIZES = {"code": 3, "inner": 5, "hidden": 7, "code_hidden": 4}


@pytest.fixture
def model(tmp_path):
    model = SentenceTransformer(str(tiny_bert(tmp_path / "bert", layers=3)), device="cpu")
    torch.manual_seed(0)
    block = MeaningBlock.beside(model, **SIZES)
    with torch.no_grad():
        for parameter in block.copy.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    block.standardise(torch.randn(50, 64), torch.randn(50, 96))
    model.append(block)
    return model.eval()


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def features(model, texts=TEXTS):
    with torch.no_grad():
        found = model[0]({**model.preprocess(texts)})
        for module in list(model)[1:-1]:
            found = module(found)
    return found


def test_equals_a_literal_transcription(model):
    block, found = model[-1], features(model)
    weights = {name: tensor.numpy() for name, tensor in block.state_dict().items()}
    mask = found["attention_mask"].numpy()
    e = unit(found["sentence_embedding"].numpy())
    got = model.encode(TEXTS)
    for row in range(len(TEXTS)):
        count = mask[row].sum()
        states = [state[row, :count].numpy() for state in found["all_layer_embeddings"]]
        lone = found["all_layer_embeddings"][block.first][row : row + 1, :count]
        copied = block.copy(lone, attention_mask=torch.zeros(1, 1, 1, count))[0][0].detach().numpy()
        scores = copied @ weights["score.weight"].T + weights["score.bias"]  # (tokens, heads)
        values = (copied @ weights["value.weight"].T + weights["value.bias"]).reshape(count, 4, 8)
        shares = np.exp(scores) / np.exp(scores).sum(0)
        pooled = np.concatenate([shares[:, head] @ values[:, head] for head in range(4)])
        averages = [unit(states[i].mean(0)) for i in block.averages]
        read = np.concatenate([unit(copied.mean(0)), unit(pooled), *averages])
        read = (read - weights["center"]) / weights["scale"]
        hidden = read @ weights["code.0.weight"].T + weights["code.0.bias"]
        hidden = torch.nn.functional.gelu(torch.from_numpy(hidden)).numpy()
        code = unit(hidden @ weights["code.2.weight"].T + weights["code.2.bias"])
        whole = np.concatenate([e[row] * np.sqrt(32), read])
        hidden = np.maximum(whole @ weights["sharpen.0.weight"].T + weights["sharpen.0.bias"], 0)
        topic = unit(hidden @ weights["sharpen.2.weight"].T + weights["sharpen.2.bias"])
        z = unit(weights["project.weight"] @ np.outer(code, topic).ravel())
        v = np.concatenate([e[row], block.strength * z, [0.0]]) / np.sqrt(1 + block.strength**2)
        np.testing.assert_allclose(got[row], v, atol=2e-6)


def test_the_copied_layers_begin_as_the_transformers_own(tmp_path):
    model = SentenceTransformer(str(tiny_roberta(tmp_path, layers=3)), device="cpu").eval()
    block = MeaningBlock.beside(model, **SIZES).eval()
    found = features(SentenceTransformer(modules=[*model, block]))
    last = average(found["all_layer_embeddings"][-1], found["attention_mask"])
    torch.testing.assert_close(block.copied(found)[:, :32], last)


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_runs_beside_every_architecture(family):
    transformer = FAMILIES[family]().eval()
    ids, mask = padded_batch()

    class First(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.auto_model = transformer

    class Model(list):
        device = torch.device("cpu")

        def get_embedding_dimension(self):
            return 16

    block = MeaningBlock.beside(Model([First()]), **SIZES).eval()
    assert (block.first is None) == (family in ("albert", "distilbert", "modernbert"))
    with torch.no_grad():
        output = transformer(input_ids=ids, attention_mask=mask, output_hidden_states=True)
        found = {
            "input_ids": ids,
            "attention_mask": mask,
            "all_layer_embeddings": output.hidden_states,
            "sentence_embedding": output.last_hidden_state[:, 0],
        }
        assert block(found)["sentence_embedding"].shape == (len(ids), 32)
        last = average(output.last_hidden_state, mask)
        torch.testing.assert_close(
            block.copied(found)[:, : last.shape[1]], last, atol=1e-5, rtol=1e-4
        )


def test_cosine_is_a_mixture_by_the_strength_on_which_the_hash_depends(model):
    given, block = features(model), model[-1]
    e, frozen = block.read(given)
    e, z = (part.detach().numpy() for part in (e, block.meaning(e, frozen, block.copied(given))[2]))
    share = model[-1].strength ** 2 / (1 + model[-1].strength ** 2)
    v = model.encode(TEXTS)
    np.testing.assert_allclose(v @ v.T, (1 - share) * e @ e.T + share * z @ z.T, atol=1e-5)
    model[-1].strength = 0.7
    np.testing.assert_allclose(rescale(v, 0.4, 0.7, 32), model.encode(TEXTS), atol=1e-6)
    np.testing.assert_allclose(rescale(upgrade(e, 0.4), 0.4, 0.7, 32), upgrade(e, 0.7), atol=1e-6)
    model[-1].strength = 0.0
    v = model.encode(TEXTS)
    np.testing.assert_allclose(v @ v.T, e @ e.T, atol=1e-6)
    np.testing.assert_array_equal(v[:, e.shape[1] :], 0)
    before = weights_hash(model)
    model[-1].strength = 0.7
    assert weights_hash(model) != before


@pytest.mark.parametrize("measure", ["dot product", "cosine"])
def test_an_index_is_upgraded_without_embedding_a_text(model, measure) -> None:
    """The first ten hits at every stage: the old index, the upgraded one, half again, all again; and the way back."""

    def ranking(index: np.ndarray, queries: np.ndarray) -> np.ndarray:
        return np.argsort(-queries @ (unit(index) if measure == "cosine" else index).T, axis=1)[
            :, :10
        ]

    rng = np.random.default_rng(1)
    words = "the a cat dog bird child sits runs eats sings big old red small in under garden river today never".split()
    texts = list(dict.fromkeys(" ".join(rng.choice(words, 6)) for _ in range(80)))
    new, strength = model.encode(texts), model[-1].strength
    old = unit(features(model, texts)["sentence_embedding"].numpy())
    queries = old[::9]
    before = ranking(old, queries)
    for done in (0, len(texts) // 2, len(texts)):
        index = np.concatenate([new[:done], upgrade(old[done:], strength)])
        after = ranking(index, as_query(queries))
        scores = np.take_along_axis(queries @ old.T, before, 1)
        np.testing.assert_allclose(np.take_along_axis(queries @ old.T, after, 1), scores, atol=1e-6)
    for put in (as_query, lambda vectors: upgrade(vectors, strength)):
        np.testing.assert_array_equal(put(old[0]), put(old)[0])
    assert (ranking(new, new[::9]) != before).any(), "whole queries go by meaning, too"
    back = np.take_along_axis(queries @ old.T, ranking(new[:, :32], queries), 1)
    np.testing.assert_allclose(back, scores, atol=1e-6)


def test_saved_folder_loads_with_and_without_opencse(model, tmp_path):
    model[-1].load_state_dict(
        {name: tensor.half().float() for name, tensor in model[-1].state_dict().items()}
    )
    vectors = model.encode(TEXTS)
    save_encoder(model, tmp_path / "saved")
    modules = json.loads((tmp_path / "saved" / "modules.json").read_text())
    assert modules[-1]["type"] == "meaning_block.MeaningBlock"
    assert "import opencse" not in (tmp_path / "saved" / "meaning_block.py").read_text()
    opened = load_encoder(tmp_path / "saved", device="cpu")
    assert type(opened) is SentenceTransformer
    assert type(opened[-1]) is MeaningBlock
    np.testing.assert_allclose(opened.encode(TEXTS), vectors, atol=1e-6)
    np.testing.assert_allclose(Embedder(opened).encode(TEXTS), vectors, atol=1e-6)
    again = SentenceTransformer(str(tmp_path / "saved"), trust_remote_code=True, device="cpu")
    assert not type(again[-1]).__module__.startswith("opencse")
    np.testing.assert_allclose(again.encode(TEXTS), vectors, atol=1e-6)
    again.save(str(tmp_path / "twice"))
    twice = SentenceTransformer(str(tmp_path / "twice"), trust_remote_code=True, device="cpu")
    np.testing.assert_allclose(twice.encode(TEXTS), vectors, atol=1e-6)


def test_stands_behind_any_pooling_dense_normalize_and_prompt(tmp_path):
    base = SentenceTransformer(str(tiny_bert(tmp_path / "bert", layers=4)), device="cpu")
    modules = [base[0], Pooling(32, "cls"), Dense(32, 12), Normalize()]
    model = SentenceTransformer(
        modules=modules, prompts={"text": "this is "}, default_prompt_name="text", device="cpu"
    )
    model.eval().append(MeaningBlock.beside(model, **SIZES).round_to_half().eval())
    assert model.get_embedding_dimension() == 24
    old = SentenceTransformer(
        modules=modules, prompts={"text": "this is "}, default_prompt_name="text", device="cpu"
    ).encode(TEXTS)
    vectors = model.encode(TEXTS)
    np.testing.assert_allclose(unit(vectors[:, :12]), unit(old), atol=1e-5)
    save_encoder(model, tmp_path / "saved")
    shutil.rmtree(tmp_path / "bert")
    np.testing.assert_allclose(
        load_encoder(tmp_path / "saved", device="cpu").encode(TEXTS), vectors, atol=2e-3
    )


@pytest.mark.parametrize("tiny", [tiny_bert, tiny_roberta])
def test_beside_another_model_its_own_comes_along_and_reads(model, tmp_path, tiny):
    model[-1].load_state_dict(
        {name: tensor.half().float() for name, tensor in model[-1].state_dict().items()}
    )
    other = load_encoder(
        tiny(tmp_path / "other", width=48, seed=1), pooling="mean", device="cpu"
    ).eval()
    other.prompts = {"query": "what is: "}
    e, z = unit(other.encode(TEXTS)), model.encode(TEXTS)[:, 32:] * np.sqrt(1 + 0.4**2)
    find = same_tokens if tiny is tiny_bert else both_tokenizers
    block = model[-1].beside_another(
        model[0].auto_model, 48, find(other.tokenizer, model.tokenizer), ["what is: "]
    )
    append_block(other, block)
    v = np.concatenate([e, z], axis=1) / np.sqrt(1 + 0.4**2)
    assert other.get_embedding_dimension() == 48 + 32
    np.testing.assert_allclose(other.encode(TEXTS), v, atol=1e-4)
    if tiny is tiny_roberta:
        np.testing.assert_allclose(
            other.encode(TEXTS, prompt_name="query")[:, 48:], v[:, 48:], atol=1e-4
        )
    np.testing.assert_allclose(
        rescale(v, 0.4, 0.7, 48), np.concatenate([e, z * 1.75], 1) / np.sqrt(1.49), atol=1e-6
    )
    np.testing.assert_allclose(
        as_query(e, 80) @ upgrade(e, 0.4, 80).T, e @ e.T / np.sqrt(1 + 0.4**2), atol=1e-6
    )
    np.testing.assert_allclose(as_query(e, 80) @ v.T, e @ e.T / np.sqrt(1 + 0.4**2), atol=1e-6)
    save_encoder(other, tmp_path / "saved")
    np.testing.assert_allclose(
        other.bfloat16().encode(TEXTS, convert_to_tensor=True).float(), v, atol=0.05
    )
    shutil.rmtree(tmp_path / "bert")
    for opened in (
        load_encoder(tmp_path / "saved", device="cpu"),
        SentenceTransformer(str(tmp_path / "saved"), trust_remote_code=True, device="cpu"),
    ):
        np.testing.assert_allclose(opened.encode(TEXTS), v, atol=2e-3)


def test_tokens_are_the_same_if_the_words_are_whatever_their_numbers(tmp_path):
    bert = load_encoder(tiny_bert(tmp_path / "bert"), pooling="mean").tokenizer
    definition = json.loads(bert.backend_tokenizer.to_str())
    names = {"[PAD]": "<pad>", "[CLS]": "<s>", "[SEP]": "</s>", "[MASK]": "<mask>"}
    words = list(definition["model"]["vocab"])
    other = ["<s>", "<pad>", "new", *words[::-1]]  # "[CLS]" is an unused word there
    definition["model"]["vocab"] = {word: place for place, word in enumerate(other)} | {
        "</s>": 500,
        "<mask>": 501,
    }
    definition["added_tokens"] = []
    marks = {f"{mark.strip('[]').lower()}_token": name for mark, name in names.items()} | {
        "unk_token": "[UNK]"
    }
    moved = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(definition)), **marks
    )
    found, own = same_tokens(moved, bert), moved.get_vocab()
    assert len(found) == 502
    for word in ("cat", "##ing", "[UNK]"):
        assert found[own[word]] == bert.get_vocab()[word]
    for mark, name in names.items():
        assert found[own[name]] == bert.get_vocab()[mark]
    assert found[own["new"]] == bert.unk_token_id
    roberta = load_encoder(tiny_roberta(tmp_path / "roberta"), pooling="mean").tokenizer
    assert same_tokens(roberta, bert) is None
    assert both_tokenizers(roberta, bert) is not None
    roberta.backend_tokenizer.decoder = decoders.WordPiece()  # texts do not come back
    assert both_tokenizers(roberta, bert) is None
    definition["normalizer"]["lowercase"] = False
    assert (
        same_tokens(
            PreTrainedTokenizerFast(
                tokenizer_object=Tokenizer.from_str(json.dumps(definition)), **marks
            ),
            bert,
        )
        is None
    )


def test_the_code_in_a_folder_is_not_run(model, tmp_path):
    model[-1].round_to_half()
    save_encoder(model, tmp_path / "saved")
    (tmp_path / "saved" / "meaning_block.py").write_text("raise SystemExit('foreign code ran')")
    load_encoder(tmp_path / "saved", device="cpu")
    modules = json.loads((tmp_path / "saved" / "modules.json").read_text())
    modules[-1]["type"] = "other_block.MeaningBlock"
    (tmp_path / "saved" / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(OpencseError, match="not a module of sentence-transformers"):
        load_encoder(tmp_path / "saved", device="cpu")


def test_old_vectors_of_a_wrong_length_or_norm_are_refused(model):
    block, e = model[-1], unit(np.random.default_rng(1).normal(size=(3, 32)))
    np.testing.assert_array_equal(block.upgrade(e), upgrade(e, 0.4, 64))
    np.testing.assert_array_equal(block.as_query(e[0]), as_query(e[0], 64))
    np.testing.assert_array_equal(block.upgrade(e.astype(np.float16)).shape, (3, 64))
    for wrong in (block.upgrade(e), e[:, :16]):
        with pytest.raises(ValueError, match="upgraded already"):
            block.upgrade(wrong)
        with pytest.raises(ValueError, match="upgraded already"):
            block.as_query(wrong)
    for length in (32, 65):
        with pytest.raises(ValueError, match="32 numbers don't become vectors of"):
            upgrade(e, 0.4, length)
    for wrong in (2 * e, 0 * e, e * np.nan):
        with pytest.raises(ValueError, match="length 1"):
            upgrade(wrong, 0.4)
        with pytest.raises(ValueError, match="length 1"):
            as_query(wrong)
