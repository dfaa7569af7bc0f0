from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from opencse.losses import Context, Contrastive, Margin, Objective
from tests.losses.checks import draw as related
from tests.reference.contrastive import contrastive, numeric_gradient

N, D = 5, 4
VIEWS = ("anchor", "twin", "negative", "second")


def data(seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    base = random.normal(size=(N, D))
    return {v: base + 0.7 * random.normal(size=(N, D)) for v in VIEWS}


def everything_present() -> dict[str, torch.Tensor]:
    return {v: torch.ones(N, dtype=torch.bool) for v in VIEWS}


def evaluate(term: Contrastive, arrays: dict[str, np.ndarray], present=None) -> tuple[float, dict[str, np.ndarray]]:
    tensors = {v: torch.tensor(a, requires_grad=True) for v, a in arrays.items()}
    loss = term.compute(tensors, present or everything_present(), Context()).value
    loss.backward()
    return loss.item(), {v: np.zeros((N, D)) if t.grad is None else t.grad.numpy() for v, t in tensors.items()}


VARIANTS = {
    "infonce": ({}, {}),
    "temperature": ({"temperature": 0.2}, {"t": 0.2}),
    "hard": ({"negatives": ("negative",)}, {}),
    "two blocks": ({"negatives": ("negative", "second")}, {}),
    "own": ({"negatives": ("negative",), "negative_scope": "own"}, {"own_only": True}),
    "weighted": ({"negatives": ("negative",), "own_negative_weight": 2.5}, {"own_weight": 2.5}),
    "hince": ({"negatives": ("negative",), "negative_temperature": 0.08}, {"t2": 0.08}),
    **{
        f"byop {signs} {size} {'mix' if mix else 'single'} {axis}": (
            {"margin": Margin(signs=signs, size=size, mix=mix, axis=axis, detach=False)},
            {"signs": signs, "m": size, "mix": mix, "by_candidate": axis == "candidate"},
        )
        for signs in ("p+n-", "p-n+", "p+", "p-", "n+", "n-", "p-n-")
        for size in (0.04, "dynamic")
        for mix in (False, True)
        for axis in ("anchor", "candidate")
    },
    "margin and hard": (
        {"margin": Margin(signs="p+n-", size=0.05), "negatives": ("negative",), "negative_temperature": 0.1},
        {"signs": "p+n-", "m": 0.05, "t2": 0.1},
    ),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_value_and_gradient_equal_the_transcription(name: str) -> None:
    settings, reference = VARIANTS[name]
    term = Contrastive(**settings)
    arrays = data()

    def slow(**replaced: np.ndarray) -> float:
        x = arrays | replaced
        return contrastive(x["anchor"], x["twin"], [x[v] for v in term.negatives], **reference)

    loss, gradients = evaluate(term, arrays)
    assert loss == pytest.approx(slow(), rel=1e-10)
    for view in term.views:
        expected = numeric_gradient(lambda x, view=view: slow(**{view: x}), arrays[view])
        np.testing.assert_allclose(gradients[view], expected, atol=2e-6 * (1 + np.abs(expected).max()))


def test_absent_rows_are_left_out_of_every_sum() -> None:
    arrays = data(1)
    has = {
        "anchor": np.array([1, 1, 1, 1, 0], bool),
        "twin": np.array([1, 0, 1, 1, 1], bool),
        "negative": np.array([0, 1, 1, 0, 1], bool),
    }
    present = everything_present() | {v: torch.tensor(h) for v, h in has.items()}
    for view, rows in has.items():
        arrays[view][~rows] = 0  # what the network gives for absent rows
    filled = {v: np.where(has[v][:, None], a, 1.0) if v in has else a for v, a in arrays.items()}
    term = Contrastive(negatives=("negative",), margin=Margin(signs="p+n-", size="dynamic"))
    loss, gradients = evaluate(term, arrays, present)
    expected = contrastive(
        filled["anchor"],
        filled["twin"],
        [filled["negative"]],
        signs="p+n-",
        m="dynamic",
        has_anchor=has["anchor"],
        has_positive=has["twin"],
        has_negative=[has["negative"]],
    )
    assert loss == pytest.approx(expected, rel=1e-10)
    assert all(np.isfinite(g).all() for g in gradients.values())
    assert not gradients["negative"][0].any()


def test_nothing_present_gives_zero_and_a_zero_gradient() -> None:
    present = everything_present() | {"twin": torch.zeros(N, dtype=torch.bool)}
    loss, gradients = evaluate(Contrastive(negatives=("negative",)), data(), present)
    assert loss == 0
    assert not gradients["anchor"].any()


# --- what METHODS of IFM and BYOP come to: only the difference of the signs matters -----------------------------------


def with_margin(signs: str, size: float | str, **more) -> Contrastive:
    return Contrastive(margin=Margin(signs=signs, size=size, **more))


@pytest.mark.parametrize("size", [0.04, "dynamic"])
@pytest.mark.parametrize(
    ("one", "other", "factor"),
    [("p-n-", None, 0), ("p+n+", None, 0), ("p+", "n-", 1), ("p-", "n+", 1)],
)
def test_equivalent_margins_have_equal_losses_and_gradients(one, other, factor, size) -> None:
    arrays = data(2)
    left = evaluate(with_margin(one, size), arrays)
    right = evaluate(with_margin(other, size) if factor else Contrastive(), arrays)
    assert left[0] == pytest.approx(right[0], abs=1e-12)
    for view in ("anchor", "twin"):
        np.testing.assert_allclose(left[1][view], right[1][view], atol=1e-10)


def test_a_margin_on_both_sides_counts_twice() -> None:
    arrays = data(3)
    both, one = evaluate(with_margin("p+n-", 0.03), arrays), evaluate(with_margin("p+", 0.06), arrays)
    assert both[0] == pytest.approx(one[0], abs=1e-12)
    np.testing.assert_allclose(both[1]["anchor"], one[1]["anchor"], atol=1e-10)


def test_along_candidates_the_dynamic_identity_does_not_hold() -> None:
    arrays = data(4)
    plain = evaluate(Contrastive(), arrays)[0]
    assert evaluate(with_margin("p-n-", "dynamic", axis="candidate"), arrays)[0] != pytest.approx(plain, abs=1e-6)
    assert evaluate(with_margin("p-n-", 0.04, axis="candidate"), arrays)[0] == pytest.approx(plain, abs=1e-12)


def test_a_mixed_loss_is_the_mean_of_both() -> None:
    arrays = data(5)
    mixed = evaluate(with_margin("p-n+", 0.1, mix=True), arrays)[0]
    single = evaluate(with_margin("p-n+", 0.1), arrays)[0]
    assert mixed == pytest.approx((single + evaluate(Contrastive(), arrays)[0]) / 2, abs=1e-12)


def test_a_detached_margin_passes_no_gradient() -> None:
    arrays = data(6)
    detached = evaluate(with_margin("p+", "dynamic"), arrays)
    flowing = evaluate(with_margin("p+", "dynamic", detach=False), arrays)
    assert detached[0] == pytest.approx(flowing[0])
    assert np.abs(detached[1]["anchor"] - flowing[1]["anchor"]).max() > 1e-6


@pytest.mark.parametrize(("signs", "effective"), [("p+n-", 2), ("p-n+", -2), ("p+", 1), ("n-", 1), ("p-n-", 0)])
def test_effective_margin(signs: str, effective: int) -> None:
    margin = Margin(signs=signs, size=0.1)
    assert margin.effective == effective
    assert margin.is_identity == (effective == 0)
    assert bool(Contrastive(margin=margin).warnings()) == (effective == 0)


# --- HiNCE's limits ---------------------------------------------------------------------------------------------------


def test_hince_with_a_huge_temperature_adds_a_constant_to_the_denominator() -> None:
    arrays = data(7)
    loss = evaluate(Contrastive(negatives=("negative",), negative_temperature=1e9), arrays)[0]
    unit = {v: a / np.linalg.norm(a, axis=1, keepdims=True) for v, a in arrays.items()}
    scores = unit["anchor"] @ unit["twin"].T / 0.05
    expected = np.mean([math.log(np.exp(scores[i]).sum() + N) - scores[i, i] for i in range(N)])
    assert loss == pytest.approx(expected, rel=1e-7)


def test_hince_with_equal_temperatures_is_infonce_with_hard_negatives() -> None:
    arrays = data(8)
    hince = evaluate(Contrastive(negatives=("negative",), negative_temperature=0.05), arrays)
    plain = evaluate(Contrastive(negatives=("negative",)), arrays)
    assert hince[0] == plain[0]


def test_absent_negatives_leave_infonce() -> None:
    arrays = data(9)
    present = everything_present() | {"negative": torch.zeros(N, dtype=torch.bool)}
    loss = evaluate(Contrastive(negatives=("negative",), negative_temperature=0.1), arrays, present)[0]
    assert loss == pytest.approx(evaluate(Contrastive(), arrays)[0], abs=1e-12)


def test_symmetric_averages_both_directions() -> None:
    arrays = data(10)
    swapped = arrays | {"anchor": arrays["twin"], "twin": arrays["anchor"]}
    both = evaluate(Contrastive(symmetric=True), arrays)[0]
    assert both == pytest.approx((evaluate(Contrastive(), arrays)[0] + evaluate(Contrastive(), swapped)[0]) / 2)


def test_normalise_and_multiply_equals_the_broadcast_cosine() -> None:
    arrays = {v: torch.tensor(a, dtype=torch.float32) for v, a in data(11).items()}
    scores = torch.cosine_similarity(arrays["anchor"][:, None], arrays["twin"][None], dim=-1) / 0.05
    expected = torch.nn.functional.cross_entropy(scores, torch.arange(N))
    loss = Contrastive().compute(arrays, everything_present(), Context()).value
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)


def test_it_reports_what_it_saw() -> None:
    tensors = {v: torch.tensor(a) for v, a in data(13).items()}
    same = tensors | {"twin": tensors["anchor"]}
    reports = Contrastive(negatives=("negative",))(same).reports
    assert reports["accuracy"] == 1
    assert reports["cos_positive"].item() == pytest.approx(1)
    assert "cos_negative" in reports
    _, _, named = Objective([Contrastive()])(same, everything_present(), Context())
    assert named["contrastive/accuracy"] == 1


def test_the_objective_is_the_weighted_sum_with_comparable_gradient_norms() -> None:
    one, two = Contrastive(), Contrastive(name="hard", negatives=("negative",), weight=0.5)
    tensors = {v: torch.tensor(a, requires_grad=True) for v, a in data(14).items()}
    objective = Objective([one, two])
    total, values, _ = objective(tensors, everything_present(), Context())
    assert total.item() == pytest.approx(values["contrastive"].item() + 0.5 * values["hard"].item())
    norms = objective.gradient_norms(values, tensors)
    gradients = torch.autograd.grad(0.5 * values["hard"], [tensors[v] for v in two.views])
    assert norms["hard"].item() == pytest.approx(math.sqrt(sum(g.pow(2).sum().item() for g in gradients)))


def test_each_kind_of_negative_may_have_a_temperature_of_its_own() -> None:
    """SAN Table 5: SAN's negatives beside others."""
    arrays = related(("anchor", "twin", "negative", "second"), rows=N)
    several = Contrastive(negatives=("negative", "second"), negative_temperature=(0.05, 0.1))
    loss = evaluate(several, arrays)[0]
    unit = {view: a / np.linalg.norm(a, axis=1, keepdims=True) for view, a in arrays.items()}
    blocks = [unit["anchor"] @ unit[view].T / t for view, t in (("twin", 0.05), ("negative", 0.05), ("second", 0.1))]
    logits = np.concatenate(blocks, axis=1)
    expected = np.mean(np.log(np.exp(logits).sum(axis=1)) - blocks[0].diagonal())
    assert loss == pytest.approx(expected)
    alike = Contrastive(negatives=("negative", "second"), negative_temperature=(0.08, 0.08))
    same = Contrastive(negatives=("negative", "second"), negative_temperature=0.08)
    assert evaluate(alike, arrays)[0] == pytest.approx(evaluate(same, arrays)[0])
    with pytest.raises(ValueError, match="2 values of negative_temperature, but 1 negatives"):
        Contrastive(negatives=("negative",), negative_temperature=(0.05, 0.1))
