"""What `reproduce` trains is what was published: every recipe and family, compared with the table of its settings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from opencse.commands.recipes import published_names, published_settings, values_of
from opencse.commands.reproduce import FULL, reproduce
from opencse.commands.train import train
from opencse.evaluation.probes import ProbeScores, load_probe_data, read_sentences
from opencse.foundation.errors import OpencseError
from opencse.foundation.toml_tables import parse_override
from opencse.papers.entries import Entry, System, entry_names, load_entry
from opencse.papers.runs import MeasuredModel, Reproduction, Start, training_cost
from opencse.papers.scores import EntryColumn, Missing
from opencse.recipes import load_recipe
from opencse.text.corpus import Corpus
from tests.tiny import WORDS, tiny_bert, tiny_roberta
from tests.training.helpers import write_corpus

SHORT = ("training.max_steps=3", "training.batch_size=8", "selection.every=1")
OVERRIDDEN = {"training.batch_size", "training.gradient_accumulation", "selection.every"}


@pytest.fixture(scope="module")
def backbones(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("backbones")
    bert, roberta = tiny_bert(folder / "bert", layers=1), tiny_roberta(folder / "roberta", layers=1)
    return {family: roberta if "roberta" in family else bert for family in FULL}


def no_training(training):
    raise OpencseError("nothing is trained here")


def shared(out: Path, corpus: Path, train=no_training) -> Reproduction:
    """A reproduction at full scale, in steps that a test can wait for."""
    entry = Entry(name="x/y", title="T", families=tuple(FULL))
    return Reproduction(
        entry=entry,
        out=out,
        scale="full",
        overrides=SHORT,
        variant="faithful",
        seeds=[None],
        corpus=Corpus(corpus),
        triplets=None,
        paraphrases=None,
        data=None,
        train=train,
        notify=lambda _: None,
        probe_data=replace(load_probe_data(), triplets=(), sentences=read_sentences(limit=50)),
    )


ENTRIES = [load_entry(name) for name in entry_names()]
COLUMNS = (
    "text",
    "paraphrase",
    "negation",
    "substitution",
    "negative",
    "positive_1",
    "positive_2",
    "negative_1",
)
COLUMNS += (
    "negative_2",
    "masked_20",
    "masked_40",
    "entailment",
    "contradiction",
    "edited",
    "next_sentence",
)
STANDS_IN = ("teachers.", "build.", "losses.replaced_token_detection.generator.")


def rows_of(name: str) -> list[tuple[System, str, tuple[str, ...]]]:
    """The rows of all tables that train a recipe, and the recipe alone: row, family, and what is watched in training.

    Rows that train alike are one.
    """
    found = [
        (System(label="", recipe=name), setting.family, ()) for setting in published_settings(name)
    ]
    for entry in ENTRIES:
        for family in entry.families:
            found += [
                (each, family, entry.watch)
                for each in entry.systems_of(family)
                if each.recipe == name
            ]
    alike = [
        (replace(each, label="", model={}, printed={}, deviations={}), *rest)
        for each, *rest in found
    ]
    return list({repr(row): row for row in alike}.values())


def changed_by(system: System) -> tuple[str, ...]:
    """The keys that a row sets, a dot behind each; of a loss that it leaves out, that of the loss."""
    return tuple(
        f"{key.removesuffix('.weight') if value == 0 else key}."
        for key, value in map(parse_override, system.set)
    )


def test_every_row_that_trains_is_of_a_published_system() -> None:
    recipes = {system.recipe for entry in ENTRIES for system in entry.systems if system.recipe}
    assert recipes <= {*published_names()}
    assert sum(len(rows_of(name)) for name in published_names()) == 295


@pytest.mark.parametrize("trains", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", published_names())
def test_what_reproduce_trains_is_what_was_published(
    tmp_path, backbones, name: str, trains: bool
) -> None:
    """Each row: what is trained, if need be for three steps, has every published setting that the row leaves alone."""
    corpus, known, ran_with = write_corpus(tmp_path, 26, COLUMNS), published_settings(name), []
    overridden = OVERRIDDEN
    if trains:
        overridden = OVERRIDDEN | {"encoder.max_length"}  # the tiny models have 64 positions

    def only_train(asked):
        out = asked.folder
        if trains:
            settings = {"backbone": asked.backbone, "dev": "none", "progress": False}
            train(asked.recipe, asked.corpus.path, out=out, **settings)
        ran_with.append(load_recipe(out / "recipe.toml") if trains else asked.recipe)
        return ProbeScores(sts=())

    for number, (system, family, watch) in enumerate(rows_of(name)):
        run = shared(tmp_path / str(number), corpus, only_train)
        if trains and load_recipe(system.recipe, family=family).encoder.max_length > 64:
            run = replace(run, overrides=(*SHORT, "encoder.max_length=64"))
        if trains and name == "cot-bert":  # its templates alone have up to 48 tokens
            run = replace(run, overrides=(*SHORT, "encoder.max_length=16"))
        run = (
            replace(run, entry=replace(run.entry, kind="curves", watch=watch))
            if watch and trains
            else run
        )
        found = run.runs_of(system, Start(str(backbones[family]), family, family))
        assert not isinstance(found, Missing), (system, family, found)
        ran, changed = values_of(ran_with.pop()), (*changed_by(system), *STANDS_IN)
        differing = {
            entry.key: (ran[entry.key], entry.expected)
            for entry in known
            if entry.family == family
            and entry.key not in overridden
            and not f"{entry.key}.".startswith(changed)
            if ran[entry.key] != ("fp32" if trains and entry.expected == "fp16" else entry.expected)
        }
        assert not differing, (system, family, differing)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "full"}, "sample sentences"),
        ({"family": "roberta-bass"}, "unknown family 'roberta-bass'.*roberta-base"),
        ({"backbone": ["bert-huge=x"]}, "unknown family 'bert-huge'"),
        ({"backbone": ["bert-base"]}, "which model"),
    ],
)
def test_what_cannot_be_reproduced_is_one_line(tmp_path, options, message: str) -> None:
    with pytest.raises(OpencseError, match=message):
        reproduce("byop/table-2", out=tmp_path, **options)


def test_a_family_brings_its_rows_and_settings_and_a_row_its_own(tmp_path, backbones) -> None:
    start = Start(str(backbones["bert-large"]), "bert-large", "bert-large")
    run = shared(tmp_path, write_corpus(tmp_path))
    systems = [
        System(label="A", recipe="byop-c"),
        System(label="B", recipe="byop-c", set=("training.batch_size=4",)),
        System(label="C", recipe="diffcse", set=("optimizer.lr=1e-3",)),
    ]
    recipes = [run.recipe_of(system, start, None) for system in systems]
    assert [recipe.variant for recipe in recipes] == ["faithful"] * 3
    assert {recipe.family for recipe in recipes} == {"bert-large"}
    assert [recipe.training.batch_size for recipe in recipes] == [8, 8, 8], (
        "what the user sets wins over the row"
    )
    assert values_of(recipes[2])["losses.replaced_token_detection.generator"] == "backbone"
    assert recipes[2].optimizer.lr == 1e-3
    assert run.recipe_of(systems[0], start, 3).training.seed == 3


def test_a_row_whose_column_a_language_model_wrote_needs_it_in_the_corpus(
    tmp_path, backbones
) -> None:
    start, system = (
        Start(str(backbones["bert-base"]), "bert-base"),
        System(label="A", recipe="san-simcse", column="x"),
    )
    found = shared(tmp_path, write_corpus(tmp_path)).runs_of(system, start)
    assert isinstance(found, Missing)
    assert "a column 'x'" in found.reason
    assert shared(tmp_path, write_corpus(tmp_path, 26, ("text", "x"))).recipe_of(
        system, start, None
    )


def test_a_released_model_takes_the_place_of_a_training_and_is_named_where_it_is_missing(
    tmp_path, backbones
) -> None:
    start, absent = (
        Start("no-such-backbone", "bert-base", "bert-base"),
        str(tmp_path / "no-such-model"),
    )
    models = (str(backbones["bert-base"]), absent)
    run = shared(tmp_path, write_corpus(tmp_path))
    released, lacking = (
        System(label="A", recipe="simcse", model={"bert-base": model}) for model in models
    )
    (found,) = run.runs_of(released, start)
    assert found.usual.cosines["negation"] <= 1
    missing = run.runs_of(lacking, start)
    assert isinstance(missing, Missing)
    assert absent in missing.reason
    untrained = run.runs_of(System(label="B", recipe="simcse"), start)
    assert untrained == Missing("the backbone no-such-backbone")


def test_the_vectors_of_an_untouched_backbone_are_mapped_as_the_corpus_says(tmp_path) -> None:
    start, corpus = Start("mini-mlm", "bert-base", "bert-base"), tmp_path / "pairs.txt"
    corpus.write_text("".join(f"{one} {other}\n" for one in WORDS[:20] for other in WORDS))
    run, scores = shared(tmp_path, corpus), []
    for asked in ({}, {"whitened": True}, {"flow": True}):
        measured = run.runs_of(System(label="A", pooling="mean", **asked), start)
        assert not isinstance(measured, Missing), measured
        scores.append(measured[0].usual.cosines["random"])
    assert len(set(scores)) == 3


def test_averaged_word_vectors_are_those_of_the_file(tmp_path) -> None:
    row = System(label="GloVe", word_vectors=True)
    start, run = Start("mini-mlm", "bert-base"), shared(tmp_path, write_corpus(tmp_path))
    assert run.runs_of(row, start) == Missing("a file of --word-vectors, such as GloVe's")
    file = tmp_path / "glove.txt"
    known = sorted(set(re.findall("[a-z]+", repr(run.probe_data.sentences).lower())))
    scores = []
    for numbers in ("1 0 2", "0 1 30"):
        lines = [f"{word} {numbers} {i % 7}" for i, word in enumerate(known)]
        file.write_text("\n".join(lines))
        measured = replace(run, word_vectors=file).runs_of(row, start)
        assert not isinstance(measured, Missing), measured
        scores.append(measured[0].usual.cosines["random"])
    assert len(set(scores)) == 2


def test_the_cost_is_that_of_the_run_and_of_one_epoch(tmp_path, backbones) -> None:
    folder = tmp_path / "run"
    short = ("training.max_steps=1", *SHORT[1:2])
    train(
        "simcse",
        write_corpus(tmp_path, 16),
        backbone="mini-mlm",
        out=folder,
        dev="none",
        overrides=short,
    )
    recipe = load_recipe("simcse", overrides=SHORT)
    cost = training_cost(MeasuredModel(folder=folder, recipe=recipe))
    epoch = cost.value(EntryColumn.parse("minutes an epoch"))
    assert epoch == pytest.approx(cost.minutes * 16 / 8)
    with pytest.raises(OpencseError, match="not trained"):
        training_cost(MeasuredModel(folder=folder, given="bert-base-uncased"))


def test_columns_that_a_recipe_builds_do_not_keep_it_from_the_triplets(tmp_path) -> None:
    table = tmp_path / "triplets.tsv"
    table.write_text("text\tentailment\tcontradiction\na\tb\tc\n")
    run = replace(shared(tmp_path, write_corpus(tmp_path)), triplets=Corpus(table))
    nl = next(system for system in load_entry("san/table-5").systems if system.label == "NL")
    assert run.corpus_of(load_recipe(nl.recipe, overrides=nl.set)) == run.triplets
    assert run.corpus_of(load_recipe("san-simcse")) == run.corpus
