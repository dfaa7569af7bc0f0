"""Every command as a function: `opencse.run`, `train`, `build`, `evaluate`, `probe`, `check`, `compare` and others."""
