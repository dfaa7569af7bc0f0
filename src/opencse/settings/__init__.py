"""Typed settings: strict decoding of TOML tables, and the tables that recipes and pre-training share."""

from opencse.settings.optimization import Optimizer, Schedule, Selection, Training

__all__ = ["Optimizer", "Schedule", "Selection", "Training"]
