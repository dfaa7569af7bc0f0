"""Texts, or pairs of texts, with a class each: the data of transfer and classification tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation.task import TextEmbeddings, rows_sha256
from opencse.foundation.errors import OpencseError


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledTexts:
    """n texts, or pairs of texts, with a class each.

    Args:
        texts: The texts, or the first texts of pairs.
        labels: Class names.
        seconds: The second texts of pairs.
    """

    texts: Sequence[str]
    labels: Sequence[str]
    seconds: Sequence[str] | None = None

    def __post_init__(self) -> None:
        lengths = {len(self.texts), len(self.labels), len(self.labels if self.seconds is None else self.seconds)}
        if len(lengths) > 1:
            raise OpencseError(f"columns of unequal length {sorted(lengths)}", "Give one value per text.")

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[str]:
        yield from self.texts
        yield from self.seconds or ()


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledSet:
    """A data set of classified texts with its parts.

    Args:
        name: Name of the task.
        train: Training part; the only part of cross-validated tasks.
        dev: Development part, if there is one.
        test: Test part, if there is one.
        text: Text variant, as in `ScoredPairs`.

    Raises:
        OpencseError: A part is empty, there are fewer than two classes, or a class is missing in the training part.
    """

    name: str
    train: LabelledTexts
    dev: LabelledTexts | None = None
    test: LabelledTexts | None = None
    text: str = "given"

    def __post_init__(self) -> None:
        known = set(self.train.labels)
        for part, each in self.parts():
            if not len(each):
                raise OpencseError(f"{self.name} {part} holds no text", "Give labelled texts.")
            unknown = sorted(set(each.labels) - known)
            if unknown:
                raise OpencseError(
                    f"{self.name} {part}: the class {unknown[0]!r} does not occur in the training part",
                    "Add training texts of this class, or drop it.",
                )
        if len(known) < 2:
            raise OpencseError(f"{self.name}: all texts are of one class, {known.pop()!r}", "Give two classes or more.")

    def parts(self) -> Iterator[tuple[str, LabelledTexts]]:
        """Yield name and content of the existing parts."""
        for name, part in (("train", self.train), ("dev", self.dev), ("test", self.test)):
            if part is not None:
                yield name, part

    def texts(self) -> Iterator[str]:
        """Yield all texts of all parts."""
        for _, part in self.parts():
            yield from part

    @property
    def classes(self) -> list[str]:
        """Names of the classes, sorted."""
        return sorted(set(self.train.labels))

    def indices(self, part: LabelledTexts) -> np.ndarray:
        """Return the classes of a part as indices into `classes`, int64 (n,)."""
        index_of = {name: index for index, name in enumerate(self.classes)}
        return np.array([index_of[label] for label in part.labels], dtype=np.int64)

    def require_per_class(self, count: int, why: str) -> None:
        """Raise an `OpencseError` if a class has fewer than `count` training texts."""
        name, least = Counter(self.train.labels).most_common()[-1]
        if least < count:
            raise OpencseError(
                f"{self.name}: the class {name!r} has {least} training texts, and {why} needs {count}", "Add texts."
            )

    @property
    def sha256(self) -> str:
        """Hash of all rows of all parts, in order."""
        return rows_sha256(
            [name, *row]
            for name, part in self.parts()
            for row in zip(part.texts, part.seconds or part.texts, part.labels, strict=True)
        )


def features(embeddings: TextEmbeddings, part: LabelledTexts) -> np.ndarray:
    """Return vectors of texts (n, d), or (|u - v|, u * v) of pairs (n, 2d), float32."""
    first = np.asarray(embeddings(part.texts), dtype=np.float32)
    if part.seconds is None:
        return first
    second = np.asarray(embeddings(part.seconds), dtype=np.float32)
    return np.concatenate([np.abs(first - second), first * second], axis=1)
