"""Which tokens are masked, and what becomes of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.pretraining.masking import mask_sequence
from opencse.pretraining.settings import Masking
from opencse.pretraining.vocabulary import Pieces
from tests.pretraining.helpers import SENTENCES, small_tokenizer

TOKENIZER = small_tokenizer()
PIECES = Pieces.of(TOKENIZER)


def flat(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    rows = TOKENIZER(texts)["input_ids"]
    begins = np.concatenate([np.arange(len(r)) == 0 for r in rows])
    return np.concatenate(rows), begins


def words_of(ids: np.ndarray) -> list[set[int]]:
    """Positions of each word, told from the pieces' spelling one by one."""
    words: list[set[int]] = []
    inside = False
    for i, token in enumerate(TOKENIZER.convert_ids_to_tokens(ids.tolist())):
        if token in TOKENIZER.all_special_tokens:
            inside = False
        elif token.startswith("##") and inside:
            words[-1].add(i)
        else:
            words.append({i})
            inside = True
    return words


TEXTS = st.lists(st.sampled_from([*SENTENCES, "[MASK] unread [SEP] ## letters", "日本 ☃"]), min_size=1, max_size=6)


@given(TEXTS, st.sampled_from([0.02, 0.2, 0.7]), st.booleans(), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_properties(texts: list[str], rate: float, whole: bool, seed: int) -> None:
    ids, begins = flat(texts)
    before = ids.copy()
    masking = Masking(rate=rate, whole_words=whole)
    masked, positions = mask_sequence(ids, begins, PIECES, masking, np.random.default_rng(seed))
    assert (ids == before).all(), "the original is left alone"
    assert len(positions)
    assert (np.diff(positions) > 0).all()
    assert not PIECES.special[ids[positions]].any()
    rest = np.setdiff1d(np.arange(len(ids)), positions)
    assert (masked[rest] == ids[rest]).all()
    new = masked[positions]
    assert ((new == PIECES.mask_id) | ~PIECES.special[new]).all()
    if whole:
        chosen = set(positions.tolist())
        assert all(word <= chosen or not word & chosen for word in words_of(ids))


@pytest.mark.parametrize("whole", [True, False])
def test_rates(whole: bool) -> None:
    ids, begins = flat(SENTENCES * 20)
    masking = Masking(rate=0.15, whole_words=whole, random=0.1, keep=0.1)
    masked, positions = mask_sequence(ids, begins, PIECES, masking, np.random.default_rng(1))
    ordinary = int((~PIECES.special[ids]).sum())
    assert len(positions) / ordinary == pytest.approx(0.15, abs=0.006)
    new, old = masked[positions], ids[positions]
    assert (new == PIECES.mask_id).mean() == pytest.approx(0.8, abs=0.015)
    by_chance = 0.1 / len(PIECES.ordinary)
    assert (new == old).mean() == pytest.approx(0.1 + by_chance, abs=0.015)
    noise = new[(new != PIECES.mask_id) & (new != old)]
    assert len(np.unique(noise)) > 0.9 * len(PIECES.ordinary), "any ordinary piece may come"


def test_words_are_chosen_independently() -> None:
    ids, begins = flat(["the river in winter"] * 2000)
    _, positions = mask_sequence(ids, begins, PIECES, Masking(rate=0.3), np.random.default_rng(2))
    chosen = np.zeros(len(ids), bool)
    chosen[positions] = True
    rows = chosen.reshape(2000, -1)
    the, last = rows[:, 1], rows[:, -2]
    assert (the & last).mean() == pytest.approx(0.09, abs=0.02)


def test_all_mask_and_all_kept() -> None:
    ids, begins = flat(SENTENCES)
    masked, positions = mask_sequence(ids, begins, PIECES, Masking(random=0, keep=0), np.random.default_rng(0))
    assert (masked[positions] == PIECES.mask_id).all()
    masked, positions = mask_sequence(ids, begins, PIECES, Masking(random=0, keep=1), np.random.default_rng(0))
    assert len(positions)
    assert (masked == ids).all()


def test_nothing_but_special_tokens() -> None:
    ids = np.array(TOKENIZER("")["input_ids"])
    masked, positions = mask_sequence(ids, ids == ids[0], PIECES, Masking(), np.random.default_rng(0))
    assert not len(positions)
    assert (masked == ids).all()


def test_impossible_settings() -> None:
    for wrong in ({"rate": 0.0}, {"rate": 1.0}, {"random": 0.6, "keep": 0.5}, {"keep": -0.1}):
        with pytest.raises(ValueError):
            Masking(**wrong)
