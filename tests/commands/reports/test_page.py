from __future__ import annotations

import base64
import importlib.util
import json
import re
import unicodedata
from html.parser import HTMLParser

import pytest
from huggingface_hub import EvalResult, ModelCardData, metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results
from hypothesis import given
from hypothesis import strategies as st

from opencse.commands.reports.figures import short
from opencse.commands.reports.page import write_report
from opencse.commands.reports.tables import shown, triplet_rows
from opencse.commands.run_report import add_scores, card_table
from opencse.evaluation.probes import ProbeData, probe_encoders
from opencse.foundation.errors import OpencseError
from tests.commands.reports.hostile import CLOSING, LONG, NAME, bag_of_words, pairs, probe_scores, render


class Page(HTMLParser):
    """Collects elements, references and text; notes elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.references: list[str] = []
        self.ids: list[str] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "action", "srcset", "poster", "data"):
                self.references.append(value)
            if name == "id":
                self.ids.append(value)
            assert not name.startswith("on"), name
            assert "url(" not in (value or "")

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if self.open and self.open[-1] == tag:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def models():
    return probe_scores("first", NAME)


@pytest.fixture(scope="module")
def html(models) -> str:
    return render(models, settings={name: {"weights": NAME} for name in models}, notes=[NAME, CLOSING])


def test_a_report_without_matplotlib_says_what_to_install(models, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name))
    page = write_report(models, tmp_path).read_text(encoding="utf-8")
    assert "opencse[figures]" in page
    assert "<img" not in page


def test_the_page_refers_to_nothing_outside_and_holds_no_script(html):
    page = Page(html)
    assert page.open == []
    assert "script" not in page.tags
    assert "b" in page.tags  # ours, around numbers
    assert page.references
    for reference in page.references:
        assert reference.startswith(("#", "data:")), reference
    assert len(page.ids) == len(set(page.ids))
    anchors = {r[1:] for r in page.references if r.startswith("#")}
    assert anchors <= set(page.ids)


def test_hostile_texts_are_shown_as_text(html):
    text = "".join(Page(html).texts)
    assert "<script>document.title" in text
    assert "{{ 7*7 }}" in text
    assert LONG[:300] not in html
    assert "(100,000 characters)" in text
    assert "\u202e" not in html
    assert "⟨U+202E⟩" in text
    assert re.search(r"http(?!://www\.w3\.org/)", html.replace("http-equiv", "")) is None  # namespaces only


def test_triplets_have_a_row_for_the_set_and_for_each_group(models):
    parts = [each.triplets for each in models.values()]
    rows = triplet_rows(parts)
    assert [row[1] for row in rows] == [8, 8, 4, 4]
    assert all(len(row) == 2 + len(models) for row in rows)
    assert all(re.fullmatch(r"\d+ % \(\d+ to \d+\)", str(cell)) for row in rows for cell in row[2:])
    assert [row[0] for row in triplet_rows(parts, columns=("kind",))] == [rows[0][0], rows[2][0], rows[3][0]]


def test_figures_are_in_the_page_and_the_same_twice(models):
    html = render(models)
    assert html == render(models)
    figures = [
        base64.b64decode(each).decode() for each in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', html)
    ]
    assert len(figures) == 3
    assert "&lt;b&gt;evil" in figures[0]
    assert all("<script" not in each and "\u202e" not in each for each in figures)


def test_undefined_is_named_and_never_a_nan(html, models, tmp_path):
    assert "undefined" in html
    assert not re.search(r"\bnan\b", "".join(Page(html).texts), flags=re.IGNORECASE)
    write_report(models, tmp_path)
    document = json.loads((tmp_path / "probe.json").read_text(), parse_constant=pytest.fail)
    flat = document["models"]["first"]["scores"]["own_splits"]["sets"][0]
    assert flat["opposed"]["value"] is None
    assert flat["opposed"]["undefined"] == "all gold scores are equal"


def test_a_report_on_scored_pairs_alone(tmp_path):
    few = ProbeData(pairs=[pairs([("a b", "a c", 4.0), ("d", "e", 1.0), ("f g", "f g", 5.0)], "own")])
    html = write_report(probe_encoders({"m": bag_of_words}, few), tmp_path).read_text()
    assert "your pairs" in html
    assert "Searches to look at" not in html


def test_a_place_that_is_a_file_is_refused(models, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OpencseError, match="not a folder"):
        write_report(models, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "x"


def test_a_card_has_a_column_for_each_model_and_a_row_for_each_task_and_figure(models) -> None:
    head, rule, *rows = card_table(models).split("\n")
    assert rule == "| --- | ---: | ---: |"
    assert "first" in head
    assert all(row.replace("\\|", "").count("|") == 4 for row in [head, *rows])
    assert [row.split(" | ")[0] for row in rows if "above" in row] == ["| Paraphrase above negation"]


def test_scores_stand_once_at_the_end_of_a_card(models, tmp_path) -> None:
    card = tmp_path / "README.md"
    card.write_text("# A model\n\nAbout it.\n")
    for text in ("one.txt", "two.txt"):
        add_scores(card, models, made_of=text)
    found = card.read_text()
    assert found.startswith("# A model\n\nAbout it.\n\n## Before and after\n\nText: two.txt.\n\n|  | first | ")
    assert "one.txt" not in found


def test_scores_join_those_in_the_metadata_of_a_card(models, tmp_path) -> None:
    card = tmp_path / "README.md"
    kept = EvalResult("triplet", "unknown", "mine", "cosine_accuracy", 0.5)
    metadata = ModelCardData(license="mit", model_name="a", eval_results=[kept])
    card.write_text(f"---\n{metadata.to_yaml()}\n---\n\n# A model\n")
    for _ in range(2):
        add_scores(card, models, made_of="one.txt")
    written = metadata_load(card)
    name, results = model_index_to_eval_results(written["model-index"])
    tasks = [task for task in list(models.values())[-1].sts if task.score is not None]
    assert (name, written["license"]) == ("a", "mit")
    assert [each.metric_type for each in results] == ["cosine_accuracy", *["spearman_cosine"] * len(tasks)]
    assert [each.dataset_name for each in results] == ["mine", *(task.task for task in tasks)]


@given(st.text(alphabet=st.characters(), max_size=400))  # lone surrogates as well
def test_what_is_shown_is_short_and_has_nothing_invisible(text):
    result = shown(text, 100)
    assert len(result) <= 100 * 10 + 40
    result.encode("utf-8")
    bad = [c for c in result if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\u200c\u200d"]
    assert bad == []


def test_ordinary_text_is_left_alone():
    for text in ("Is it safe?", "ليس الدواء آمنا.", "naïve café, 5 < 6 & 7", "👩\u200d👩\u200d👧"):
        assert shown(text) == text


def test_long_and_tricky_texts():
    assert shown("a" * 100_000, 5) == "aaaaa… (100,000 characters)"
    assert shown("a\u202eb\tc\nd\x00") == "a⟨U+202E⟩b c d⟨U+0000⟩"


def test_names_in_figures_are_short():
    assert short("minilm") == "minilm"
    assert short("x" * 1000, 26) == "x" * 25 + "…"
    assert len(short("\u202e" * 1000, 26)) <= 52
