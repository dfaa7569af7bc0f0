"""Random perturbations: words repeated, deleted or masked, or another sentence altogether."""
