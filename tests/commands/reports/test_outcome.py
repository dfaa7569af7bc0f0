from __future__ import annotations

from dataclasses import replace

from opencse.commands.reports.outcome import cache_line, compare_outcome
from opencse.evaluation import TaskResult
from opencse.evaluation.probes import ProbeScores, Transformations
from opencse.evaluation.probes.estimates import mean_estimate
from opencse.evaluation.probes.probe_suite import TripletResult
from opencse.evaluation.probes.sentence_versions import TransformationCosines
from opencse.training.strength import StrengthCurve
from tests.commands.reports.hostile import NAME, probe_scores, render


def scores(*, above: int, right: int = 20, sts: float = 70.0) -> ProbeScores:
    """Scores on 40 sentences, `above` of them with the paraphrase above the negation, and on 40 triplets."""
    rows, triplets = (tuple(i < count for i in range(40)) for count in (above, right))
    return ProbeScores(
        sts=(TaskResult(task="STS-B", main="spearman", metrics={"spearman": sts}, rows=1000, data_sha256=""),),
        transformations=Transformations(kinds=(), paraphrase_above_negation=mean_estimate(rows), rows_above=rows),
        seconds=0.0,
        triplets=(TripletResult(name="roles", accuracy=mean_estimate(triplets), groups={}, rows_right=triplets),),
    )


def curve(**guards: tuple[float, float]) -> StrengthCurve:
    return StrengthCurve(chosen=0.4, tolerance=0.3, strengths=(0.0, 0.4), guards=guards, meaning={"dev-a": (1.0, 2.0)})


def answers(before: ProbeScores, after: ProbeScores, **options) -> dict[str, list[str]]:
    return dict(compare_outcome({"old": before, "new": after}, **options).answers())


def test_gains_without_losses_are_a_yes() -> None:
    found = answers(scores(above=10), scores(above=30))
    assert found["Is it better?"] == ["Yes: better on 1 of 3 measures, worse on none."]
    assert found["On what?"][0].startswith("paraphrase nearer than negation, %: 25.0 → 75.0, 50.0 points more (95 %")
    assert found["What got worse?"] == ["Nothing that was measured."]


def test_a_loss_is_named_first_and_with_its_size() -> None:
    found = answers(scores(above=10, right=30, sts=70.0), scores(above=30, right=5, sts=69.5))
    assert found["Is it better?"] == ["On some measures: better on 1 of 3, worse on 2."]
    roles, people = found["What got worse?"]
    assert roles.startswith("roles: paraphrase nearer, %: 75.0 → 12.5, 62.5 points less")
    assert people == "agreement with people, STS-B: 70.0 → 69.5, 0.5 points less"


def test_a_difference_within_chance_is_neither_gain_nor_loss() -> None:
    found = answers(scores(above=10), scores(above=11, sts=70.05))
    assert found["Is it better?"] == ["No: none of 3 measures changed beyond chance."]
    assert found["On what?"] == found["What got worse?"] == ["Nothing that was measured."]


def test_the_false_hits_of_a_cache_are_counted_above_what_nine_of_ten_paraphrases_reach() -> None:
    cosines = {"paraphrase": (0.5, *[0.8] * 10), "negation": (0.9, 0.8, 0.79, 0.1)}  # one paraphrase is a miss
    kinds = tuple(
        TransformationCosines(kind=kind, cosine=mean_estimate(x), error_rate=0.0, cosines=x, error_rates=())
        for kind, x in cosines.items()
    )
    found = scores(above=1)
    assert found.transformations is not None
    measured = replace(found, transformations=replace(found.transformations, kinds=kinds))
    (line,) = cache_line({"old": measured})
    assert line.endswith("among negations: old 50 % at cosine 0.80.")
    assert not list(cache_line({"old": found}))


def test_too_few_rows_make_no_claim() -> None:
    few = [replace(scores(above=10), sts=(replace(scores(above=10, sts=sts).sts[0], rows=99),)) for sts in (50, 90)]
    found = compare_outcome({"old": few[0], "new": few[1]})
    assert found.answers()[0][1] == ["No: none of 2 measures changed beyond chance."]
    assert found.remarks[0].endswith("too few rows to say: agreement with people, STS-B: 50.0 → 90.0 (99 rows).")
    bare = [replace(each, transformations=None, triplets=()) for each in few]
    assert answers(bare[0], bare[1])["Is it better?"] == ["Can't say: nothing was measured on enough rows."]


def test_guards_count_from_what_the_strength_may_cost() -> None:
    same = scores(above=10)
    found = answers(same, same, curve=curve(search=(80.0, 79.4), topics=(60.0, 59.7)))
    assert found["Is it better?"] == ["No: worse on 1 of 5 measures, better on none."]
    assert found["What got worse?"] == ["guard search: 80.0 → 79.4, 0.6 points less"]
    within = answers(same, same, curve=curve(search=(80.0, 79.8), topics=(60.0, 60.0)))
    assert within["What got worse?"] == ["No guard by more than 0.3 points: guard search: 80.0 → 79.8"]


def test_the_answers_and_remarks_are_the_first_lines_of_a_report_on_two_models() -> None:
    models = probe_scores("old", NAME)
    page = render(models, outcome=compare_outcome(models, remarks=[f"Remark {NAME}"]))
    body = page[page.index("<body>") :]
    texts = ("Is it better?", "On what?", "What got worse?", "Remark", "Wording or meaning?")
    places = [body.index(text) for text in texts]
    assert places == sorted(places)
    assert body.index("<p") < places[0] < body.index("<p", body.index("<p") + 1), "one small line stands above"
    assert "<b>evil</b>" not in page
    assert "Is it better?" not in render(models)


def test_an_undefined_score_is_left_out() -> None:
    undefined = replace(scores(above=10).sts[0], metrics={"spearman": None})
    found = compare_outcome({"a": replace(scores(above=10), sts=(undefined,)), "b": scores(above=10)})
    assert [each.measure for each in found.changes if "people" in each.measure] == []


def test_the_short_answers_are_three_rows_with_the_largest_changes() -> None:
    same, guards = scores(above=10), {f"guard-{name}": (80.0, 80.0 - drop) for drop, name in enumerate("abcd", 1)}
    table = compare_outcome({"old": same, "new": same}, curve(**guards), ["Embed again."]).table(most=2)
    assert [question for question, _ in table.rows] == ["Is it better?", "On what?", "What got worse?"]
    assert table.rows[2][1] == "guard d: 80.0 → 76.0; guard c: 80.0 → 77.0; 2 more"
    assert table.notes == ("Embed again.",)
