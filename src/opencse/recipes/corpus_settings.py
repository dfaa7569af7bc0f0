"""Settings of a recipe's corpus: the sampled sentences, and the parts of the training rows."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class MixturePart:
    """One sort of training rows, drawn from the sentences of which certain views could be built.

    Attributes:
        rows: How many; 0 leaves the part out.
        needs: Columns that a sentence must have.
        keeps: Further columns that its rows keep where the sentence has them; all others are left out of these rows.
        words: Sentences of more white-space words are left out.
    """

    rows: int
    needs: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    words: int | None = None

    def __post_init__(self) -> None:
        if self.rows < 0 or (self.words is not None and self.words < 1):
            raise ValueError("rows must be at least 0 and words at least 1")


@dataclass(frozen=True, kw_only=True)
class CorpusSettings:
    """Sampling of the raw text before views are built, and of the built rows before training.

    Attributes:
        clauses: Share of the sentences that are cut to their main clause, where one can be cut out.
        rows: Sentences used at most, drawn at random; all where absent.
        opposites: So many more sentences, drawn for the adjectives and verbs in them that have an opposite, each
            adjective as often as any other as far as the text has it, and each verb four times as often. An attribute
            ("the dirty water") becomes a sentence of its own ("The water is dirty.").
        paraphrases: Sentences of a table of paraphrases used at most, drawn at random; all where absent.
        language: Code of the language whose rules build the views (`opencse.text.languages`); `auto` for the likeliest
            one of the text.
        syntax: A spaCy pipeline for this language, by name or folder; by default the one that its rules come with.
        parts: The sorts of rows that training mixes, by name (`data/mixture.py`); where absent, every sentence is one
            row with all its views.
    """

    clauses: float = 0.0
    rows: int | None = None
    opposites: int = 0
    paraphrases: int | None = None
    language: str = "auto"
    syntax: str = ""
    parts: dict[str, MixturePart] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 <= self.clauses <= 1:
            raise ValueError("clauses must be a share from 0 to 1")
        if self.rows is not None and self.rows < 2:
            raise ValueError("rows must be at least 2")
        if self.opposites < 0:
            raise ValueError("opposites must be at least 0")
        if self.paraphrases is not None and self.paraphrases < 1:
            raise ValueError("paraphrases must be at least 1")
