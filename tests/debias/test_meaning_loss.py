"""The losses of the meaning block against a literal transcription."""

import math

import numpy as np
import pytest
import torch

from opencse.debias.meaning_loss import MeaningLoss, relations

LOSS = MeaningLoss(
    same=("text", "same_paraphrase", "paraphrase"),
    opposed=(("negation", "negated_paraphrase"), ("same_negation", "same_antonym")),
    exchanged=("number", "swapped"),
    related=("related_1",),
    queries=("question",),
)
GROUP = {view: number for number, views in enumerate((LOSS.same, *LOSS.opposed)) for view in views}
GROUP |= dict.fromkeys(LOSS.exchanged, -1) | dict.fromkeys(LOSS.related, -2)
GROUP |= dict.fromkeys(LOSS.queries, -3)
ROWS = [
    ("text", "same_paraphrase", "same_negation", "same_antonym", "number", "related_1"),
    ("text", "paraphrase", "negation", "negated_paraphrase", "swapped"),
    ("text", "question"),
]
WEIGHTS = {
    "far": 30,
    "near": 60,
    "related": 30,
    "same": 3,
    "opposed": 3,
    "exchanged": 4,
    "ranking": 6,
    "code": 1,
}
WEIGHTS |= {"topic": 1, "sharpness": 10, "search": 0.7}
RELATIONS = ("same", "opposed", "exchanged", "related", "generic")
TEXTS = [(row, name) for row, names in enumerate(ROWS) for name in names]


def relation(one, other):
    """How two texts are related, as the page says it."""
    if one[0] != other[0]:
        return "generic"
    names = {one[1], other[1]}
    if names & {"related_1", "question"}:
        return "related"
    same = {"text", "same_paraphrase", "paraphrase"}
    if names <= same or names in (
        {"same_negation", "same_antonym"},
        {"negation", "negated_paraphrase"},
    ):
        return "same"
    if names & same and names & {"same_negation", "same_antonym", "negation", "negated_paraphrase"}:
        return "opposed"
    if names & same and names & {"number", "swapped"}:
        return "exchanged"
    return None


def given():
    row = torch.tensor([row for row, _ in TEXTS])
    return relations(row, torch.tensor([GROUP[name] for _, name in TEXTS]))


def f(c):
    return 0.45 * c + 0.55 * max(c, 0) ** 6


def unit(rng, width):
    x = rng.normal(size=(len(TEXTS), width))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_relations_are_those_of_the_columns():
    found = given()
    some = {name: getattr(found, name) for name in RELATIONS} | {
        "generic": found.generic.nonzero(as_tuple=True)
    }
    pairs = {
        name: set(zip(*(each.tolist() for each in some[name]), strict=True)) for name in RELATIONS
    }
    for i, one in enumerate(TEXTS):
        for j, other in enumerate(TEXTS):
            held = [name for name in RELATIONS if (i, j) in pairs[name]]
            expected = None if i == j else relation(one, other)
            assert held == ([expected] if expected else []), (one, other)


def test_equals_a_literal_transcription():
    rng = np.random.default_rng(0)
    e, code, z, topic = unit(rng, 4), unit(rng, 3), unit(rng, 4), unit(rng, 2)
    e, topic = np.abs(e), np.abs(topic)
    values = {name: [] for name in WEIGHTS}
    codes, topics, signs = {"same": [], "opposed": []}, {"same": [], "opposed": []}, []
    unsharp = {"far": [], "near": []}

    def cosine(i, j):
        return (e[i] @ e[j] + 0.5**2 * z[i] @ z[j]) / (1 + 0.5**2)

    for i, one in enumerate(TEXTS):
        for j, other in enumerate(TEXTS):
            kind = None if i == j else relation(one, other)
            c, g, agreement = e[i] @ e[j], z[i] @ z[j], code[i] @ code[j]
            if kind == "generic" and c < 0.9:
                values["far" if c <= 0.3 else "near"].append((g - f(c)) ** 2)
                unsharp["far" if c <= 0.3 else "near"].append((topic[i] @ topic[j] - f(c)) ** 2)
            elif kind == "related":
                values["related"].append((g - f(c)) ** 2)
                if one[1] == "question" and other[1] in ("text", "same_paraphrase", "paraphrase"):
                    others = [
                        k
                        for k, third in enumerate(TEXTS)
                        if third[0] != one[0] and e[i] @ e[k] < 0.9
                    ]
                    shares = [math.exp(cosine(i, k) / 0.05) for k in (j, *others)]
                    values["search"].append(-math.log(shares[0] / sum(shares)))
            elif kind == "same":
                values["same"].append(max(0, min(0.85, c + 0.5) - g) ** 2)
                for k, third in enumerate(TEXTS):
                    if k != i and relation(one, third) in ("opposed", "exchanged"):
                        values["ranking"].append(
                            0.05 * math.log1p(math.exp((0.12 + cosine(i, k) - cosine(i, j)) / 0.05))
                        )
            elif kind == "opposed":
                values["opposed"].append(max(0, g + 0.8) ** 2)
            elif kind == "exchanged":
                values["exchanged"].append(max(0, g) ** 2)
            if kind in codes:
                codes[kind].append(math.log1p(math.exp((-5 if kind == "same" else 5) * agreement)))
                least = min(0.9, c + (0.25 if kind == "same" else 0.15))
                topics[kind].append(max(0, least - topic[i] @ topic[j]) ** 2)
                signs.append((agreement > 0) == (kind == "same"))
    means = {name: np.mean(some) for name, some in values.items() if some}
    assert {"far", "near"} & set(means)
    means["code"] = (np.mean(codes["same"]) + np.mean(codes["opposed"])) / 2
    means["topic"] = np.mean(topics["same"]) + np.mean(topics["opposed"])
    means["sharpness"] = sum(np.mean(some) for some in unsharp.values() if some)
    total = sum(WEIGHTS[name] * means[name] for name in means)
    got = LOSS.of_vectors(*map(torch.tensor, (e, z, code, topic)), given())
    assert float(got.value) == pytest.approx(total)
    for name, mean in means.items():
        assert float(got.reports[name]) == pytest.approx(mean), name
    assert float(got.reports["right"]) == pytest.approx(np.mean(signs))

    # The same from the vectors of an encoder: e, βz, code and φ by view, padded; zero where a row
    # lacks it.
    whole = {view: np.zeros((len(ROWS), 16)) for view in LOSS.views}
    present = {view: torch.tensor([view in names for names in ROWS]) for view in LOSS.views}
    for i, (row, view) in enumerate(TEXTS):
        whole[view][row] = [*3 * e[i], *0.4 * z[i], *code[i], 0, *topic[i], 0, 0]
    vectors = {view: torch.tensor(each) for view, each in whole.items()}
    assert float(LOSS(vectors, present=present).value) == pytest.approx(total)


def test_gradients_are_finite_where_a_relation_is_missing():
    z = torch.nn.functional.normalize(torch.randn(3, 4), dim=-1).requires_grad_()
    related = relations(torch.tensor([0, 1, 2]), torch.tensor([0, 0, 0]))
    LOSS.of_vectors(z.detach(), z, z, z, related).value.backward()
    assert torch.isfinite(z.grad).all()
