from __future__ import annotations

from opencse.commands.reproduction.entries import load_entry
from opencse.commands.reproduction.tables import split_scores_table, splits_table
from opencse.evaluation.probes.scored_pairs import SPLITS


def test_splits_that_are_not_there_are_named() -> None:
    table = splits_table(load_entry("osscse/table-2"), {}, {"STS-B train": "no file"})
    assert list(table.rows) == list(SPLITS)
    assert table.rows["STS-B train"][0].shown(0) == f"not had: no file ({SPLITS['STS-B train'].pairs[0]:,})"


def test_scores_of_each_set_stand_beside_what_was_printed_of_it() -> None:
    entry = load_entry("osscse/table-6")
    run = {"Cont.": 80.0, "Oppn.": 40.0, "Cont.: STS-B test": 81.0, "Oppn.: STS-B test": 41.0}
    scores = {"bert-base: mini-mlm": {"SimCSE": [run], "SimCSE, supervised": "no triplets"}}
    table = split_scores_table(entry, scores)
    assert list(table.rows) == [*SPLITS, "weighted average"]
    assert table.columns == ("Cont. SimCSE", "Oppn. SimCSE", "Cont. SimCSE, supervised", "Oppn. SimCSE, supervised")
    assert [str(cell.shown()) for cell in table.rows["STS-B test"]] == [
        "81.00 (83.54)",
        "41.00 (54.15)",
        "not had: no triplets (87.62)",
        "not had: no triplets (72.71)",
    ]
    assert str(table.rows["weighted average"][0].shown()) == "80.00 (85.74)"
    assert str(table.rows["STS-B train"][0].shown()) == "not had: not measured without --data (85.77)"
