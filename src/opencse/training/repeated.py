"""Texts that occur several times in a batch, and then count as negatives of rows that they are positives of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opencse.recipes.rows.token_store import TokenStore
from opencse.recipes.settings import Training
from opencse.training.batches import BatchSampler, ViewTokens

_LOOKED_AT = 100  # batches


def repeated_lines(
    store: TokenStore, views: Mapping[str, ViewTokens], training: Training
) -> Iterator[str]:
    """Yield in how many of the first batches rows share a text, for each view by whose text they do.

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
    for source, name in names.items():
        repeated = sum(_has_repeats(store, source, batch) for batch in batches)
        if repeated:
            yield (
                f"in {repeated} of the first {count} batches, several rows have the same {name}, "
                "which then counts as a negative of its own pair; smaller batches have fewer of them"
            )


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
