"""Every command as a function: `opencse.run`, `train`, `build`, `evaluate`, `probe`, `compare`, `list_recipes`."""
