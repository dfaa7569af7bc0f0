"""Perturbations: words deleted or masked at random, and other sentences of the corpus."""
