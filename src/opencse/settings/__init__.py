"""Typed settings: strict decoding of TOML tables, and the tables on training in recipes."""

from opencse.settings.optimization import Optimizer, Schedule, Selection, Training

__all__ = ["Optimizer", "Schedule", "Selection", "Training"]
