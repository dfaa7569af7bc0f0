from __future__ import annotations

import base64
import importlib.util
import json
import re
import unicodedata
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from huggingface_hub import ModelCardData, metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results
from hypothesis import given
from hypothesis import strategies as st

from opencse.commands.reports.page import measure_groups, wording_verdict, write_report
from opencse.commands.reports.scores_on_card import add_scores, card_table
from opencse.commands.reports.tables import Change, cache_line, compare_models, triplet_rows
from opencse.debias.strength import StrengthCurve
from opencse.evaluation import TaskResult
from opencse.evaluation.bootstrap import PairScores
from opencse.evaluation.estimate import mean_estimate
from opencse.evaluation.probes import (
    ProbeData,
    ProbeScores,
    ProbeSentences,
    Transformations,
    run_probes,
)
from opencse.evaluation.probes.probe_suite import TripletResult
from opencse.evaluation.probes.probes import TransformationCosines
from opencse.evaluation.written_sets import Triplet, TripletSet
from opencse.foundation.errors import OpencseError
from opencse.foundation.figures import short
from opencse.foundation.page_text import shown
from opencse.training.model_card import hub_score
from tests.evaluation.probes.helpers import ROWS, bag_of_words, pairs


class Page(HTMLParser):
    """Collects elements, attributes and text; notes elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag not in ("meta", "link", "img", "br"):
            self.open.append(tag)
        self.attributes += attributes

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
    described = {name: replace(found, settings={"weights": NAME}) for name, found in models.items()}
    return render(described, notes=[NAME, CLOSING])


def test_a_report_without_matplotlib_says_what_to_install(models, tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    page = write_report(models, tmp_path).read_text(encoding="utf-8")
    assert "opencse[figures]" in page
    assert "<img" not in page


def test_the_page_refers_to_nothing_outside_and_holds_no_script(html):
    page = Page(html)
    assert page.open == []
    assert "script" not in page.tags
    assert "td" in page.tags
    assert not any(
        name.startswith("on") or "url(" in (value or "") for name, value in page.attributes
    )
    places = ("src", "href", "xlink:href", "action", "srcset", "poster", "data")
    references = [value for name, value in page.attributes if name in places]
    ids = [value for name, value in page.attributes if name == "id"]
    assert references
    assert all(reference.startswith(("#", "data:")) for reference in references), references
    assert len(ids) == len(set(ids))
    assert {r[1:] for r in references if r.startswith("#")} <= set(ids)


def test_hostile_texts_are_shown_as_text(html):
    text = "".join(Page(html).texts)
    assert "<script>document.title" in text
    assert "{{ 7*7 }}" in text
    assert LONG[:300] not in html
    assert "(100,000 characters)" in text
    assert "\u202e" not in html
    assert "⟨U+202E⟩" in text
    assert (
        re.search(r"http(?!://www\.w3\.org/)", html.replace("http-equiv", "")) is None
    )  # namespaces only


def test_triplets_have_a_row_for_the_set_and_for_each_group(models):
    parts = [each.triplets for each in models.values()]
    rows = triplet_rows(parts)
    assert [row[1] for row in rows] == [8, 8, 4, 4]
    assert all(len(row) == 2 + len(models) for row in rows)
    assert all(re.fullmatch(r"\d+ % \(\d+ to \d+\)", str(cell)) for row in rows for cell in row[2:])
    assert [row[0] for row in triplet_rows(parts, columns=("kind",))] == [
        rows[0][0],
        rows[2][0],
        rows[3][0],
    ]


def test_figures_are_in_the_page_and_the_same_twice(models):
    html = render(models)
    assert html == render(models)
    figures = [
        base64.b64decode(each).decode()
        for each in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', html)
    ]
    assert len(figures) == 3
    assert all("prefers-color-scheme: dark" in each for each in figures)
    assert "&lt;b&gt;evil" in figures[0]
    assert all("<script" not in each and "\u202e" not in each for each in figures)


def test_undefined_is_named_and_never_a_nan(html, models, tmp_path):
    assert "undefined" in html
    assert not re.search(r"\bnan\b", "".join(Page(html).texts), flags=re.IGNORECASE)
    write_report(models, tmp_path)
    document = json.loads((tmp_path / "probe.json").read_text(), parse_constant=pytest.fail)
    flat = document["models"]["first"]["scores"]["splits"][1]
    assert flat["opposed"]["value"] is None
    assert flat["opposed"]["undefined"] == "all gold scores are equal"


def test_a_report_on_scored_pairs_alone(tmp_path):
    few = ProbeData(
        pairs=[pairs([("a b", "a c", 4.0), ("d", "e", 1.0), ("f g", "f g", 5.0)], "own")]
    )
    html = write_report({"m": run_probes(few, bag_of_words)}, tmp_path).read_text()
    assert "where it misleads" in html
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
    assert [row.split(" | ")[0] for row in rows if "above" in row] == [
        "| Paraphrase above negation"
    ]


def test_scores_stand_once_at_the_end_of_a_card(models, tmp_path) -> None:
    card = tmp_path / "README.md"
    card.write_text("# A model\n\nAbout it.\n")
    for text in ("one.txt", "two.txt"):
        add_scores(card, models, list(models.values())[1], made_of=text)
    found = card.read_text()
    assert found.startswith(
        "# A model\n\nAbout it.\n\n## Before and after\n\nText: two.txt.\n\n|  | first | "
    )
    assert "one.txt" not in found


def test_scores_join_those_in_the_metadata_of_a_card(models, tmp_path) -> None:
    card = tmp_path / "README.md"
    kept = [
        hub_score("triplet", name, "cosine_accuracy", 50.0) for name in ("mine", "another of mine")
    ]
    metadata = ModelCardData(license="mit", model_name="a", eval_results=kept).to_yaml()
    card.write_text(f"---\n{metadata}\n---\n\n# A model\n")
    for _ in range(2):
        add_scores(card, models, list(models.values())[1], made_of="one.txt")
    written = metadata_load(card)
    name, results = model_index_to_eval_results(written["model-index"])
    tasks = [task for task in list(models.values())[-1].sts if task.score is not None]
    assert (name, written["license"]) == ("a", "mit")
    assert [each.metric_type for each in results] == ["cosine_accuracy"] * 2 + [
        "spearman_cosine"
    ] * len(tasks)
    assert [each.dataset_name for each in results] == [
        "mine",
        "another of mine",
        *(task.task for task in tasks),
    ]


@given(st.text(alphabet=st.characters(), max_size=400))  # lone surrogates as well
def test_what_is_shown_is_short_and_has_nothing_invisible(text):
    result = shown(text, 100)
    assert len(result) <= 100 * 10 + 40
    result.encode("utf-8")
    bad = [
        c
        for c in result
        if unicodedata.category(c) in ("Cc", "Cf", "Cs") and c not in "\u200c\u200d"
    ]
    assert bad == []


def test_texts_and_names_are_shortened_and_ordinary_ones_left_alone():
    for text in ("Is it safe?", "ليس الدواء آمنا.", "naïve café, 5 < 6 & 7", "👩\u200d👩\u200d👧"):
        assert shown(text) == text
    assert shown("a" * 100_000, 5) == "aaaaa… (100,000 characters)"
    assert shown("a\u202eb\tc\nd\x00") == "a⟨U+202E⟩b c d⟨U+0000⟩"
    assert short("minilm") == "minilm"
    assert short("x" * 1000, 26) == "x" * 25 + "…"
    assert len(short("\u202e" * 1000, 26)) <= 52


SCRIPT = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> the drug"
)
OVERRIDE = "\u202egnirts desrever a si siht\u202c & \u2067more"
LONG = "a" * 100_000
CLOSING = '"></bdi></main></svg><style>body{display:none}</style> {{ 7*7 }} $x^{2$'
NAME = "<b>evil</b>\u202e $\\frac{"


def probe_scores(*names: str) -> dict[str, ProbeScores]:
    hostile = (SCRIPT, OVERRIDE, LONG, CLOSING)
    rows = [(text, f"reworded {i}", f"{text} not", "x") for i, text in enumerate(hostile)] + ROWS
    anchors, paraphrases, negations, others = zip(*rows, strict=True)
    sentences = ProbeSentences(
        name="hostile",
        anchors=anchors,
        versions={"paraphrase": paraphrases, "negation": negations, "random": others},
        total=len(rows),
    )
    scored = [
        (a, b, float(i % 6))
        for i, (a, b) in enumerate(zip(anchors * 3, negations * 3, strict=True))
    ]
    toy = pairs(scored, SCRIPT)
    triplets = [
        Triplet(
            id=str(i), anchor=a, positive=p, negative=n, groups={"grade": NAME, "kind": str(i % 2)}
        )
        for i, (a, p, n, _) in enumerate(rows)
    ]
    data = ProbeData(
        sts=[toy],
        split_sets=[toy, pairs([("a", "b", 3.0), ("c", "d", 3.0)], "flat")],
        sentences=sentences,
        triplets=[TripletSet(name=SCRIPT, triplets=tuple(triplets))],
    )

    def noisy(texts):
        clean = bag_of_words([text[:200] for text in texts])
        return clean + np.random.default_rng(0).normal(size=clean.shape)

    return {name: run_probes(data, noisy if i else bag_of_words) for i, name in enumerate(names)}


def render(models: dict[str, ProbeScores], **options) -> str:
    with TemporaryDirectory() as folder:
        return write_report(models, folder, **options).read_text(encoding="utf-8")


def pair_scores(noise: float = 0.0, *, seed: int = 0, rows: int = 1000) -> PairScores:
    """Similarities that err by chance, and more with more noise."""
    gold = np.arange(rows) / rows
    errors = np.random.default_rng(seed).normal(size=rows)
    return PairScores(gold=gold, predicted=gold + (0.3 + noise) * errors)


def scores(
    *, above: int, right: int = 20, sts: float = 70.0, pairs: PairScores | None = None
) -> ProbeScores:
    """Scores on 40 sentences, `above` of them with the paraphrase above the negation, and on 40 triplets."""
    rows, triplets = (tuple(i < count for i in range(40)) for count in (above, right))
    return ProbeScores(
        pairs={"STS-B": pairs or pair_scores()},
        sts=(
            TaskResult(
                task="STS-B", main="spearman", metrics={"spearman": sts}, rows=1000, data_sha256=""
            ),
        ),
        transformations=Transformations(
            kinds=(), paraphrase_above_negation=mean_estimate(rows), rows_above=rows
        ),
        triplets=(
            TripletResult(
                name="roles", accuracy=mean_estimate(triplets), groups={}, rows_right=triplets
            ),
        ),
    )


def curve(**guards: tuple[float, float]) -> StrengthCurve:
    return StrengthCurve(
        chosen=0.4,
        tolerance=0.3,
        strengths=(0.0, 0.4),
        guards=guards,
        meaning={"dev-a": (1.0, 2.0)},
    )


def answers(before: ProbeScores, after: ProbeScores, **options) -> dict[str, list[str]]:
    return dict(compare_models({"old": before, "new": after}, **options).answers())


def test_gains_losses_and_differences_within_chance_are_told_apart() -> None:
    found = answers(scores(above=10), scores(above=30))
    assert found["Is it better?"] == ["Yes: better on 1 of 3 measures, worse on none."]
    assert found["On what?"][0].startswith(
        "paraphrase nearer than negation, %: 25.0 → 75.0, 50.0 points more (95 %"
    )
    assert found["What got worse?"] == ["Nothing that was measured."]
    found = answers(scores(above=10), scores(above=11, sts=70.5, pairs=pair_scores(seed=1)))
    assert found["Is it better?"] == ["No: none of 3 measures changed beyond chance."]
    assert found["On what?"] == found["What got worse?"] == ["Nothing that was measured."]


def test_a_loss_is_named_first_and_with_its_size() -> None:
    found = answers(
        scores(above=10, right=30, sts=70.0),
        scores(above=30, right=5, sts=69.5, pairs=pair_scores(0.1)),
    )
    assert found["Is it better?"] == ["On some measures: better on 1 of 3, worse on 2."]
    roles, people = found["What got worse?"]
    assert roles.startswith("roles: paraphrase nearer, %: 75.0 → 12.5, 62.5 points less")
    assert people.startswith("agreement with people, STS-B: 70.0 → 69.5, 0.5 points less (95 %")


def test_the_false_hits_of_a_cache_are_counted_above_what_nine_of_ten_paraphrases_reach() -> None:
    cosines = {
        "paraphrase": (0.5, *[0.8] * 10),
        "negation": (0.9, 0.8, 0.79, 0.1),
    }  # one paraphrase is a miss
    kinds = tuple(
        TransformationCosines(kind=kind, cosine=mean_estimate(x), cosines=x, error_rates=())
        for kind, x in cosines.items()
    )
    found = scores(above=1)
    assert found.transformations is not None
    measured = replace(found, transformations=replace(found.transformations, kinds=kinds))
    (line,) = cache_line({"old": measured})
    assert line.endswith("among negations: old 50 % from 0.80 on.")
    assert not list(cache_line({"old": found}))


def test_undefined_scores_and_too_few_rows_make_no_claim() -> None:
    few = [
        replace(scores(above=10), sts=(replace(scores(above=10, sts=sts).sts[0], rows=99),))
        for sts in (50, 90)
    ]
    found = compare_models({"old": few[0], "new": few[1]})
    assert found.answers()[0][1] == ["No: none of 2 measures changed beyond chance."]
    assert found.remarks[0].endswith(
        "too few rows to say: agreement with people, STS-B: 50.0 → 90.0 (99 rows)."
    )
    bare = [replace(each, transformations=None, triplets=()) for each in few]
    assert answers(bare[0], bare[1])["Is it better?"] == [
        "Can't say: nothing was measured on enough rows."
    ]
    undefined = replace(scores(above=10).sts[0], metrics={"spearman": None})
    found = compare_models(
        {"a": replace(scores(above=10), sts=(undefined,)), "b": scores(above=10)}
    )
    assert [each.measure for each in found.changes if "people" in each.measure] == []


def test_guards_count_from_what_the_strength_may_cost() -> None:
    same = scores(above=10)
    found = answers(same, same, curve=curve(search=(80.0, 79.4), topics=(60.0, 59.7)))
    assert found["Is it better?"] == ["No: worse on 1 of 5 measures, better on none."]
    assert found["What got worse?"] == ["guard search: 80.0 → 79.4, 0.6 points less"]
    within = answers(same, same, curve=curve(search=(80.0, 79.8), topics=(60.0, 60.0)))
    assert within["What got worse?"] == [
        "No guard by more than 0.3 points: guard search: 80.0 → 79.8"
    ]
    # A gain within the same bounds is no gain.
    gained = answers(same, same, curve=curve(search=(80.0, 80.3), topics=(60.0, 60.4)))
    assert gained["Is it better?"] == ["Yes: better on 1 of 5 measures, worse on none."]
    assert gained["On what?"] == ["guard topics: 60.0 → 60.4, 0.4 points more"]


def test_the_verdict_comes_first_then_measures_and_remarks() -> None:
    models = probe_scores("old", NAME)
    page = render(models, comparison=compare_models(models, remarks=[f"Remark {NAME}"]))
    body = page[page.index("<main>") :]
    texts = ("<h1>Is ", 'class="verdict"', f"Remark {escape(NAME[:3])}")
    places = [body.index(text) for text in texts]
    assert places == sorted(places)
    assert "<b>evil</b>" not in page
    assert "Is it better?" not in render(models)


def test_one_number_is_shown_once() -> None:
    models = probe_scores("old", "new")
    alone = render(models)
    compared = render(models, comparison=compare_models(models))
    assert alone.count("Paraphrase above negation") > 0
    assert "Paraphrase above negation" not in compared
    assert "first hit is the negation" not in alone


def test_each_measure_is_defined_where_it_stands() -> None:
    change = Change(
        measure="roles: paraphrase nearer, %",
        before=5.0,
        after=62.0,
        spread="95 % interval 50.1 to 64.0",
        changed=True,
    )
    same = replace(change, measure="agreement with people, STS-B", after=5.0, changed=False)
    groups = dict(measure_groups([same, change]))
    assert list(groups) == ["Better", "No clear change"]
    (roles,) = groups["Better"]
    assert roles.change == "+57.0 (50.1 to 64.0)"
    assert "who did what to whom" in roles.meaning
    assert groups["No clear change"][0].meaning.startswith("Spearman")


def test_a_report_on_models_alone_begins_with_a_sentence(models) -> None:
    assert wording_verdict(models).startswith("first ")
    rows = np.array([True] * 90 + [False] * 10)
    above = mean_estimate(rows)
    found = Transformations(kinds=(), paraphrase_above_negation=above, rows_above=tuple(rows))
    line = wording_verdict({"m": replace(scores(above=1), transformations=found)})
    assert line == (
        "m follows meaning more often than wording: a paraphrase ranks above a negation in 90 of "
        "100 sentences."
    )


def test_the_short_answers_are_three_rows_with_the_largest_changes() -> None:
    same, guards = (
        scores(above=10),
        {f"guard-{name}": (80.0, 80.0 - drop) for drop, name in enumerate("abcd", 1)},
    )
    table = compare_models({"old": same, "new": same}, curve(**guards), ["Embed again."]).table(
        most=2
    )
    assert [question for question, _ in table.rows] == [
        "Is it better?",
        "On what?",
        "What got worse?",
    ]
    assert table.rows[2][1] == "guard d: 80.0 → 76.0; guard c: 80.0 → 77.0; 2 more"
    assert table.notes == ("Embed again.",)
