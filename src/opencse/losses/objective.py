"""The objective: the weighted, named sum of terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from opencse.losses.term import Context, Embeddings, LossOutput, Term


class Objective:
    """The weighted sum of terms, whose values are logged by name.

    Args:
        terms: The terms, with distinct names.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)

    def __call__(
        self,
        embeddings: Embeddings,
        present: Embeddings,
        context: Context,
        truncated: Mapping[int, tuple[float, Embeddings]] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Compute the objective.

        Args:
            embeddings: As for `Term.compute`.
            present: As for `Term.compute`.
            context: As for `Term.compute`.
            truncated: Weight and embeddings by number of dimensions, the largest first. A term that compares embeddings
                is then its weighted sum over these (Matryoshka representation learning, Kusupati et al., 2022).

        Returns:
            The weighted sum, the unweighted value of each term by name, and what the terms report, as `term/report`.
        """
        outputs: dict[str, LossOutput] = {}
        for term in self.terms:
            weights = outputs[term.weights_from].teacher_weights if term.weights_from else None
            given = replace(context, teacher_weights=weights)
            if truncated and term.compares_embeddings:
                outputs[term.name] = _at_each_dimension(term, truncated, present, given)
            else:
                outputs[term.name] = term.compute(embeddings, present, given)
        values = {name: output.value for name, output in outputs.items()}
        total = torch.stack([term.weight * values[term.name] for term in self.terms]).sum()
        reports = {f"{name}/{key}": report for name in outputs for key, report in outputs[name].reports.items()}
        return total, values, reports


def _at_each_dimension(
    term: Term, truncated: Mapping[int, tuple[float, Embeddings]], present: Embeddings, context: Context
) -> LossOutput:
    """Return the weighted sum of a term; what it reports and the weights of its teachers are those of the first."""
    outputs: list[LossOutput] = []
    for size, (_, embeddings) in truncated.items():
        if outputs:
            context = replace(context, repeated=True, teacher_weights=outputs[0].teacher_weights)
        outputs.append(term.compute(embeddings, present, replace(context, dimension=size)))
    values = {size: output.value for size, output in zip(truncated, outputs, strict=True)}
    total = torch.stack([weight * values[size] for size, (weight, _) in truncated.items()]).sum()
    reports = {f"loss_{size}": value.detach() for size, value in values.items()}
    return replace(outputs[0], value=total, reports={**outputs[0].reports, **reports})
