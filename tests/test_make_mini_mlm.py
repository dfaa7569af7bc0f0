"""scripts/make_mini_mlm.py: a new model, an interrupted one and a continued one, each a backbone of opencse."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from opencse.encoder import load_encoder
from opencse.encoder.loading import load_masked_lm

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
import make_mini_mlm

WORDS = "the a old young river council dog cat sleeps meets runs near town garden school in on with unhappy quickly"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    words = WORDS.split()
    lines = [" ".join(words[(i * k) % len(words)] for k in range(1, 9)) for i in range(1, 321)]
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_new_model_is_a_backbone_and_continues(
    corpus: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, further = corpus.parent / "new", corpus.parent / "further"
    make = [str(corpus), "-o", str(new), "--vocabulary", "70", "--steps"]
    make_mini_mlm.main([*make, "2"])
    assert "perplexity of masked tokens in 4 held-out sentences" in capsys.readouterr().out
    config = json.loads((new / "model" / "config.json").read_text(encoding="utf-8"))
    shape = ("hidden_size", "num_hidden_layers", "vocab_size", "hidden_dropout_prob", "dtype")
    assert [config[key] for key in shape] == [256, 4, 70, 0.1, "float32"]
    assert load_encoder(str(new), pooling="mean").encode(["the old dog"]).shape == (1, 256)

    with pytest.raises(SystemExit) as stop:
        make_mini_mlm.main([*make, "3"])
    assert stop.value.code == 2
    assert "is not empty" in capsys.readouterr().err
    make_mini_mlm.main([*make, "3", "--resume"])
    assert (new / "checkpoints" / "checkpoint-3" / "model.safetensors").is_file()

    make_mini_mlm.main([str(corpus), "-o", str(further), "--model", str(new), "--steps", "2"])
    before, after = (load_file(folder / "model" / "model.safetensors") for folder in (new, further))
    name = "bert.encoder.layer.0.attention.self.query.weight"
    assert not torch.equal(before[name].float(), after[name].float())
    assert load_masked_lm(further)[1].get_vocab() == load_masked_lm(new)[1].get_vocab()


def test_whole_words_are_masked(corpus: Path) -> None:
    texts = corpus.read_text(encoding="utf-8").splitlines()
    tokenizer = make_mini_mlm.learn_vocabulary(texts, 70)
    assert tokenizer.get_vocab() == make_mini_mlm.learn_vocabulary(texts, 70).get_vocab()
    batch = make_mini_mlm.WholeWordCollator(tokenizer, 64, 0.3)(
        [{"text": text} for text in texts[:50]]
    )
    chosen = batch["labels"] != -100
    assert (batch["input_ids"][chosen] == tokenizer.mask_token_id).all()
    ids = torch.where(chosen, batch["labels"], batch["input_ids"])
    inner = torch.tensor(
        [token.startswith("##") for token in tokenizer.convert_ids_to_tokens(list(range(70)))]
    )[ids]
    assert inner.any()
    assert (chosen[:, 1:] == chosen[:, :-1])[inner[:, 1:]].all()
