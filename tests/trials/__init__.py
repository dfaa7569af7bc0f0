"""Hostile trials of the command line: odd surroundings and kills, and what came of each."""
