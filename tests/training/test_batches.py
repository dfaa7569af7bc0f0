from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

from opencse.encoder import embedder as embedder_module
from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder
from opencse.encoder.prompts import Frame
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe, load_recipe
from opencse.recipes.rows.token_store import TokenSource, UsableRows
from opencse.recipes.schema import Teacher
from opencse.recipes.settings import Training
from opencse.text.corpus import Corpus
from opencse.training import batches
from opencse.training.batches import (
    BatchSampler,
    Collator,
    ViewTokens,
    _with_repetitions,
    few_widths,
)
from opencse.training.repeated import repeated_lines
from opencse.training.teachers import load_teachers, teacher_vectors
from tests.tiny import tiny_bert, tiny_roberta
from tests.training.helpers import Imitate, crash_at, run, token_store, write_corpus

FRAME = Frame((101,), (102,))


class Store:
    def __init__(self, *lengths: int) -> None:
        self.rows = [np.arange(1, n + 1) for n in lengths]

    def ids(self, source: int, row: int) -> np.ndarray:
        return self.rows[row]


def test_repetition_adds_up_to_its_share_in_place_and_anew() -> None:
    """ESimCSE's code: of L tokens, special ones included, a number below min(10, ⌊share · L⌋) is repeated once."""
    torch.manual_seed(0)
    content = np.arange(18)
    counts = set()
    for _ in range(300):
        found = _with_repetitions(content, 0.32, 2)
        values, times = np.unique(found, return_counts=True)
        np.testing.assert_array_equal(values, content)
        assert list(found) == sorted(found)
        assert set(times) <= {1, 2}
        counts.add(len(found) - 18)
    assert counts == {0, 1, 2, 3, 4, 5}  # ⌊0.32 · 20⌋ = 6


@pytest.mark.parametrize(("length", "most"), [(1, 0), (2, 0), (5, 1), (30, 9), (200, 9)])
def test_short_texts_stay_and_long_ones_gain_nine_tokens_at_most(length: int, most: int) -> None:
    torch.manual_seed(1)
    found = {len(_with_repetitions(np.arange(length), 0.32, 2)) - length for _ in range(200)}
    assert max(found) == most
    view = ViewTokens(0, FRAME, length, None, 0.32)
    assert view.longest == length + 2 + most


def test_rows_are_padded_to_the_longest_and_padding_is_masked() -> None:
    batch = Collator(Store(3, 5), {"anchor": ViewTokens(0, FRAME, 4, None)}, 0)([0, 1])
    ((ids, mask, _),) = batch.passes[0].groups
    assert ids.tolist() == [[101, 1, 2, 3, 102, 0], [101, 1, 2, 3, 4, 102]]
    assert mask.tolist() == [[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]]


def test_each_process_knows_the_views_of_all_rows(tmp_path) -> None:
    columns = ("text", "positive")
    write_corpus(tmp_path, 12, columns)
    encoder = load_encoder(tiny_bert(tmp_path / "bert"), pooling="cls")
    views = {name: ViewTokens(i, FRAME, 18, None) for i, name in enumerate(columns)}
    collator = Collator(token_store(tmp_path, columns, encoder), views, 0)
    rows = np.array([7, 5, 0, 11])
    present = collator.present(rows)
    assert present.tolist() == [[True] * 4, [True, False, False, True]]
    assert torch.equal(collator(rows).present, present)


def test_a_compiler_sees_a_few_lengths_only() -> None:
    views = {"anchor": ViewTokens(0, FRAME, 30, None)}
    exact = Collator(Store(*range(1, 31)), views, 0)
    few = Collator(Store(*range(1, 31)), views, 0, widths=few_widths(32))
    widths = set()
    for row in range(30):
        ((expected, _, _),) = exact([row]).passes[0].groups
        ((ids, mask, _),) = few([row]).passes[0].groups
        length = expected.shape[1]
        assert torch.equal(ids[:, :length], expected)
        assert not ids[:, length:].any()
        assert int(mask.sum()) == length
        widths.add(ids.shape[1])
    assert widths == {8, 16, 24, 32}


@pytest.mark.parametrize("longest", [1, 7, 32, 33, 100, 512, 8192])
def test_there_are_at_most_four_lengths_and_the_longest_is_one(longest: int) -> None:
    widths = few_widths(longest)
    assert len(set(widths)) == len(widths) <= 4
    assert widths[-1] == longest
    assert all(width % 8 == 0 for width in widths[:-1])


def test_rows_in_groups_of_similar_length_keep_their_slots() -> None:
    batch = Collator(
        Store(3, 30, 4, 29, 30), {"anchor": ViewTokens(0, FRAME, 40, None)}, 0, budget=70
    )(range(5))
    (part,) = batch.passes
    assert [tuple(ids.shape) for ids, _, _ in part.groups] == [(2, 32), (1, 31), (2, 6)]
    assert part.slots.tolist() == [1, 4, 3, 2, 0]
    assert (
        part.lengths.tolist()
        == [32, 32, 31, 6, 5]
        == [int(m) for _, mask, _ in part.groups for m in mask.sum(1)]
    )


def test_every_epoch_and_every_seed_has_an_order_of_its_own():
    orders = {
        (seed, epoch): tuple(
            np.concatenate([sampler.batch(4 * epoch + step) for step in range(4)]).tolist()
        )
        for seed in (0, 1)
        for sampler in [BatchSampler(32, 8, seed)]
        for epoch in (0, 1)
    }
    assert len(set(orders.values())) == 4
    assert all(sorted(order) == list(range(32)) for order in orders.values())


def recipe(**teacher: object) -> Recipe:
    simcse = load_recipe(
        "simcse",
        overrides=[
            'views.other={text="other", optional=true}',
            "training.batch_size=8",
            "training.precision=fp32",
            "training.log_every=2",
            "training.checkpoint_every=3",
            "optimizer.lr=1e-3",
        ],
    )
    return replace(
        simcse, losses=(*simcse.losses, Imitate()), teachers={"wise": Teacher(**teacher)}
    )


@pytest.fixture(scope="module")
def wise(tmp_path_factory) -> Path:
    """Of another family and width than the backbone, in sentence-transformers' format."""
    folder = tmp_path_factory.mktemp("wise")
    transformer = Transformer(str(tiny_roberta(folder / "plain", width=48, seed=3)))
    SentenceTransformer(modules=[transformer, Pooling(48, "mean")], device="cpu").save(
        str(folder / "st")
    )
    return folder / "st"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"), 64, ("text", "other"))


SOURCES = [TokenSource("text"), TokenSource("other", optional=True)]


def vectors(made: Recipe, backbone: Path, corpus: Path) -> dict[str, np.ndarray]:
    loaded = load_teachers(made, Backbone(backbone))
    return teacher_vectors(made, loaded, UsableRows(Corpus(corpus), SOURCES), progress=False)[
        "wise"
    ]


def test_the_vectors_are_the_teachers_own(backbone, wise, corpus, monkeypatch) -> None:
    monkeypatch.setattr(embedder_module, "_CHUNK", 4)
    monkeypatch.setattr(embedder_module, "_BLOCK", 8)
    found = vectors(recipe(model=str(wise)), backbone, corpus)
    model = SentenceTransformer(str(wise), device="cpu")
    assert set(found) == {"anchor", "other"}
    for view, column in (("anchor", "text"), ("other", "other")):
        texts = [row[0] for row in Corpus(corpus).rows([column])]
        assert (found[view].shape, found[view].dtype) == ((64, 48), np.float32)
        for text, vector in zip(texts, found[view], strict=True):
            expected = np.zeros(48) if text is None else model.encode(text)
            np.testing.assert_allclose(vector, expected, atol=2e-6)


def test_length_and_pooling(backbone, wise, corpus) -> None:
    text = next(iter(Corpus(corpus).rows(["text"])))[0]
    model = SentenceTransformer(str(wise), device="cpu")
    model.max_seq_length = 4
    found = vectors(recipe(model=str(wise), max_length=4), backbone, corpus)
    np.testing.assert_allclose(found["anchor"][0], model.encode(text), atol=2e-6)
    one, two = (
        vectors(recipe(model=str(backbone), pooling=p), backbone, corpus)["anchor"]
        for p in ("cls", "mean")
    )
    assert np.abs(one - two).max() > 0.01
    own = vectors(recipe(model="backbone"), backbone, corpus)[
        "anchor"
    ]  # the recipe's pooling is cls
    np.testing.assert_array_equal(own, one)


def test_what_is_cached_is_not_computed_again(
    backbone, wise, corpus, tmp_path, monkeypatch
) -> None:
    made = recipe(model=str(wise))
    first = vectors(made, backbone, corpus)
    monkeypatch.setattr(Embedder, "encode", None)
    (tmp_path / "same.jsonl").write_bytes(
        corpus.read_bytes() + b"\n"
    )  # another file with the same sentences
    again = vectors(made, backbone, tmp_path / "same.jsonl")
    assert all(np.array_equal(first[v], again[v]) for v in first)
    with pytest.raises(TypeError):
        vectors(recipe(model=str(wise), max_length=5), backbone, corpus)
    changed = write_corpus(tmp_path, 66, ("text", "other"))
    with pytest.raises(TypeError):
        vectors(made, backbone, changed)


def test_another_teacher_is_another_run(tmp_path, backbone, wise, corpus, monkeypatch) -> None:
    made = recipe(model=str(tmp_path / "teacher"))
    (tmp_path / "teacher").symlink_to(wise)
    with monkeypatch.context() as patch:
        crash_at(5, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, backbone, tmp_path / "out", recipe=made)
    (tmp_path / "teacher").unlink()
    tiny_bert(tmp_path / "plain", seed=7)
    transformer = Transformer(str(tmp_path / "plain"))
    SentenceTransformer(modules=[transformer, Pooling(32, "mean")], device="cpu").save(
        str(tmp_path / "teacher")
    )
    with pytest.raises(OpencseError, match="another teacher wise"):
        run(corpus, backbone, tmp_path / "out", recipe=made, resume=True)


@pytest.mark.parametrize(
    ("teacher", "match"),
    [
        ({"model": "./nowhere"}, r"teachers\.wise: \./nowhere: no such model folder"),
        ({"model": "PLAIN"}, r"teachers\.wise: .*defines no pooling.*teachers\.wise\.pooling"),
        (
            {"model": "backbone", "max_length": 500},
            r"teachers\.wise: max_length is 500.*at most 64",
        ),
    ],
)
def test_a_teacher_that_cannot_be_used_is_named_before_anything_is_written(
    tmp_path, backbone, corpus, teacher, match
) -> None:
    teacher["model"] = str(backbone) if teacher["model"] == "PLAIN" else teacher["model"]
    with pytest.raises(OpencseError, match=match):
        run(corpus, backbone, tmp_path / "out", recipe=recipe(**teacher))
    assert not (tmp_path / "out").exists()


def test_a_loss_names_its_teacher() -> None:
    made = recipe(model="backbone")
    with pytest.raises(
        ValueError, match=r"needs the teacher 'clever'.*teachers: wise.*\[teachers\.clever\]"
    ):
        replace(made, losses=(Imitate(teacher="clever"),))
    assert replace(made, losses=(made.losses[0],)).used_teachers == {}  # then none is loaded
    for settings in ({"model": ""}, {"model": "a", "max_length": 1}):
        with pytest.raises(ValueError):
            Teacher(**settings)


def test_changes_at_random_are_functions_of_row_and_step() -> None:
    """Two processes change the tokens of their rows as one does with all of them."""
    for changes in ({"repetition": 0.5}, {"edit": ("shuffle", 0.2)}, {"edit": ("delete", 0.3)}):
        views = {"anchor": ViewTokens(0, FRAME, 12, None, **changes)}
        collator = Collator(Store(*[10] * 8), views, 0, seed=3)
        torch.manual_seed(0)
        before = torch.get_rng_state()
        whole, _, _ = collator(range(8), step=5).passes[0].groups[0]
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(1)
        halves = [collator(range(i, i + 4), step=5).passes[0].groups[0][0] for i in (0, 4)]
        for row, ids in enumerate([*halves[0], *halves[1]]):
            assert whole[row][whole[row] != 0].tolist() == ids[ids != 0].tolist()
        other, _, _ = collator(range(8), step=6).passes[0].groups[0]
        assert whole.tolist() != other.tolist()


def test_repeated_positives_are_reported(tmp_path) -> None:
    class Texts:
        rows = 64

        def ids(self, source: int, row: int):
            return np.array([row if source == 0 else row % 4], dtype=np.int64)

    views = {"anchor": ViewTokens(0, FRAME, 4, None), "positive": ViewTokens(1, FRAME, 4, None)}
    training = Training(batch_size=16)
    (line,) = repeated_lines(Texts(), views, training)
    assert "in 4 of the first 4 batches, several rows have the same positive" in line
    assert list(repeated_lines(Texts(), {"anchor": views["anchor"]}, training)) == []
    for number in range(2, 7):
        views[f"view_{number}"] = ViewTokens(number, FRAME, 4, None)
    (line,) = repeated_lines(Texts(), views, training)
    assert line.endswith("(also: view_2, view_3, view_4 and 2 more)")


@pytest.mark.parametrize("rows", [97, 96, 64])
def test_blocks_are_shuffled_in_groups(monkeypatch, rows) -> None:
    monkeypatch.setattr(batches, "_BLOCK", 8)
    monkeypatch.setattr(batches, "_BLOCKS_TOGETHER", 3)
    sampler = BatchSampler(rows, 10, seed=4)
    drawn = []
    for step in range(2 * sampler.batches_per_epoch):
        drawn.append(sampler.batch(step))
    for epoch in range(2):
        first = epoch * sampler.batches_per_epoch
        numbers = np.concatenate(drawn[first : first + sampler.batches_per_epoch])
        assert len(set(numbers.tolist())) == len(numbers) == sampler.rows_per_epoch
        # The first 24 rows are those of three blocks, in an order of their own.
        assert len(set((numbers[:16] // 8).tolist())) <= 3
        assert (np.diff(numbers[:16]) != 1).any()
    assert drawn[0].tolist() != drawn[sampler.batches_per_epoch].tolist()
    # A resumed run draws the same without what came before.
    for step in (0, 3, sampler.batches_per_epoch + 2):
        assert BatchSampler(rows, 10, seed=4).batch(step).tolist() == drawn[step].tolist()
