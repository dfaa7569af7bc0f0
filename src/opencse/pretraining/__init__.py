"""Pre-training of masked language models: new ones, and further training on the text of a domain."""

from opencse.pretraining.pretrain import PretrainingRun, pretrain
from opencse.pretraining.settings import Pretraining, load_settings, settings_names

__all__ = ["Pretraining", "PretrainingRun", "load_settings", "pretrain", "settings_names"]
