from __future__ import annotations

import numpy as np
import pytest

from opencse.commands.reproduced_runs import WATCHED
from opencse.commands.reproduction import Cell, Entry, System, entry_names, load_entry, scores_table
from opencse.commands.reproduction.pair_cosines import pair_cosines
from opencse.commands.reproduction.pair_groups import PairGroup, SentencePairs
from opencse.commands.reproduction.projection import project
from opencse.evaluation import STS_TASKS, TextEmbeddings
from opencse.evaluation.probes import load_probe_data
from opencse.evaluation.suites import SUITES
from opencse.foundation.errors import OpencseError
from opencse.recipes import FAMILIES, load_recipe

# Tasks of SAN that opencse does not name itself, and that a user may have as folders of these names.
FOLDERS = (
    *("AmazonReviews", "MassiveIntent", "MassiveScenario", "MTOPDomain", "MTOPIntent", "ToxicConversations"),
    *("AskUbuntuDupQuestions", "SciDocsRR", "StackOverflowDupQuestions", "QuoraRetrieval"),
)

PAIR = SentencePairs(first=["a"], second=["a"])


def columns_of(kind: str) -> set[str]:
    if kind == "scores":
        sentences = load_probe_data().sentences
        assert sentences is not None
        return {*STS_TASKS, "Avg.", "Cont.", "Oppn.", *(f"cosine: {each}" for each in sentences.kinds)}
    if kind == "tasks":
        return {"Avg.", *FOLDERS, *(task for tasks in SUITES.values() for task in tasks)}
    if kind == "projection":
        return set(project(np.eye(3)).scores())
    return set(WATCHED) if kind == "curves" else {"Cont.", "Oppn."}


@pytest.mark.parametrize("name", entry_names())
def test_every_entry_can_be_run(name: str) -> None:
    entry = load_entry(name)
    assert set(entry.families) <= set(FAMILIES)
    columns = [column.partition(":")[0] if entry.kind == "tasks" else column for column in entry.columns]
    if entry.kind in ("pairs", "training_pairs"):
        names = [group.name for group in entry.groups] or ["positive", "negative"]
        pairs = pair_cosines(dict.fromkeys(names, PAIR), TextEmbeddings(["a"], np.ones((1, 2))))
        assert set(columns) <= set(pairs.scores())
    elif entry.kind == "neighbours":
        assert columns == [f"query {i}: rank" for i, query in enumerate(entry.queries, 1) if query.answer]
    elif entry.kind != "splits" or entry.systems:
        assert set(columns) <= columns_of(entry.kind)
    labels = [system.label for system in entry.systems]
    assert len(set(labels)) == len(labels)
    assert entry.systems or entry.kind == "splits"
    for system in entry.systems:
        assert set(system.printed) <= set(FAMILIES)
        if system.recipe:
            for family in (*entry.families, "mini-mlm"):
                load_recipe(system.recipe, family=family, overrides=list(system.set))


def test_all_five_papers_have_tables_and_an_average_is_the_mean_of_its_row() -> None:
    assert {name.partition("/")[0] for name in entry_names()} == {"byop", "debcse", "diffcse", "osscse", "san"}
    rows = [
        (name, system.label, family, scores)
        for name in entry_names()
        for system in load_entry(name).systems
        for family, scores in system.printed.items()
        if len(scores) == 8
    ]
    assert len(rows) > 100
    # The papers round, and print a few averages that are not those of their rows.
    off = [place for *place, scores in rows if abs(sum(scores[:7]) / 7 - scores[7]) > 0.02]
    assert [tuple(place) for place in off] == ODD


ODD = [("osscse/table-4", "ESimCSE", "roberta-large"), ("san/table-3", "SNCSE", "roberta-large")]


def test_measured_stands_beside_printed_and_a_gap_says_why() -> None:
    entry = Entry(
        name="x/y",
        title="T",
        columns=("STS12", "STS-B", "Avg."),
        systems=(
            System(label="A", recipe="simcse", printed={"bert-base": (70.0, 80.0, 75.0)}),
            System(label="B", recipe="osscse", printed={"bert-base": (76.25,)}),
        ),
    )
    runs = [{"STS12": 50.0, "STS-B": 60.0, "Oppn.": 1.0}, {"STS12": 52.0, "STS-B": 62.0, "Oppn.": 1.0}]
    table = scores_table(entry, {"bert-base: mini-mlm": {"A": runs, "B": "translation models"}})
    assert [str(cell.shown()) for cell in table.rows["A"]] == [
        "51.00 ± 1.41 (70.00)",
        "61.00 ± 1.41 (80.00)",
        "56.00 ± 1.41 (75.00)",
    ]
    assert [str(cell.shown()) for cell in table.rows["B"]] == ["", "", "not had: translation models (76.25)"]
    assert "| A | 51.00 ± 1.41 (70.00) |" in table.markdown()
    assert str(Cell(values=(1.0,)).shown()) == "1.00"


@pytest.mark.parametrize(
    "settings",
    [
        {"columns": ("Avg.",), "systems": (System(label="A", recipe="simcse", printed={"bert-base": (1.0, 2.0)}),)},
        {"seeds": 0},
        {"kind": "pairs"},
        {"groups": (PairGroup(name="x", transformation="negation"),)},
        {"kind": "neighbours"},
    ],
)
def test_impossible_entries_are_refused(settings) -> None:
    with pytest.raises(ValueError, match=r"scores|seeds|groups"):
        Entry(name="x", title="", **settings)


def test_several_printed_scores_are_those_of_the_first_columns_and_one_that_of_the_last() -> None:
    systems = tuple(
        System(label=str(len(printed)), recipe="simcse", printed={"bert-base": printed})
        for printed in ((3.0,), (1.0, 2.0))
    )
    entry = Entry(name="x/y", title="T", columns=("STS12", "STS13", "STS14"), systems=systems)
    rows = scores_table(entry, {"bert-base": {"1": "x", "2": "x"}}).rows
    assert [cell.printed for cell in rows["1"]] == [None, None, 3.0]
    assert [cell.printed for cell in rows["2"]] == [1.0, 2.0, None]


def test_a_table_that_is_not_known_is_named() -> None:
    with pytest.raises(OpencseError, match="unknown table 'osscse/table-9'"):
        load_entry("osscse/table-9")


def test_an_average_of_tasks_needs_all_of_them() -> None:
    entry = Entry(
        name="x/y",
        title="T",
        kind="tasks",
        columns=("CR", "MRPC", "Avg."),
        systems=(System(label="A", recipe="simcse"),),
    )
    (whole,) = scores_table(entry, {"f": {"A": [{"CR": 80.0, "MRPC": 70.0}]}}).rows.values()
    assert [str(cell.shown()) for cell in whole] == ["80.00", "70.00", "75.00"]
    (part,) = scores_table(entry, {"f": {"A": [{"CR": 80.0, "MRPC": "no data"}]}}).rows.values()
    assert [str(cell.shown()) for cell in part] == ["80.00", "not had: no data", "not had: not every column is there"]


def test_cosines_of_transformations_and_single_splits_do_not_enter_the_average() -> None:
    entry = Entry(
        name="x/y", title="T", columns=("cosine: negation", "Avg."), systems=(System(label="A", recipe="simcse"),)
    )
    run = {"STS12": 50.0, "STS13": 70.0, "Cont.": 80.0, "Oppn.: STS-B test": 1.0, "cosine: negation": 0.9}
    (cells,) = scores_table(entry, {"f": {"A": [run]}}).rows.values()
    assert [str(cell.shown()) for cell in cells] == ["0.90", "60.00"]
