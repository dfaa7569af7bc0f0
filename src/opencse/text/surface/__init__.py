"""Surface similarity of texts: word alignment, match error rate, lexical overlap, and splits by them.

| measure | source |
|---|---|
| `align` (S, D, I, C), `match_error_rate` | OssCSE eq. 1 |
| `lexical_overlap` | DebCSE Tables 1 and 4 |
| `consistency_opposition` | OssCSE Tables 1 and 2 |
"""

from opencse.text.surface.alignment import Alignment, align
from opencse.text.surface.similarity import Split, consistency_opposition, lexical_overlap, match_error_rate

__all__ = [
    "Alignment",
    "Split",
    "align",
    "consistency_opposition",
    "lexical_overlap",
    "match_error_rate",
]
