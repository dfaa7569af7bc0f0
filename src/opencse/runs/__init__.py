"""What every training run shares: its folder, log, checkpoints, schedule and loop."""
