"""Negation by SNCSE's published rules, token by token, with their weaknesses.

Rules: a "not" is deleted; else "not" follows the first auxiliary before the root; else by the root: after be and
modals, "do/does/did not" with the lemma by its tag, or "Not" before everything. Tokens are joined by single spaces;
"n't" and "never" are not recognised. The published rules assume spaCy's English scheme, in which a copula is the root;
with Universal Dependencies the copula is treated as the root.
"""

from __future__ import annotations

from collections.abc import Sequence

from opencse.text.syntax.tokens import Token

_AUXILIARY = ("aux", "auxpass", "aux:pass")
_DIRECT = "am is was are were can could will would shall should may must might".split()
_SUPPORT = {"VBP": "do", "VBZ": "does", "VBD": "did"}


def sncse_negate(tokens: Sequence[Token]) -> tuple[str | None, str]:
    """Return SNCSE's soft negative of a sentence and its rule; None only for an empty sentence."""
    words = [token.text for token in tokens]
    if not words:
        return None, "empty"
    if "not" in words:
        words.remove("not")
        return " ".join(words), "faithful not removed"
    root = next((i for i, token in enumerate(tokens) if token.head == i), 0)
    root = next((i for i, token in enumerate(tokens) if token.head == root and token.relation == "cop"), root)
    for i in range(root):
        if tokens[i].relation in _AUXILIARY:
            return " ".join([*words[: i + 1], "not", *words[i + 1 :]]), "faithful auxiliary"
    if words[root] in _DIRECT:
        return " ".join([*words[: root + 1], "not", *words[root + 1 :]]), "faithful copula"
    if tokens[root].tag in _SUPPORT:
        support = [_SUPPORT[tokens[root].tag], "not", tokens[root].lemma]
        return " ".join([*words[:root], *support, *words[root + 1 :]]), f"faithful do-support {tokens[root].tag}"
    return " ".join(["Not", *words]), "faithful prefix"
