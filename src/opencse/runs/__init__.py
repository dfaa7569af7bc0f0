"""A training run apart from what it trains: folder, log, checkpoints, schedule and loop."""
