from __future__ import annotations

from opencse.commands.reports.summary import add_scores, card_table
from tests.commands.reports.hostile import NAME, probe_scores


def test_a_table_has_a_column_for_each_model_and_a_row_for_each_task_and_figure() -> None:
    models = probe_scores("first", NAME)
    head, rule, *rows = card_table(models).split("\n")
    assert rule == "| --- | ---: | ---: |"
    assert "first" in head
    assert all(row.replace("\\|", "").count("|") == 4 for row in [head, *rows])
    assert [row.split(" | ")[0] for row in rows if "above" in row] == ["| Paraphrase above negation"]


def test_scores_stand_once_at_the_end_of_a_card(tmp_path) -> None:
    card = tmp_path / "README.md"
    card.write_text("# A model\n\nAbout it.\n")
    for text in ("one.txt", "two.txt"):
        add_scores(card, probe_scores("first", "second"), made_of=text)
    found = card.read_text()
    assert found.startswith("# A model\n\nAbout it.\n\n## Before and after\n\nText: two.txt.\n\n|  | first | second |")
    assert "one.txt" not in found
