"""Hostile trials of the command line: broken inputs, folders, models and surroundings, and what came of each."""
