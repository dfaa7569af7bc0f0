from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from opencse.foundation.errors import OpencseError
from opencse.text.generated import back_translation
from opencse.text.generated.back_translation import FREQUENT, Translator, insert_words, mask_words
from opencse.text.views.registry import BackTranslation
from tests.tiny import WORDS

TEXTS = ["The old dog sits in the garden.", "a man", "A happy child reads a green book today.", " ", "x" * 2000]
SHAPE = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}
WIDE = {"window": (0.0, 1.0)}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(back_translation, "_MAX_NEW_TOKENS", 8)
    monkeypatch.setattr(back_translation, "_BATCH", 2)


def test_there_and_back(marian, rows):
    spec = BackTranslation(models=((marian, marian),), beams=2, **WIDE)
    views = spec.open()(rows(*TEXTS))
    assert views[0].rule == marian
    assert 0 <= views[0].scores["mer"] <= 1
    assert [view.rule for view in views[3:]] == ["no candidate", "no candidate"]
    assert [view.text for view in views[:3]] == [spec.open()([row])[0].text for row in rows(*TEXTS[:3])]


def test_pivots_and_variants_are_candidates(marian, rows):
    spec = BackTranslation(models=((marian, marian),) * 2, variants=2, noise="insert", **WIDE)
    views = spec.open(seed=1)(rows(*TEXTS[:3]))
    assert {view.scores["candidates"] for view in views} == {4}
    assert views == spec.open(seed=1)(rows(*TEXTS[:3]))
    assert views != spec.open(seed=2)(rows(*TEXTS[:3]))


def test_window_gives_null(marian, rows):
    spec = BackTranslation(models=((marian, marian),), beams=1, **{**WIDE, "window": (0.0, 0.01)})
    assert spec.open()(rows(TEXTS[0]))[0].rule == "none in window"


def test_noise():
    chance = random.Random(0)
    text = "one two  three"
    made = insert_words(text, ["the", "of"], chance)
    assert sorted(made.split()) == sorted([*text.split(), "the", "of"])
    assert mask_words(text, 2, "[MASK]", chance).split().count("[MASK]") == 2
    assert mask_words("one", 2, "?", chance) == "?"
    assert len(FREQUENT) > 90


def test_noise_of_both_kinds_is_one_of_them_by_chance(marian, rows):
    """DebCSE §4.2: one or two frequent words are put in, or one or two words are masked."""
    opened = BackTranslation(models=((marian, marian),), noise="insert_or_mask", **WIDE).open(seed=0)
    (row,) = rows("one two three four")
    there = opened._pairs[0][0]
    noisy = [opened._noisy(row, str(salt), there).split() for salt in range(60)]
    masks = sum(there.unknown in words for words in noisy)
    assert 15 < masks < 45
    assert all((there.unknown in words) == (len(words) == 4) for words in noisy)


def test_what_is_wrong_is_named(marian):
    with pytest.raises(OpencseError, match="no/such"):
        BackTranslation(models=(("no/such", marian),)).open()
    with pytest.raises(ValueError, match="pairs"):
        BackTranslation(models=())
    with pytest.raises(ValueError, match="window"):
        BackTranslation(models=((marian, marian),), window=(0.5, 0.1))


@pytest.fixture(scope="module")
def fsmt(tmp_path_factory) -> Path:
    """A random FSMT model in the files that facebook/wmt19-en-ru has: its weights are a pickle."""
    import json

    import torch
    from transformers import FSMTConfig, FSMTForConditionalGeneration

    folder = tmp_path_factory.mktemp("fsmt")
    letters = sorted({letter for word in WORDS for letter in word} | set("abcdefghijklmnopqrstuvwxyz.,'"))
    tokens = ["<s>", "<pad>", "</s>", "<unk>", *letters, *(f"{letter}</w>" for letter in letters), "th", "the</w>"]
    for side in ("src", "tgt"):
        (folder / f"vocab-{side}.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("t h 10\nth e</w> 9\n")
    (folder / "tokenizer_config.json").write_text('{"langs": ["en", "ru"], "do_lower_case": false}')
    sizes = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in SHAPE.items()}
    vocabularies = {"src_vocab_size": len(tokens), "tgt_vocab_size": len(tokens)}
    config = FSMTConfig(langs=["en", "ru"], d_model=16, max_position_embeddings=64, **vocabularies, **sizes)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = FSMTForConditionalGeneration(config)
    config.save_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    return folder


def test_fsmt_works_once_converted_as_the_message_says(fsmt, tmp_path, rows):
    pytest.importorskip("sacremoses", reason="the extra mt is not installed")
    from transformers import AutoModelForSeq2SeqLM

    converted = str(shutil.copytree(fsmt, tmp_path / "converted"))
    AutoModelForSeq2SeqLM.from_pretrained(converted).save_pretrained(converted)
    (view,) = BackTranslation(models=((converted, converted),), **WIDE).open()(rows(TEXTS[0]))
    assert view.rule == converted
    assert view.text


def test_weights_as_a_pickle_are_refused_and_the_way_out_is_named(fsmt):
    with pytest.raises(OpencseError, match=r"only as pytorch_model.bin, a pickle, which is refused.*save_pretrained"):
        BackTranslation(models=((str(fsmt), str(fsmt)),)).open()


@pytest.fixture(scope="module")
def sentencepiece_marian(tmp_path_factory) -> str:
    """A random Marian model with a sentencepiece vocabulary of its own, in the files that Helsinki's models have."""
    sentencepiece = pytest.importorskip("sentencepiece", reason="the extra mt is not installed")
    import json

    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder = tmp_path_factory.mktemp("sentencepiece")
    sentences = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(0, len(WORDS), 3)]
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_prefix=str(folder / side),
            vocab_size=80,
            hard_vocab_limit=False,
            bos_id=-1,
            minloglevel=2,
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        (folder / f"{side}.vocab").unlink()
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    pieces = [model.id_to_piece(i) for i in range(model.get_piece_size()) if not model.is_control(i)]
    vocabulary = {piece: i for i, piece in enumerate(["</s>", *dict.fromkeys(pieces), "<pad>"])}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    tokenizer = MarianTokenizer(
        source_spm=str(folder / "source.spm"), target_spm=str(folder / "target.spm"), vocab=str(folder / "vocab.json")
    )
    tokenizer.save_pretrained(folder)
    shape = {"encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4, "decoder_attention_heads": 4}
    config = MarianConfig(
        vocab_size=len(vocabulary),
        d_model=32,
        encoder_ffn_dim=64,
        decoder_ffn_dim=64,
        max_position_embeddings=64,
        pad_token_id=vocabulary["<pad>"],
        eos_token_id=0,
        decoder_start_token_id=vocabulary["<pad>"],
        forced_eos_token_id=0,
        init_std=0.5,
        **shape,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        MarianMTModel(config).save_pretrained(folder)
    return str(folder)


def test_marian_with_sentencepiece(sentencepiece_marian, rows):
    translator = Translator(sentencepiece_marian, beams=1)
    ids = translator.tokenizer("the happy cat sits in the garden")["input_ids"]
    assert translator.tokenizer.decode(ids, skip_special_tokens=True) == "the happy cat sits in the garden"
    spec = BackTranslation(models=((sentencepiece_marian, sentencepiece_marian),), beams=2, **WIDE)
    views = spec.open()(rows(*TEXTS[:3]))
    assert any(view.rule == sentencepiece_marian and view.text for view in views)  # a random model may say nothing
    assert [view.text for view in views] == [spec.open()([row])[0].text for row in rows(*TEXTS[:3])]
