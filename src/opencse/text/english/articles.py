"""The English indefinite article: *a* or *an* by the sound of the next word, and its correction after a replacement."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opencse.text.syntax import Token
from opencse.text.views.text_edits import Edit, match_case

# Words that are written with a vowel letter and spoken with a consonant: "one" (w) and long u (y).
_SPOKEN_CONSONANT = re.compile(
    r"eu|ewe|once\b|one(?:s|self|ness|time)?\b|ouija|u(?:"
    r"ni(?!n|m|de|dio|rr|ss)"  # union, unique; but unintended, unimportant, unidentified
    r"|nanim|s[aeiu]|t[aeio]|r[aeiou]|ga|k[ru]|biq|ly|vu|fo\b)",  # useful, utility, uranium, Uganda, Ukraine
    re.IGNORECASE,
)
_SILENT_H = re.compile(r"hour|honou?r|honest|heir", re.IGNORECASE)
_SPELLED_LETTER = re.compile(r"[AEFHILMNORSX](?![A-Za-z])|[FHLMNRSX][B-DF-HJ-NP-TV-XZ]+(?![a-z])")  # X-ray, MP, NBC
_SPELLED_U = re.compile(r"U(?:[A-Z]{1,2})?(?![A-Za-z])")  # U-turn, UN, USA
_NUMERAL = re.compile(r"\d[\d,]*")


def indefinite_article(word: str) -> str:
    """Return "a" or "an", whichever stands before a word or a numeral in speech.

    The rule goes by sound as far as spelling tells: "an hour", "a union", "an MP", "an 1850 map", "a 180-page book".

    Args:
        word: The next word as it is written.
    """
    if numeral := _NUMERAL.match(word):
        return "an" if _begins_with_a_vowel(numeral[0]) else "a"
    if _SPELLED_LETTER.match(word):
        return "an"
    if _SPELLED_U.match(word) or _SPOKEN_CONSONANT.match(word):
        return "a"
    return "an" if word[:1].lower() in ("a", "e", "i", "o", "u") or _SILENT_H.match(word) else "a"


def _begins_with_a_vowel(numeral: str) -> bool:
    """Whether a numeral is spoken with "eight", "eleven" or "eighteen" at its beginning."""
    digits = numeral.replace(",", "")
    if digits[0] == "8":
        return True
    hundreds = len(digits) == 4 and "," not in numeral  # a year: "eighteen hundred and fifty"
    return digits[:2] in ("11", "18") and (len(digits) % 3 == 2 or hundreds)


def article_edits(text: str, tokens: Sequence[Token], place: int, word: str) -> list[Edit]:
    """Return the edit that corrects "a" or "an" before a token that a word replaces; none if it fits."""
    before = tokens[place - 1] if place else None
    if before is None or before.text.lower() not in ("a", "an"):
        return []
    if text[before.end : tokens[place].start].strip():  # a bracket stands between them
        return []
    article = indefinite_article(word)
    return [] if article == before.text.lower() else [(before.start, before.end, match_case(article, before.text))]
