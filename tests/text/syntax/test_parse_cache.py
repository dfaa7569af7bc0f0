from __future__ import annotations

from opencse.text.syntax import spacy_parser
from opencse.text.syntax.spacy_parser import CachedParser
from opencse.text.syntax.tokens import Token


class Counting:
    """One token per text; counts the texts it was given."""

    digest = "d"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def parse(self, texts):
        for text in texts:
            self.seen.append(text)
            yield (Token(text=text, start=0, end=len(text), lemma=text, tag="NN", pos="NOUN", head=0, relation="ROOT"),)


def test_each_text_is_parsed_once_while_it_is_recent(monkeypatch) -> None:
    monkeypatch.setattr(spacy_parser, "_KEPT", 4)
    behind = Counting()
    parser = CachedParser(behind)
    for texts in (["a", "b", "a"], ["b", "c"], [], ["d", "e", "a"], ["a", "b"], list("vwxyz")):
        assert [tokens[0].text for tokens in parser.parse(texts)] == texts
    assert behind.seen == ["a", "b", "c", "d", "e", "b", *"vwxyz"]  # b was forgotten
    assert parser.digest == "d"
