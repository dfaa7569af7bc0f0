from __future__ import annotations

import pytest
from transformers import AutoTokenizer

from opencse.foundation.errors import OpencseError
from opencse.text import syntax
from opencse.text.english.parse import parse_without_asides
from opencse.text.generated.substitution import cache_folder, static_lexicon
from opencse.text.syntax import SpacyParser, Token, bundled_path, load_parser
from tests.tiny import tiny_bert, tiny_roberta


@pytest.fixture(scope="module")
def parser():
    return load_parser()


def test_bundled_pipeline_is_small_and_parses(parser):
    assert sum(file.stat().st_size for file in bundled_path().rglob("*") if file.is_file()) <= 10 * 2**20
    (tokens,) = parser.parse(["The old man reads a book."])
    root = next(token for i, token in enumerate(tokens) if token.head == i)
    assert (root.text, root.tag, root.pos, root.lemma) == ("reads", "VBZ", "VERB", "read")
    subject = next(token for token in tokens if token.relation == "nsubj")
    assert (subject.text, tokens[subject.head].text) == ("man", "reads")


def test_offsets_and_order(parser):
    texts = ["  Two   spaces\tand a tab. ", "", "\n", "Don't!", "👍 مرحبا \x07 ok"]
    parsed = list(parser.parse(texts))
    for text, tokens in zip(texts, parsed, strict=True):
        assert all(text[token.start : token.end] == token.text and token.text.strip() for token in tokens)
        assert all(0 <= token.head < len(tokens) for token in tokens)
    assert [len(tokens) for tokens in parsed][1:3] == [0, 0]


def test_each_text_is_parsed_once_while_it_is_recent(monkeypatch):
    monkeypatch.setattr(syntax, "_KEPT", 4)
    parser, seen = SpacyParser("blank:en"), []
    pipe = parser._nlp.pipe
    monkeypatch.setattr(
        parser._nlp, "pipe", lambda texts, **options: pipe(seen.extend(t := list(texts)) or t, **options)
    )
    for texts in (["a", "b", "a"], ["b", "c"], [], ["d", "e", "a"], ["a", "b"], list("vwxyz")):
        assert [tokens[0].text for tokens in parser.parse(texts)] == texts
    assert seen == ["a", "b", "c", "d", "e", "b", *"vwxyz"]  # b was forgotten


def test_missing_pipeline_is_named():
    with pytest.raises(OpencseError, match="no_such_pipeline"):
        load_parser("no_such_pipeline")


def test_brackets_are_left_out_with_offsets_kept(parser):
    text = "Ann (born 1970) is [as ever] a doctor."
    (tokens,) = parse_without_asides(parser, [text])
    assert [token.text for token in tokens] == ["Ann", "is", "a", "doctor", "."]
    assert all(text[token.start : token.end] == token.text for token in tokens)


def test_odd_spacing_is_evened_out(parser):
    text = "\n The  dog\tsings .  "
    (tokens,) = parse_without_asides(parser, [text])
    assert [token.text for token in tokens] == ["The", "dog", "sings", "."]
    assert [text[token.start : token.end] for token in tokens] == ["The", "dog", "sings", "."]


class Counting:
    digest = "counting"

    def __init__(self):
        self.seen = []

    def parse(self, texts):
        for text in texts:
            self.seen.append(text)
            tag = "NOUN" if text.isalpha() else "PUNCT"
            yield (Token(text=text, start=0, end=len(text), lemma=text, tag="", pos=tag, head=0, relation="ROOT"),)


@pytest.mark.parametrize("make", [tiny_bert, tiny_roberta])
def test_static_lexicon(tmp_path, make):
    tokenizer = AutoTokenizer.from_pretrained(make(tmp_path / "model"))
    first = Counting()
    tags = static_lexicon(tokenizer, first)
    assert len(tags) == len(tokenizer)
    assert all((tags[i] == "") == (i in tokenizer.all_special_ids) for i in range(len(tags)))
    for entry, i in tokenizer.get_vocab().items():
        if entry.startswith("##"):
            assert tags[i] == "X"
    assert tags[tokenizer.convert_tokens_to_ids("dog" if make is tiny_bert else "Ġdog")] == "NOUN"
    second = Counting()
    assert static_lexicon(tokenizer, second) == tags
    assert first.seen
    assert not second.seen  # read from the cache
    assert len(list(cache_folder().glob("*.json"))) >= 1
    for path in cache_folder().glob("*.json"):
        path.write_text("[1")
    assert static_lexicon(tokenizer, second) == tags
    assert second.seen  # the cache was damaged


def test_a_blank_pipeline_has_words_without_tags_and_the_final_mark_apart() -> None:
    (tokens,) = load_parser("blank:de").parse(["Er endet am 3. Mai 2021."])
    assert [token.text for token in tokens] == ["Er", "endet", "am", "3.", "Mai", "2021", "."]
    assert (tokens[-2].start, tokens[-2].end, tokens[-1].start, tokens[-1].end) == (19, 23, 23, 24)
    assert {token.tag for token in tokens} == {""}
    with pytest.raises(OpencseError, match="no language 'tlh'"):
        load_parser("blank:tlh")
