"""What a run saves is a function of the run: not of the cache, of an earlier run, or of other development pairs."""

from __future__ import annotations

import numpy as np
import pytest

from opencse.commands.evaluate import _length
from opencse.evaluation.evaluators import TaskEvaluator
from opencse.evaluation.sts import development_sets
from opencse.foundation.cache import Store, new_store
from opencse.foundation.errors import OpencseError
from opencse.training import model_card
from opencse.training.model_card import base_model
from tests.tiny import tiny_bert
from tests.training.helpers import crash_at, run, write_corpus


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path, 16)


@pytest.fixture
def backbone(tmp_path):
    return tiny_bert(tmp_path / "bert", layers=1)


def test_the_tokenizer_does_not_depend_on_the_cache(tmp_path, corpus, backbone) -> None:
    """The second run finds its tokens in the cache, and tokenises nothing."""
    saved = []
    for name in ("first", "second"):
        run(corpus, backbone, tmp_path / name)
        saved.append((tmp_path / name / "model" / "tokenizer.json").read_bytes())
    assert saved[0] == saved[1]


def test_a_run_is_resumed_with_its_own_development_pairs(
    tmp_path, corpus, backbone, monkeypatch
) -> None:
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(
        "sentence1\tsentence2\tscore\n"
        + "".join(f"the cat {i}\tthe dog {i}\t{i % 6}\n" for i in range(12))
    )
    dev, other = (TaskEvaluator(development_sets(given, None)) for given in ("demo", str(pairs)))
    assert dev.digest == TaskEvaluator(development_sets("demo", None)).digest != other.digest
    with monkeypatch.context() as patch:
        crash_at(3, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, backbone, tmp_path / "out", "training.epochs=3", dev=other)
    for changed in (dev, None):
        with pytest.raises(OpencseError, match="was begun with another development set"):
            run(corpus, backbone, tmp_path / "out", "training.epochs=3", dev=changed, resume=True)
    run(corpus, backbone, tmp_path / "out", "training.epochs=3", dev=other, resume=True)


def test_a_warmup_that_takes_all_steps_is_said(tmp_path, corpus, backbone) -> None:
    notes: list[str] = []
    run(corpus, backbone, tmp_path / "out", "schedule.warmup=1000", notify=notes.append)
    assert any("the learning rate never reaches its peak" in note for note in notes)
    notes.clear()
    run(corpus, backbone, tmp_path / "other", notify=notes.append)
    assert not any("never reaches its peak" in note for note in notes)


def test_a_model_is_saved_before_its_card(tmp_path, corpus, backbone, monkeypatch) -> None:
    def failing(*_: object) -> None:
        raise ValueError("broken YAML")

    monkeypatch.setattr(model_card, "base_model", failing)
    with pytest.raises(ValueError, match="broken YAML"):
        run(corpus, backbone, tmp_path / "out")
    assert (tmp_path / "out" / "model" / "model.safetensors").is_file()


@pytest.mark.parametrize(
    "card",
    [
        "---\n- a\n- b\n---\n",
        "---\n3\n---\n",
        "---\nbase_model: {a: 1}\nlicense: [x]\n---\n",
        "---\n!!python/x y\n---\n",
    ],
)
def test_cards_of_strangers(tmp_path, card) -> None:
    (tmp_path / "README.md").write_text(card)
    assert base_model(tmp_path) == (None, None)


@pytest.mark.parametrize("damage", ["values", "offsets", "rows", "order"])
def test_cached_arrays_that_do_not_fit_are_refused(tmp_path, damage) -> None:
    with new_store(tmp_path / "store", {"texts": np.uint8}) as writer:
        writer.add([b"one", b"two"])
    assert len(Store(tmp_path / "store")) == 2
    values, offsets = tmp_path / "store" / "texts.npy", tmp_path / "store" / "texts.offsets.npy"
    if damage == "values":
        np.save(values, np.zeros(3, np.uint8))
    elif damage == "offsets":
        np.save(offsets, np.array([0, 3]))
    elif damage == "order":
        np.save(offsets, np.array([0, 9, 6]))
    else:
        (tmp_path / "store" / "meta.json").write_text('{"rows": 200}')
    with pytest.raises(OpencseError, match="not a complete store"):
        Store(tmp_path / "store")


def test_a_model_without_a_maximum_length_has_none_in_results() -> None:
    assert (_length(float("inf")), _length(None), _length(128)) == (None, None, 128)
