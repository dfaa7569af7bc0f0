from __future__ import annotations

import numpy as np

from opencse.evaluation import TextEmbeddings
from opencse.evaluation.probes import ProbeSuite, load_probe_data
from opencse.evaluation.probes.probe_suite import TripletProbe, antonym_choices


def test_quadruples_are_two_sentences_and_their_negations() -> None:
    forms = antonym_choices()
    assert {form: len(rows) for form, rows in forms.items()} == {"affirmed": 160, "negated": 160, "verbs": 40}
    first, second = forms["affirmed"][:2]
    assert (first[0], first[3]) == ("The soup is hot.", "The soup is cold.")
    assert first[1] in ("The soup isn't cold.", "The soup is not cold.")
    assert second[1] == forms["negated"][0][0] == first[2]


def measured(vector) -> list[float]:
    probe = TripletProbe([], negated_antonyms=True)
    texts = list(dict.fromkeys(probe.texts()))
    (result,) = probe.measure(TextEmbeddings(texts, np.array([vector(text) for text in texts], dtype=np.float32)))
    assert [*result.groups] == ["form: affirmed", "form: negated", "form: verbs"]
    return [result.accuracy.value, *(group.value for group in result.groups.values())]


def test_meaning_is_right_and_wording_is_wrong() -> None:
    rows = [row for form in antonym_choices().values() for row in form]
    meaning = {text: min(row[:2]) for row in rows for text in row[:2]}
    number = {name: i for i, name in enumerate(sorted(set(meaning.values())))}
    assert measured(lambda text: np.eye(len(number))[number[meaning[text]]]) == [1.0] * 4
    words = sorted({word for text in meaning for word in text.split()})
    assert max(measured(lambda text: np.isin(words, text.split()).astype(float))) < 0.1
    assert measured(lambda text: [1.0, 0.0]) == [0.0] * 4, "a tie is not right"


def test_the_probe_of_the_package_includes_them() -> None:
    suite = ProbeSuite(load_probe_data())
    assert "The soup is cold." in suite.texts
    scores = suite(lambda texts: np.random.default_rng(0).normal(size=(len(texts), 16)))
    assert scores.triplets[-1].name == "negated antonyms"
    assert 0.2 < scores.triplets[-1].accuracy.value < 0.5
