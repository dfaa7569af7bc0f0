"""Mining: negatives drawn from the corpus by their embeddings, and positives drawn by the same scores.

| kind | class | draws | source |
|---|---|---|---|
| `debiased_negatives` | `DebiasedNegatives` | sentences in a window of cosines, by surface and meaning | DebCSE §4.1 |
| `debiased_positives` | `DebiasedPositives` | paraphrases of the sentence, by surface and meaning | DebCSE §4.2 |
| `hard_negatives` | `HardNegatives` | the nearest sentences, by rank, window or margin | |
"""

from opencse.text.mined.debiased_negatives import DebiasedNegatives
from opencse.text.mined.debiased_positives import DebiasedPositives
from opencse.text.mined.hard_negatives import HardNegatives

__all__ = ["DebiasedNegatives", "DebiasedPositives", "HardNegatives"]
