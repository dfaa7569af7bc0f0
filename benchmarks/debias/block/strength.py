"""The strength of a meaning block: what tasks score at several values, and the largest that harms none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opencse.encoder.meaning_block import rescale
from opencse.evaluation.task import Encode, Task, evaluate_tasks

STRENGTHS = tuple(step / 20 for step in range(17))
"""0 to 0.8, in steps of 0.05."""


def strength_curve(
    encode: Encode, tasks: Sequence[Task], strengths: Sequence[float] = STRENGTHS
) -> dict[float, dict[str, float | None]]:
    """Return the main score of each task at each strength; every text is encoded once.

    Args:
        encode: Function from texts to the vectors of a model with a meaning block whose strength is 1.
        tasks: The tasks.
        strengths: Values of β; 0 is the untouched model.
    """
    texts = list(dict.fromkeys(text for task in tasks for text in task.texts()))
    vectors, place = encode(texts), {text: i for i, text in enumerate(texts)}

    def scores(strength: float) -> dict[str, float | None]:
        scaled = rescale(vectors, 1.0, strength)
        found = evaluate_tasks(lambda some: scaled[[place[text] for text in some]], list(tasks))
        return {result.task: result.score for result in found.results}

    return {strength: scores(strength) for strength in strengths}


def largest_strength(curve: Mapping[float, Mapping[str, float | None]], tolerance: float = 0.3) -> float:
    """Return the largest strength at which no task loses more than `tolerance` points of its score at strength 0."""
    before = curve[0.0]

    def harmless(strength: float) -> bool:
        return all((before[task] or 0.0) - (score or 0.0) <= tolerance for task, score in curve[strength].items())

    return max(filter(harmless, curve))
