"""The losses of the meaning block against a literal transcription."""

import math

import numpy as np
import pytest
import torch
from block_losses import GROUP, BlockLoss, relations, sharpening_loss

ROWS = [
    ("text", "same_paraphrase", "same_negation", "same_antonym", "number", "related_1"),
    ("text", "paraphrase", "negation", "negated_paraphrase", "swapped"),
    ("text", "question"),
]
TEXTS = [(row, name) for row, names in enumerate(ROWS) for name in names]


def relation(one, other):
    """How two texts are related, as the page says it."""
    if one[0] != other[0]:
        return "generic"
    names = {one[1], other[1]}
    if names & {"related_1", "question"}:
        return "related"
    same = {"text", "same_paraphrase", "paraphrase"}
    if names <= same or names in ({"same_negation", "same_antonym"}, {"negation", "negated_paraphrase"}):
        return "same"
    if names & same and names & {"same_negation", "same_antonym", "negation", "negated_paraphrase"}:
        return "opposed"
    if names & same and names & {"number", "swapped"}:
        return "exchanged"
    return None


def given():
    row = torch.tensor([row for row, _ in TEXTS])
    return relations(row, torch.tensor([GROUP[name] for _, name in TEXTS]))


def unit(rng, width):
    x = rng.normal(size=(len(TEXTS), width))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def test_relations_are_those_of_the_columns():
    found = given()
    for i, one in enumerate(TEXTS):
        for j, other in enumerate(TEXTS):
            held = [name for name, matrix in vars(found).items() if matrix[i, j]]
            expected = None if i == j else relation(one, other)
            assert held == ([expected] if expected else []), (one, other)


def test_equals_a_literal_transcription():
    rng = np.random.default_rng(0)
    e, code, z = unit(rng, 6), unit(rng, 3), unit(rng, 5)
    e = np.abs(e)
    loss = BlockLoss()
    values, signs = {name: [] for name in ("generic", "related", "same", "opposed", "exchanged", "ranking")}, []
    codes = {"same": [], "opposed": []}

    def cosine(i, j):
        return (e[i] @ e[j] + loss.strength**2 * z[i] @ z[j]) / (1 + loss.strength**2)

    for i, one in enumerate(TEXTS):
        for j, other in enumerate(TEXTS):
            kind = None if i == j else relation(one, other)
            c, g, agreement = e[i] @ e[j], z[i] @ z[j], code[i] @ code[j]
            if kind in ("generic", "related"):
                values[kind].append((g - max(c, 0) ** 4) ** 2)
            elif kind == "same":
                values[kind].append(max(0, 0.8 - g) ** 2)
                for k, third in enumerate(TEXTS):
                    if k != i and relation(one, third) in ("opposed", "exchanged"):
                        values["ranking"].append(max(0, 0.15 + cosine(i, k) - cosine(i, j)))
            elif kind == "opposed":
                values[kind].append(max(0, g + 0.7) ** 2)
            elif kind == "exchanged":
                values[kind].append(max(0, g) ** 2)
            if kind in codes:
                codes[kind].append(math.log1p(math.exp((-5 if kind == "same" else 5) * agreement)))
            if kind in ("same", "opposed"):
                signs.append((agreement > 0) == (kind == "same"))
    means = {name: np.mean(some) for name, some in values.items()}
    means["code"] = (np.mean(codes["same"]) + np.mean(codes["opposed"])) / 2
    weights = {"generic": 40, "related": 40, "same": 3, "opposed": 3, "exchanged": 1, "ranking": 4, "code": 1}
    got, reports = loss(torch.tensor(e), torch.tensor(code), torch.tensor(z), given())
    assert float(got) == pytest.approx(sum(weights[name] * means[name] for name in means))
    for name, mean in means.items():
        assert reports[name] == pytest.approx(mean), name
    assert reports["right"] == pytest.approx(np.mean(signs))


def test_gradients_are_finite_where_a_relation_is_missing():
    z = torch.nn.functional.normalize(torch.randn(3, 4), dim=-1).requires_grad_()
    related = relations(torch.tensor([0, 1, 2]), torch.tensor([0, 0, 0]))
    BlockLoss()(z.detach(), z, z, related)[0].backward()
    assert torch.isfinite(z.grad).all()


def test_sharpening_loss_counts_near_pairs_again():
    rng = np.random.default_rng(1)
    e, topic = np.abs(unit(rng, 5)), unit(rng, 4)
    far, near = [], []
    for i in range(len(e)):
        for j in range(len(e)):
            if i != j:
                far.append((topic[i] @ topic[j] - (e[i] @ e[j]) ** 4) ** 2)
                if e[i] @ e[j] > 0.4:
                    near.append(far[-1])
    expected = np.mean(far) + 0.2 * np.mean(near)
    assert float(sharpening_loss(torch.tensor(topic), torch.tensor(e), 4.0)) == pytest.approx(expected)
