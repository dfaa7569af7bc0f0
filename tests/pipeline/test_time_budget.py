"""`--minutes` and the first line of a run; the speeds of the machine are given, not measured."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import opencse
from opencse.errors import Interrupted, OpencseError
from opencse.pipeline import time_budget, time_estimate
from opencse.pipeline.plan import plan
from opencse.pipeline.time_estimate import (
    MachineSpeed,
    RunSizes,
    TextAmount,
    fitting_share,
    seconds_by_part,
    total_steps,
)
from opencse.recipes import load_recipe, scaled
from tests.tiny import WORDS, tiny_bert

SPEED = MachineSpeed(train=0.01, encode=0.002)
SIZES = RunSizes(
    sentences=20_000,
    builds=True,
    scored=TextAmount(2_800, 2_800),
    guarded=TextAmount(),
    probed=TextAmount(5_000, 5_000),
)
TEXTS = [f"the {a} {b}" for a in WORDS[:10] for b in WORDS[10:30]]


def seconds(recipe, sizes=SIZES) -> float:
    return sum(seconds_by_part(recipe, sizes, SPEED).values())


def test_training_takes_the_texts_of_all_steps() -> None:
    simcse = load_recipe("simcse", overrides=["training.batch_size=50", "training.epochs=2"])
    assert total_steps(simcse, SIZES) == 800
    parts = seconds_by_part(simcse, SIZES, SPEED)
    assert parts["training"] == pytest.approx(800 * 50 * 2 * 0.01), "two views of each sentence"
    assert parts["teachers"] == 0
    assert parts["scores"] == pytest.approx(0.002 * 2_800 * (1 + 7)), "every 125 steps, and before the first"


def test_teachers_count() -> None:
    parts = seconds_by_part(load_recipe("debias"), SIZES, SPEED)
    assert parts["teachers"] > 14_000 * 2 * 0.002
    assert parts["views"] > 0
    few = replace(SIZES, sentences=1_000)
    columns = len(load_recipe("debias").columns)
    taught = seconds_by_part(load_recipe("debias"), few, SPEED)["teachers"]
    assert taught == pytest.approx(1_000 * columns * 0.002), "each text once, however many rows repeat it"


def test_a_drawn_row_counts_by_its_views_and_their_words() -> None:
    """Measured on rows drawn from Wikipedia without paraphrases: 4.8 texts, with 0.71 of a usual sentence's words."""
    recipe = load_recipe("debias")
    rows = total_steps(recipe, SIZES) * recipe.training.batch_size
    assert seconds_by_part(recipe, SIZES, SPEED)["training"] / (rows * SPEED.train) == pytest.approx(3.4, abs=0.2)


def test_the_fastest_call_is_the_speed_of_the_machine(monkeypatch) -> None:
    now, calls = [0.0], iter([9.0, 5.0, 1.5, 7.0, 7.0])

    def work() -> None:
        now[0] += next(calls)

    monkeypatch.setattr(time_estimate.time, "perf_counter", lambda: now[0])
    assert time_estimate._seconds(work) == 1.5, "other programs only slow a call; the first also loads"


def test_guards_are_scored_before_and_at_every_trial_of_the_way_back() -> None:
    recipe, guarded = load_recipe("debias"), replace(SIZES, scored=TextAmount(), guarded=TextAmount(500, 3_000))
    parts = seconds_by_part(recipe, guarded, SPEED)
    assert parts["scores"] == pytest.approx(0.002 * 3_000 * (1 + 6))


def test_long_texts_of_a_guard_count_by_their_words(tmp_path) -> None:
    (tmp_path / "corpus.txt").write_text("\n".join(["one two three four"] * 5))
    (tmp_path / "guard").mkdir()
    rows = [f"{topic}\t{' '.join(WORDS[i : i + 40])}" for i, topic in enumerate("aaaaaabbbbbb")]
    (tmp_path / "guard" / "topics.tsv").write_text("\n".join(["topic\ttext", *rows]))
    backbone = tiny_bert(tmp_path / "bert")
    sizes = [
        plan(
            "debias", tmp_path / "corpus.txt", backbone=backbone, guard=guard, overrides=["encoder.pooling=cls"]
        ).sizes.guarded.sentences
        for guard in (None, tmp_path / "guard")
    ]
    assert sizes[1] - sizes[0] == 12 * 40 / 4


def test_each_text_of_scored_pairs_counts_once_and_by_its_words(tmp_path) -> None:
    (tmp_path / "corpus.txt").write_text("\n".join(["one two three four"] * 5))
    (tmp_path / "pairs.tsv").write_text("sentence1\tsentence2\tscore\n" + "two words\tthree four\t1\n" * 3)
    backbone = tiny_bert(tmp_path / "bert")
    without, probed = [
        plan(
            "simcse", tmp_path / "corpus.txt", backbone=backbone, pairs=pairs, overrides=["encoder.pooling=cls"]
        ).sizes.probed
        for pairs in (None, tmp_path / "pairs.tsv")
    ]
    assert (probed.texts - without.texts, probed.sentences - without.sentences) == (2, 1)


def test_the_largest_share_that_fits_is_taken() -> None:
    recipe = load_recipe("debias")
    steps, whole = total_steps(recipe, SIZES), seconds(recipe)
    assert fitting_share(recipe, SIZES, SPEED, whole + 1) == 1
    share = fitting_share(recipe, SIZES, SPEED, whole / 2)
    assert 0.3 < share < 0.5
    assert seconds(scaled(recipe, share, steps)) <= whole / 2 < seconds(scaled(recipe, share + 0.05, steps))


def test_too_few_minutes_are_refused_with_what_is_needed() -> None:
    with pytest.raises(OpencseError, match=r"30 s are too few: .* Give at least \d+ minutes"):
        fitting_share(load_recipe("debias"), SIZES, SPEED, 30)


def test_a_part_of_a_recipe_keeps_its_proportions() -> None:
    whole = load_recipe("debias")
    half = scaled(whole, 0.5, 1_292)
    assert half.training.max_steps == 646
    assert half.corpus.rows == whole.corpus.rows / 2
    assert [part.rows for part in half.corpus.parts.values()] == [part.rows / 2 for part in whole.corpus.parts.values()]
    assert (half.views, half.terms) == (whole.views, whole.terms)
    assert scaled(whole, 1.0, 1_292) is whole


@pytest.fixture
def options(tmp_path, monkeypatch):
    """Options of a small run on a machine on which the whole recipe takes 100 minutes."""
    monkeypatch.setattr(time_budget, "measure_speed", lambda inputs, texts: MachineSpeed(train=0.15, encode=0.0))
    settings = ["training.precision=fp32", "training.batch_size=4", "training.epochs=50", "selection.every=1000"]
    backbone = str(tiny_bert(tmp_path / "bert"))
    return {"backbone": backbone, "out": tmp_path / "out", "overrides": settings, "progress": False}


def test_a_run_within_minutes_says_so_and_is_resumed_with_the_same_share(options) -> None:
    notes: list[str] = []
    result = opencse.run("simcse", TEXTS, minutes=3, notify=notes.append, **options)
    assert "takes about 3 min on this machine (200 sentences, 125 training steps; 5 % of simcse" in notes[0]
    assert result.run.outcome.steps == 125
    record = json.loads((options["out"] / "run.json").read_text())
    assert record["budget"] == {"minutes": 3, "share": 0.05, "estimated_seconds": 175, "steps": 125}
    notes.clear()
    again = opencse.run("simcse", TEXTS, resume=True, notify=notes.append, **options)
    assert again.run.outcome == result.run.outcome
    assert notes[0] == "goes on: 200 sentences, 125 training steps"


def test_nothing_begins_without_consent(options) -> None:
    asked: list[str] = []

    def refuse(line: str) -> bool:
        asked.append(line)
        return False

    with pytest.raises(Interrupted, match="before anything was built"):
        opencse.run("simcse", TEXTS, confirm=refuse, **options)
    assert asked == ["takes about 50 min on this machine (200 sentences, 2,500 training steps)"]
    assert not (options["out"] / "run.json").exists()


BUDGETS = ("3", '{"share": NaN}', '{"share": -1}', '{"share": 0.5, "minutes": "x"}', '{"share": 0.5, "minutes": 1e999}')


@pytest.mark.parametrize("record", ["[]", "{", "[" * 100_000, *(f'{{"budget": {each}}}' for each in BUDGETS)])
def test_a_damaged_budget_is_none(tmp_path, record) -> None:
    (tmp_path / "run.json").write_text(record)
    assert time_budget.begun_budget(tmp_path) is None
