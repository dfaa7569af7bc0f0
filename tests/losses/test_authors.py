"""What the author of a loss meets: weights, draws, and messages that name the loss and the fix."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from opencse.foundation.errors import OpencseError
from opencse.losses import DCLRLoss, InfoNCELoss, Loss, LossOutput, NoiseNegatives, Objective

ANCHOR = torch.eye(4, 8)
TWIN = ANCHOR.roll(1, 1)


@dataclass(frozen=True, kw_only=True)
class Given(Loss):
    """A loss that returns what the test gives it."""

    kind = "given"
    views = ("anchor", "twin")
    output: object = None

    def compute(self, embeddings, present, context):
        return self.output


def test_the_weight_counts_in_a_call_as_in_the_objective() -> None:
    one = InfoNCELoss(temperature=0.5)
    half = InfoNCELoss(temperature=0.5, weight=0.5)
    expected = 0.5 * one(ANCHOR, TWIN).value
    assert half(ANCHOR, TWIN).value == expected
    total, values, _ = Objective([half])({"anchor": ANCHOR, "twin": TWIN})
    assert total == expected
    assert values["info_nce"] == one(ANCHOR, TWIN).value


def test_a_loss_that_draws_draws_anew_at_each_step() -> None:
    loss = DCLRLoss(noise=NoiseNegatives())
    first = loss(ANCHOR, TWIN, step=0).value
    assert loss(ANCHOR, TWIN, step=0).value == first
    assert loss(ANCHOR, TWIN, step=1).value != first


@pytest.mark.parametrize(
    ("output", "fix"),
    [
        (torch.ones(()), r"loss 'given': compute returned .* Return LossOutput"),
        (
            LossOutput(torch.ones(4)),
            r"loss 'given': the value is a tensor of shape \(4,\).* Average",
        ),
        (
            LossOutput(torch.ones(()), {"accuracy": 0.5}),
            r"loss 'given': the report 'accuracy'.*float",
        ),
    ],
)
def test_a_wrong_output_names_the_loss_and_the_fix(output, fix) -> None:
    with pytest.raises(OpencseError, match=fix):
        Given(output=output)(ANCHOR, TWIN)
    with pytest.raises(OpencseError, match=fix):
        Objective([Given(output=output)])({"anchor": ANCHOR, "twin": TWIN})


def test_views_of_different_lengths_are_named() -> None:
    with pytest.raises(ValueError, match=r"loss 'info_nce': .*anchor 4, twin 3"):
        InfoNCELoss()(ANCHOR, TWIN[:3])


def test_a_class_without_its_decorator_or_kind_is_named() -> None:
    class Bare(Loss):
        kind = "bare"
        sharpness: float = 2.0

    with pytest.raises(OpencseError, match=r"Bare has the setting 'sharpness'.* @dataclass"):
        Bare(sharpness=1.0)

    class Nameless(Loss):
        pass

    with pytest.raises(OpencseError, match="Nameless has no kind"):
        Nameless()
