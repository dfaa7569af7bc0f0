"""Losses as pure functions of named embeddings: one file per family."""

from opencse.objectives.contrastive import Contrastive
from opencse.objectives.margin import Margin
from opencse.objectives.objective import Objective
from opencse.objectives.term import Context, Embeddings, Term

TERMS: dict[str, type[Term]] = {cls.kind: cls for cls in (Contrastive,)}
"""What a recipe may name as `kind` of a term."""

__all__ = ["TERMS", "Context", "Contrastive", "Embeddings", "Margin", "Objective", "Term"]
