"""What every constructor is: a specification that a recipe can name, and the worker that it opens."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from opencse.views.sentence_store import CorpusAccess

Score = float | int | str | None
UNIT = 512  # rows that are built together: batches form within them, whatever the number of workers


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceRow:
    """One sentence of the corpus.

    Attributes:
        id: Its number, counted from 0 over the lines that are not blank.
        text: The sentence; half a surrogate pair, which UTF-8 cannot hold, becomes "?".
        views: Columns that were built before, by name: null where that constructor could not do its job.
    """

    id: int
    text: str
    views: Mapping[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text.encode("utf-8", "replace").decode("utf-8"))


@dataclass(frozen=True, kw_only=True, slots=True)
class BuiltView:
    """What a constructor made of one sentence.

    Attributes:
        text: The related sentence; None where no rule applies.
        rule: Which rule made it, or why there is none.
        scores: Values recorded beside it, by name.
    """

    text: str | None
    rule: str
    scores: Mapping[str, Score] = field(default_factory=dict)


class Constructor(Protocol):
    """The opened form of a specification: models loaded, ready for rows."""

    @property
    def digest(self) -> str:
        """A hash of the weights and tables that the output depends on, "" for none."""
        ...

    def __call__(self, rows: Sequence[SourceRow]) -> list[BuiltView]:
        """Return one view per row, the same whatever the other rows are."""
        ...


class ManyConstructor(Protocol):
    """A constructor of a specification with several columns."""

    @property
    def digest(self) -> str:
        """As in `Constructor`."""
        ...

    def __call__(self, rows: Sequence[SourceRow]) -> list[list[BuiltView]]:
        """Return for each row one view per column."""
        ...


class Opener(Protocol):
    """What each process opens: small, and picklable."""

    def open(self, *, seed: int = 0, workers: int = 1) -> Constructor | ManyConstructor:
        """See `ConstructorSpec.open`."""
        ...


@dataclass(frozen=True, kw_only=True)
class ConstructorSpec:
    """Parameters of one constructor; importing a specification loads no model library.

    Class attributes:
        kind: Its name in a recipe.
        scores: The columns it records beside its output, name to type ("float", "int" or "string").
        unit: Rows that it takes together, a multiple of `UNIT`.

    Attributes:
        of: The column whose sentences it takes: the corpus's own (`text`), or one that is built before, such as the
            negation of an antonym.
    """

    kind: ClassVar[str]
    scores: ClassVar[Mapping[str, str]] = {}
    unit: ClassVar[int] = UNIT

    of: str = "text"

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that must be built before, beside `of`."""
        return ()

    @property
    def sources(self) -> tuple[str, ...]:
        """All columns that must be built before."""
        return self.needs if self.of == "text" else (self.of, *self.needs)

    @property
    def sees_the_corpus(self) -> bool:
        """Whether it works on the corpus as a whole, before any row is built."""
        return type(self).prepare is not ConstructorSpec.prepare

    def columns(self, name: str) -> tuple[str, ...]:
        """The columns that `[build.NAME]` makes: NAME, or several."""
        return (name,)

    def prepare(self, corpus: CorpusAccess) -> Opener:
        """Do, once and before any row is built, what needs the whole corpus; most constructors need nothing."""
        return self

    def open(self, *, seed: int = 0, workers: int = 1) -> Constructor | ManyConstructor:
        """Load what the constructor needs.

        Args:
            seed: The only source of chance.
            workers: Processes that run this constructor at the same time (a limit on requests is shared out).
        """
        raise NotImplementedError


def row_seed(seed: int, kind: str, row: SourceRow) -> int:
    """Return a 64-bit seed of one row: it depends on the row's number, not on what was drawn for other rows."""
    digest = hashlib.blake2b(f"{seed}\0{kind}\0{row.id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def row_random(seed: int, kind: str, row: SourceRow) -> random.Random:
    """Return the generator of one row."""
    return random.Random(row_seed(seed, kind, row))


def bundle_digest(*parts: str | bytes) -> str:
    """Return one SHA-256 over several strings."""
    joined = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        joined.update(len(data).to_bytes(8, "little") + data)
    return joined.hexdigest()


def with_error_rate(rows: Sequence[SourceRow], made: Sequence[tuple[str | None, str]]) -> list[BuiltView]:
    """Return views with the match error rate to their texts beside them."""
    from opencse.surface import match_error_rate

    done = [i for i, (text, _) in enumerate(made) if text is not None]
    rates = match_error_rate([rows[i].text for i in done], [str(made[i][0]) for i in done], workers=1)
    rate = dict(zip(done, rates.tolist(), strict=True))
    return [BuiltView(text=text, rule=rule, scores={"mer": rate.get(i)}) for i, (text, rule) in enumerate(made)]
