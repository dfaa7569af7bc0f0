"""Neighbours of a sentence in its own corpus, as negatives; and the choice of positives by the same weights.

| kind | class | what it makes | source |
|---|---|---|---|
| `debiased_negatives` | `DebiasedNegatives` | a weighted draw from sentences in a window of cosines | DebCSE §4.1 |
| `debiased_positives` | `DebiasedPositives` | a weighted draw from a sentence's own paraphrases | DebCSE §4.2 |
| `hard_negatives` | `HardNegatives` | the nearest sentences, by rank, window or margin | |
"""

from opencse.views.mining.debiased_negatives import DebiasedNegatives
from opencse.views.mining.debiased_positives import DebiasedPositives
from opencse.views.mining.draw_report import DrawReport, draw_report
from opencse.views.mining.hard_negatives import HardNegatives

__all__ = ["DebiasedNegatives", "DebiasedPositives", "DrawReport", "HardNegatives", "draw_report"]
