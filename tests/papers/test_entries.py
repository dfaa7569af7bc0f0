from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from opencse.encoder.names import FAMILIES
from opencse.evaluation import STS_TASKS
from opencse.evaluation.probes import load_probe_data
from opencse.evaluation.probes.probes import SPLITS, WEIGHTED_SUPERVISED, WEIGHTED_UNSUPERVISED
from opencse.evaluation.suites import SUITES
from opencse.foundation.errors import OpencseError
from opencse.papers.details import pair_cosines
from opencse.papers.entries import Entry, System, entry_names, load_entry
from opencse.papers.scores import SIDES, Missing, TaskMetrics, TaskScores, UsualScores
from opencse.papers.table import FamilyResults, ReproducedCell, scores_table, splits_table
from opencse.recipes import load_recipe

# Tasks of SAN that opencse does not name itself, and that a user may have as folders of these
# names.
FOLDERS = (
    *(
        "AmazonReviews",
        "MassiveIntent",
        "MassiveScenario",
        "MTOPDomain",
        "MTOPIntent",
        "ToxicConversations",
    ),
    *("AskUbuntuDupQuestions", "SciDocsRR", "StackOverflowDupQuestions", "QuoraRetrieval"),
)

PAIR = [("a", "a", None)]


def table_of(entry: Entry, systems):
    return scores_table(entry, [FamilyResults(family="bert-base", heading="x", systems=systems)])


def columns_of(kind: str) -> set[str]:
    if kind == "scores":
        sentences = load_probe_data().sentences
        assert sentences is not None
        return {
            *STS_TASKS,
            "Avg.",
            "Cont.",
            "Oppn.",
            *(f"cosine: {each}" for each in sentences.kinds),
        }
    if kind == "tasks":
        return {
            "Avg.",
            "Avg. dev_accuracy",
            "Avg. map@10",
            "Avg. mrr@10",
            *FOLDERS,
            *(task for tasks in SUITES.values() for task in tasks),
        }
    if kind == "projection":
        return {"mean cosine", "variance shown, %"}
    if kind == "cost":
        return {"minutes", "minutes an epoch"}
    if kind == "curves":
        return {
            "alignment",
            "uniformity",
            "training alignment",
            "training uniformity",
            "Cont.",
            "Oppn.",
        }
    return {f"{part}{name}" for part in SIDES for name in ("", *map(": {}".format, SPLITS))}


@pytest.mark.parametrize("name", entry_names())
def test_every_entry_can_be_run(name: str) -> None:
    entry = load_entry(name)
    assert set(entry.families) <= set(FAMILIES)
    columns = [
        column.partition(":")[0] if entry.kind == "tasks" else column for column in entry.columns
    ]
    if entry.kind in ("pairs", "training_pairs"):
        names = [group.name for group in entry.groups] or ["positive", "negative"]
        pairs = pair_cosines(dict.fromkeys(names, PAIR), lambda _: np.ones((1, 2)))
        assert all(isinstance(pairs.value(column), float) for column in entry.parsed_columns)
    elif entry.kind == "neighbours":
        assert columns == [
            f"query {i}: rank" for i, query in enumerate(entry.queries, 1) if query.answer
        ]
    elif entry.kind != "splits" or entry.systems:
        assert set(columns) <= columns_of(entry.kind)
    assert entry.systems or entry.kind == "splits"
    assert entry.seeds > 0
    for belonging, kind in (
        (entry.groups, "pairs"),
        (entry.queries, "neighbours"),
        (entry.watch, "curves"),
    ):
        assert bool(belonging) == (entry.kind == kind)
    for group in entry.groups:
        sources = (group.transformation, group.least_score is not None, group.versions, group.place)
        assert sum(map(bool, sources)) == 1, group
    for system in entry.systems:
        assert {*system.families, *system.printed} <= {*entry.families}
        assert all(0 < len(scores) <= len(entry.columns) for scores in system.printed.values())
        assert all(
            len(system.printed[family]) == len(values)
            for family, values in system.deviations.items()
        )
        sources = (system.missing, system.recipe, system.pooling, system.word_vectors)
        assert sum(map(bool, sources)) == 1, system
        assert system.recipe or not (system.set or system.column or system.model)
        assert system.pooling or not (system.whitened or system.flow)
    rows = [
        (system.label, family) for family in entry.families for system in entry.systems_of(family)
    ]
    assert len(set(rows)) == len(rows)
    assert all(entry.systems_of(family) for family in entry.families if entry.systems)
    for family, variant in itertools.product((*entry.families, "mini-mlm"), ("sound", "faithful")):
        for system in entry.systems if family == "mini-mlm" else entry.systems_of(family):
            if system.recipe:
                load_recipe(
                    system.recipe, family=family, variant=variant, overrides=list(system.set)
                )


def test_a_row_runs_with_the_families_that_its_paper_has() -> None:
    entry = load_entry("byop/table-2")
    rows = {
        family: [system.label for system in entry.systems_of(family)] for family in entry.families
    }
    assert rows == {
        "bert-base": ["SimCSE", "+BYOP-D", "+BYOP-D-M"],
        "bert-large": ["SimCSE", "+BYOP-D", "+BYOP-C-M"],
        "roberta-base": ["SimCSE", "+BYOP-D-M", "+BYOP-C"],
        "roberta-large": ["SimCSE", "+BYOP-D-M", "+BYOP-C-M"],
    }
    assert [
        system.label for system in load_entry("osscse/table-4").systems_of("roberta-large")
    ] == [*("SimCSE", "DCLR", "ESimCSE", "OssCSE")]


def test_printed_values_and_deviations_are_counted() -> None:
    systems = [system for name in entry_names() for system in load_entry(name).systems]
    assert sum(len(values) for system in systems for values in system.printed.values()) == 1623
    assert sum(len(values) for system in systems for values in system.deviations.values()) == 12


def test_what_osscse_and_debcse_say_of_simcse_is_of_the_released_models() -> None:
    unsupervised, supervised = (
        f"princeton-nlp/{kind}-simcse-bert-base-uncased" for kind in ("unsup", "sup")
    )
    for name in (
        "osscse/example-1",
        "osscse/figure-1",
        "osscse/table-3",
        "debcse/figure-1",
        "debcse/figure-4",
    ):
        models = [system.model.get("bert-base") for system in load_entry(name).systems[:2]]
        assert models == [unsupervised, supervised]
    printed = [system.printed["bert-base"] for system in load_entry("osscse/example-1").systems]
    assert printed == [(0.72, 0.96, 0.97, 0.95, 0.97, 0.40), (0.92, 0.75, 0.95, 0.98, 0.98, 0.08)]
    assert "princeton-nlp" not in str([load_entry("osscse/table-4"), load_entry("diffcse/table-1")])


@pytest.mark.parametrize("family", ["bert-base", "bert-large", "roberta-base", "roberta-large"])
def test_the_pairs_of_san_table_3_differ_in_sans_own_settings_alone(family: str) -> None:
    rows = {system.label: system for system in load_entry("san/table-3").systems_of(family)}
    for label in ("SimCSE", "SNCSE", "RankCSE", "RLRD"):
        if label not in rows:
            continue
        plain, added = (
            load_recipe(row.recipe, family=family, variant="faithful", overrides=list(row.set))
            for row in (rows[label], rows[f"{label} + SAN"])
        )
        assert (plain.training, plain.optimizer, plain.schedule, plain.selection) == (
            *(added.training, added.optimizer, added.schedule, added.selection),
        )
        assert replace(added.encoder, dropout=None) == plain.encoder
        assert added.encoder.dropout in (None, 0.1)


def test_osscse_without_its_losses_keeps_both_prompts() -> None:
    prompt, recall = (
        load_entry("osscse/table-5").systems[1],
        load_entry("osscse/table-5").systems[3],
    )
    recipe = load_recipe(prompt.recipe, overrides=list(prompt.set))
    assert [loss.name for loss in recipe.losses] == ["info_nce"]
    assert [view.prompt for view in recipe.used_views.values()] == [
        *('This sentence : "{}" means {mask}.', 'This sentence of "{}" means {mask}.')
    ]
    assert recall.printed == {"roberta-base": (87.12,)}
    assert [loss.name for loss in load_recipe("osscse", overrides=list(recall.set)).losses] == [
        "info_nce",
        "recall",
    ]


def test_all_five_papers_have_tables_and_an_average_is_the_mean_of_its_row() -> None:
    assert {name.partition("/")[0] for name in entry_names()} == {
        "byop",
        "debcse",
        "diffcse",
        "osscse",
        "san",
    }
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


ODD = [
    ("debcse/table-2", "whitening", "bert-base"),
    ("osscse/table-4", "ESimCSE", "roberta-large"),
    ("san/table-3", "SNCSE", "roberta-large"),
]


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
    runs = [
        UsualScores(tasks={"STS12": 50.0, "STS-B": 60.0}, averages={"Oppn.": 1.0}),
        UsualScores(tasks={"STS12": 52.0, "STS-B": 62.0}, averages={"Oppn.": 1.0}),
    ]
    table = table_of(entry, {"A": runs, "B": Missing("translation models")})
    assert [str(cell.shown()) for cell in table.rows["A"]] == [
        "51.00 ± 1.41 (70.00)",
        "61.00 ± 1.41 (80.00)",
        "56.00 ± 1.41 (75.00)",
    ]
    assert [str(cell.shown()) for cell in table.rows["B"]] == [
        "",
        "",
        "not had: translation models (76.25)",
    ]
    assert "| A | 51.00 ± 1.41 (70.00) |" in table.markdown()
    assert str(ReproducedCell(values=(1.0,)).shown()) == "1.00"


def test_a_printed_deviation_stands_beside_its_score_and_fewer_sets_are_counted() -> None:
    system = System(
        label="A",
        recipe="simcse",
        printed={"bert-base": (70.0,)},
        deviations={"bert-base": (0.71,)},
    )
    entry = Entry(name="x/y", title="T", columns=("Cont.", "Avg."), systems=(system,))
    run = UsualScores(
        tasks={"STS12": 50.0},
        consistent={"STS12 MSRvid": 80.0, "STS-B test": 80.0},
        averages={"Cont.": 80.0},
    )
    table = table_of(entry, {"A": [run]})
    assert [str(cell.shown()) for cell in table.rows["A"]] == ["80.00", "50.00 (70.00 ± 0.71)"]
    assert "Cont. and Oppn. are over 2 sets of pairs; the paper's are over 16." in table.notes


MIXED = TaskScores(
    tasks={
        "STS-B dev": TaskMetrics(metrics={"spearman": 10.0}),
        "MR": TaskMetrics(main=79.0, metrics={"dev_accuracy": 80.0}),
        "CR": TaskMetrics(main=80.0, metrics={"dev_accuracy": 90.0}),
        "MRPC": TaskMetrics(main=70.0),
    },
    missing={"SUBJ": Missing("no data")},
)
USUAL = UsualScores(
    tasks={"STS12": 50.0, "STS13": 70.0}, averages={"Cont.": 80.0}, cosines={"negation": 0.9}
)


@pytest.mark.parametrize(
    ("kind", "run", "columns", "shown"),
    [
        ("tasks", MIXED, ("STS-B dev: spearman", "MR: dev_accuracy", "CR: dev_accuracy", "Avg. dev_accuracy"),
         ["10.00", "80.00", "90.00", "85.00"]),
        ("tasks", MIXED, ("CR", "MRPC", "Avg."), ["80.00", "70.00", "75.00"]),
        ("tasks", MIXED, ("CR", "SUBJ", "Avg."),
         ["80.00", "not had: no data", "not had: not every column is there"]),
        ("scores", USUAL, ("cosine: negation", "STS12", "STS13", "Cont.", "Avg."),
         ["0.90", "50.00", "70.00", "80.00", "60.00"]),
    ],
    ids=["of one metric", "of all tasks", "of tasks of which one is missing", "of scores alone"],
)  # fmt: skip
def test_an_average_is_that_of_its_columns(kind, run, columns, shown: list[str]) -> None:
    system = System(label="A", recipe="simcse")
    entry = Entry(name="x/y", title="T", kind=kind, columns=columns, systems=(system,))
    (cells,) = table_of(entry, {"A": [run]}).rows.values()
    assert [str(cell.shown()) for cell in cells] == shown


def test_tables_and_splits_that_are_not_there_are_named() -> None:
    table = splits_table(load_entry("osscse/table-2"), {}, {"STS-B train": "no file"})
    assert list(table.rows) == list(SPLITS)
    assert (
        table.rows["STS-B train"][0].shown(0)
        == f"not had: no file ({SPLITS['STS-B train'][0]:,.0f})"
    )
    with pytest.raises(OpencseError, match="unknown table 'osscse/table-9'"):
        load_entry("osscse/table-9")


def test_scores_of_each_set_stand_beside_what_was_printed_of_it() -> None:
    entry = load_entry("osscse/table-6")
    run = UsualScores(
        consistent={"STS-B test": 81.0},
        opposed={"STS-B test": 41.0},
        averages={"Cont.": 80.0, "Oppn.": 40.0},
    )
    table = table_of(entry, {"SimCSE": [run], "SimCSE, supervised": Missing("no triplets")})
    assert list(table.rows) == [
        f"{part}{name}" for name in (*map(": {}".format, SPLITS), "") for part in SIDES
    ]
    assert table.columns == ("SimCSE", "SimCSE, supervised")
    shown = {name: [str(cell.shown()) for cell in cells] for name, cells in table.rows.items()}
    assert shown["Cont.: STS-B test"] == ["81.00 (83.54)", "(87.62)"]
    assert shown["Oppn."] == ["40.00 (49.82)", "not had: no triplets (61.52)"]
    assert shown["Cont.: STS-B train"][0] == "not had: not measured without --data (85.77)"


def test_table_6_weighted_by_the_pairs_of_table_2_gives_table_3() -> None:
    for system, published in zip(
        load_entry("osscse/table-6").systems, (WEIGHTED_UNSUPERVISED, WEIGHTED_SUPERVISED)
    ):
        *sets, consistent, opposed = system.printed["bert-base"]
        for side, average in enumerate((consistent, opposed)):
            weights = [row[side] for row in SPLITS.values()]
            assert np.average(sets[side::2], weights=weights) == pytest.approx(average, abs=0.06)
            assert average == pytest.approx(100 * published[side])
