"""Texts that occur several times in a batch, and then count as negatives of rows that they are positives of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opencse.recipes.rows.token_store import TokenStore
from opencse.recipes.settings import Training
from opencse.training.batches import BatchSampler, ViewTokens

# Number of batches that are looked at.
_LOOKED_AT = 100
# Number of views that a message names.
_NAMED = 3


def repeated_lines(
    store: TokenStore, views: Mapping[str, ViewTokens], training: Training
) -> Iterator[str]:
    """Yield a line if rows of the first batches share a text: how often, and in which views.

    Such a text is the positive of one row and at the same time a negative of the other, so the loss
    pulls and pushes the same pair. Rows with the same anchor are dropped before.

    Args:
        store: The rows.
        views: The views of the batches.
        training: Batch size and seed.
    """
    sampler = BatchSampler(store.rows, min(training.batch_size, store.rows), training.seed)
    count = min(_LOOKED_AT, sampler.batches_per_epoch)
    if count == 0:
        return
    names: dict[int, str] = {}
    for name, view in views.items():
        names.setdefault(view.source, name)
    batches = [sampler.batch(step).tolist() for step in range(count)]
    repeated = {}
    for source, name in names.items():
        found = sum(_has_repeats(store, source, batch) for batch in batches)
        if found:
            repeated[name] = found
    if not repeated:
        return
    often = sorted(repeated, key=lambda name: -repeated[name])
    line = (
        f"in {repeated[often[0]]} of the first {count} batches, several rows have the same {often[0]}, "
        "which then counts as a negative of its own pair; smaller batches have fewer of them"
    )
    others = often[1 : 1 + _NAMED]
    if others:
        # A recipe may have twenty views; one line is enough.
        left_out = len(often) - 1 - len(others)
        more = f" and {left_out} more" if left_out else ""
        line = f"{line} (also: {', '.join(others)}{more})"
    yield line


def _has_repeats(store: TokenStore, source: int, rows: list[int]) -> bool:
    seen: set[bytes] = set()
    for row in rows:
        ids = store.ids(source, row)
        if ids is not None:
            text = ids.tobytes()
            if text in seen:
                return True
            seen.add(text)
    return False
