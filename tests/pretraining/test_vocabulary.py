from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from opencse.errors import OpencseError
from opencse.pretraining.settings import Vocabulary
from opencse.pretraining.vocabulary import SPECIAL, Pieces, train_tokenizer
from tests.pretraining.helpers import SENTENCES, small_tokenizer
from tests.tiny import tiny_roberta


def test_reads_like_bert_uncased(tmp_path: Path) -> None:
    tokenizer = small_tokenizer()
    ids = tokenizer("The Cat  watches\tÉTÉ, ")["input_ids"]
    assert ids == tokenizer("the cat watches ete,")["input_ids"]
    assert (ids[0], ids[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)
    assert tokenizer("a", "b")["token_type_ids"] == [0, 0, 0, 1, 1]
    assert tokenizer.convert_ids_to_tokens(range(5)) == list(SPECIAL)
    assert len(tokenizer) == 80
    tokenizer.save_pretrained(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again("The Cat watches [MASK].")["input_ids"] == tokenizer("The Cat watches [MASK].")["input_ids"]
    assert again.mask_token == "[MASK]"
    assert again.model_max_length == 48


def test_cased() -> None:
    tokenizer = train_tokenizer(lambda: SENTENCES, Vocabulary(size=80, alphabet=60, lowercase=False), 48)
    assert tokenizer("The")["input_ids"] != tokenizer("the")["input_ids"]


def test_the_same_text_gives_the_same_vocabulary() -> None:
    found = {small_tokenizer().backend_tokenizer.to_str() for _ in range(4)}  # hash tables are seeded anew each time
    assert len(found) == 1


def test_too_little_text() -> None:
    with pytest.raises(OpencseError, match=r"yields only .* pieces, not vocabulary.size = 9999"):
        train_tokenizer(lambda: SENTENCES, Vocabulary(size=9999), 48)


def test_pieces_of_a_byte_level_tokenizer(tmp_path: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_roberta(tmp_path))
    pieces = Pieces.of(tokenizer, rows=len(tokenizer) + 3)
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    assert {tokens[i] for i in pieces.ordinary}.isdisjoint(tokenizer.all_special_tokens)
    assert len(pieces.ordinary) == len(tokenizer) - len(set(tokenizer.all_special_ids))
    assert all(pieces.starts[i] == tokens[i].startswith("Ġ") for i in pieces.ordinary)


def test_no_mask_token() -> None:
    tokenizer = small_tokenizer()
    tokenizer.mask_token = None
    with pytest.raises(OpencseError, match="no mask token"):
        Pieces.of(tokenizer)


def test_no_room_for_the_alphabet() -> None:
    with pytest.raises(OpencseError, match=r"too small for the .* single characters"):
        train_tokenizer(lambda: SENTENCES, Vocabulary(size=20), 48)


def test_rare_characters_are_unknown() -> None:
    tokenizer = train_tokenizer(lambda: [*SENTENCES, "q"], Vocabulary(size=70, alphabet=20), 48)
    assert tokenizer.tokenize("the q") == ["the", "[UNK]"] or tokenizer.tokenize("q") == ["[UNK]"]
