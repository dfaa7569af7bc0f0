"""The parts that every training run shares: folder, log, checkpoints, schedule and loop."""
