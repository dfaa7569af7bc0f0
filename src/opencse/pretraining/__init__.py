"""Masked language models: training new ones from text, and given ones further on the text of a domain."""

from opencse.pretraining.pretrain import PretrainingRun, pretrain
from opencse.pretraining.settings import Pretraining, load_settings, settings_names

__all__ = ["Pretraining", "PretrainingRun", "load_settings", "pretrain", "settings_names"]
