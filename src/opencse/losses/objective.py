"""The objective: the weighted, named sum of terms."""

from __future__ import annotations

from collections.abc import Sequence
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
        self, embeddings: Embeddings, present: Embeddings, context: Context
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Compute the objective.

        Returns:
            The weighted sum, the unweighted value of each term by name, and what the terms report, as `term/report`.
        """
        outputs: dict[str, LossOutput] = {}
        for term in self.terms:
            weights = outputs[term.weights_from].teacher_weights if term.weights_from else None
            outputs[term.name] = term.compute(embeddings, present, replace(context, teacher_weights=weights))
        values = {name: output.value for name, output in outputs.items()}
        total = torch.stack([term.weight * values[term.name] for term in self.terms]).sum()
        reports = {f"{name}/{key}": report for name in outputs for key, report in outputs[name].reports.items()}
        return total, values, reports

    def gradient_norms(self, values: dict[str, Tensor], embeddings: Embeddings) -> dict[str, Tensor]:
        """Return the gradient norm of each weighted term with respect to the concatenated embeddings.

        Unlike loss values, these norms can be compared between terms. Terms that do not act through the embeddings
        are left out.
        """
        leaves = [e for e in embeddings.values() if e.requires_grad]
        norms = {}
        for term in (term for term in self.terms if term.acts_on_embeddings):
            if not values[term.name].requires_grad:
                norms[term.name] = torch.tensor(0.0)
                continue
            gradients = torch.autograd.grad(
                term.weight * values[term.name], leaves, retain_graph=True, allow_unused=True
            )
            squares = [g.pow(2).sum() for g in gradients if g is not None]
            norms[term.name] = torch.stack(squares).sum().sqrt() if squares else torch.tensor(0.0)
        return norms
