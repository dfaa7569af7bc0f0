"""English words: the lists from `assets/lexicon`, inflected verbs, and the choice of *a* or *an*.

`antonyms.tsv` has every antonym of Open English WordNet, in one sense of a word. The other lists
were written for this project: `opposites.tsv` has one opposite that holds in nearly every context,
`affixes.tsv` stems of opposites by a negative prefix or by -ful and -less, `particles.tsv` verbs
with a particle, and `collocations.tsv` verbs whose opposite depends on the object. `classes.tsv`,
`contexts.tsv` (where a word has its opposite), `infinitives.tsv`, `irregular_verbs.tsv`,
`negative_words.tsv` and `topic_questions.tsv` belong to the rules and change with the code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from opencse.text.syntax import Edit, Token, match_case

LexiconTable = str | Traversable
"""The name of a bundled word list, or the file of one that a language pack brings."""
OPPOSITE_TABLES: tuple[LexiconTable, ...] = (
    "opposites",
    "antonyms",
    "affixes",
    "particles",
    "collocations",
)
"""The lists from which opposites are found."""

_PREFIX = re.compile(r"(?:un|in|im|il|ir|dis|a)(?=...)")


@dataclass(frozen=True, kw_only=True)
class OpposedVerb:
    """The opposite of a verb in a certain construction.

    Attributes:
        opposite: Base of the opposite, perhaps with a particle ("take off").
        objects: The nouns that it needs as object or passive subject. With particles also "yes" for
            every noun, "no" for none, or "any" for both.
        complementary: See `is_complementary`.
    """

    opposite: str
    objects: frozenset[str]
    complementary: bool


def lexicon_bytes(*tables: LexiconTable) -> bytes:
    """Return the bytes of some word lists, one after another: what the output depends on."""
    folder = files("opencse") / "assets" / "lexicon"
    contents = []
    for table in tables:
        path = folder / f"{table}.tsv" if isinstance(table, str) else table
        contents.append(path.read_bytes())
    return b"".join(contents)


def lexicon_rows(table: LexiconTable) -> list[list[str]]:
    """Return the cells of a word list, without its header."""
    _, _, rows = lexicon_bytes(table).decode().partition("\n")
    return [line.split("\t") for line in rows.split("\n") if line]


@cache
def _word_classes() -> dict[str, frozenset[str]]:
    return {name: frozenset(words.split()) for name, words in lexicon_rows("classes")}


def word_class(name: str) -> frozenset[str]:
    """Return the words of one class of `classes.tsv`."""
    return _word_classes()[name]


SYMMETRIC_VERBS = word_class("symmetric verbs")
"""Verbs whose subject and object can be exchanged: "A meets B", "A equals B"."""
ACTORS = word_class("actors")
"""Nouns for persons, groups of persons and animals, which can be the subject of any action."""


@cache
def opposites() -> dict[tuple[str, str], str]:
    """Return one opposite by word and part of speech ("ADJ", "ADV", "NOUN", "VERB" or "ADP").

    The pairs of `opposites.tsv` come first, then those of `affixes.tsv`. WordNet adds those pairs
    of which one word is the other with a negative prefix ("stable", "unstable"): its other pairs
    are opposites in one sense of many ("second", "first", but "a second later"). Prefixed pairs
    with too many senses are left out.
    """
    table = {(word, pos): opposite for word, opposite, pos, _ in lexicon_rows("opposites")}
    for affix, pos, stems in lexicon_rows("affixes"):
        for stem in stems.split():
            plain, negative = affixed(affix, stem)
            table.setdefault((plain, pos), negative)
            table.setdefault((negative, pos), plain)
    for word, opposite, pos in lexicon_rows("antonyms"):
        longer, shorter = sorted((word, opposite), key=len, reverse=True)
        prefix = _PREFIX.match(longer)
        if prefix is None or longer[prefix.end() :] != shorter or longer.endswith("ed"):
            continue
        if not {word, opposite} & word_class("not opposite"):
            table.setdefault((word, pos), opposite)
    return table


def affixed(affix: str, stem: str) -> tuple[str, str]:
    """Return the plain and the negative word of a stem, such as ("possible", "impossible").

    Args:
        affix: A prefix, or "less"; "in" becomes "im", "il" or "ir" if the stem's first letter
            requires it.
        stem: A word, without "-ful" if the affix is "less".
    """
    if affix == "less":
        return stem + "ful", stem + "less"
    if affix == "in":
        affix = {"b": "im", "m": "im", "p": "im", "l": "il", "r": "ir"}.get(stem[0], "in")
    return stem, affix + stem


@cache
def _complementary() -> dict[tuple[str, str], bool]:
    return {(word, pos): marked == "yes" for word, _, pos, marked in lexicon_rows("opposites")}


def is_complementary(word: str, pos: str) -> bool:
    """Return whether the negated opposite of a word means the same: "not rejected", "accepted".

    Scales and changes leave a third possibility ("did not fall" is not "rose"). Predicate
    adjectives count as complementary ("is not cold" for "is hot") unless they are comparatives or
    name one of several possibilities.

    Args:
        word: A word in its base form.
        pos: Its part of speech, as in `opposites`.
    """
    return _complementary().get((word, pos), pos == "ADJ")


@cache
def opposed_phrases(table: str) -> dict[str, tuple[OpposedVerb, ...]]:
    """Return the opposites of the phrases in a table: by verb and particle, or by verb."""
    entries: dict[str, tuple[OpposedVerb, ...]] = {}
    for phrase, opposite, objects, marked in lexicon_rows(table):
        entry = OpposedVerb(
            opposite=opposite, objects=frozenset(objects.split()), complementary=marked == "yes"
        )
        entries[phrase] = (*entries.get(phrase, ()), entry)
    return entries


@cache
def names() -> dict[str, str]:
    """Return the kind of each name ("country", "city", "man", "month", …) by name."""
    return dict(lexicon_rows("names"))


_PRESENT = {"be": "is", "have": "has"}
# Ends of stems that lost an e before "-ed": "creat", "decid", "includ", "handl".
_SILENT_E = re.compile(
    r"(?:[cuvz]|[bcdfgkptz]l|[^a]ul|[^aeiou]at|[iu]at|creat|[^o]id|[^a]ud|[^o]od|[vr]ad|ced|ut|plet|delet|mpet|[vnc]it"
    r"|radit|pedit|[mvn]ot|quot|[^o]ok|[^e]ar|[^aeo]ur|[^ae]ir|plor|stor|gnor|[do]her|[^aeou]in|pon|um|nam|elcom|cap|scrib"
    r"|[cf]il|yl|yp|[aeiourd]g|[aelpu]ng(?<!long)|ulg|[^s]s(?<!ocus)|[wtp]ast|e)$"
)


@cache
def _irregular() -> tuple[dict[str, tuple[list[str], list[str]]], dict[str, str]]:
    """Return (pasts, participles) by base, and the base by form."""
    # Alternatives stand after a slash, the more frequent form first.
    rows = lexicon_rows("irregular_verbs")
    forms = {base: (past.split("/"), participle.split("/")) for base, past, participle in rows}
    bases: dict[str, str] = {}
    for base, (pasts, participles) in forms.items():
        for form in pasts + participles:
            if form != base:
                bases.setdefault(form, base)
    return forms, bases


def third_person(base: str) -> str:
    """Return the present tense after he, she, it: "go" becomes "goes"."""
    if base in _PRESENT:
        return _PRESENT[base]
    if re.search(r"(?:s|x|z|ch|sh|[^aeiou]o)$", base):
        return base + ("zes" if re.search(r"[^aeiouz][aeiou]z$", base) else "es")
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ies"
    return base + "s"


def _doubles(base: str) -> bool:
    """Return whether a final consonant doubles before -ed.

    It does after one syllable, or if the last one is probably stressed.
    """
    if not re.search(r"[^aeiou][aeiou][bdgklmnprt]$|qu[aeiou][bdgklmnprtz]$", base):
        return False
    syllables = len(re.findall(r"[aeiouy]+", base))
    stressed = re.search(
        r"(?:(?<!of)(?<!suf)(?<!dif)fer|cur|(?<!li)(?<!vo)mit|pel|trol|gret|quip|bed|zip|kidnap|gram"
        r"|acquit|outwit|begin|for(?:get|bid)|(?:up|re|in|off)set|(?:out|re|over)run|cut|win|deter|abhor|allot|rebut|un(?:wrap|plug|pin))$",
        base,
    )
    return syllables == 1 or bool(stressed)


def past(base: str) -> str:
    """Return the past tense: "sing" becomes "sang"; "was" for "be"."""
    irregular, _ = _irregular()
    if base in irregular:
        pasts, _ = irregular[base]
        return pasts[0]
    return _with_ed(base)


def participle(base: str) -> str:
    """Return the past participle: "sing" becomes "sung"."""
    irregular, _ = _irregular()
    if base in irregular:
        _, participles = irregular[base]
        return participles[0]
    return _with_ed(base)


def _with_ed(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ied"
    if re.search(r"[aeiou]c$", base):
        return base + "ked"
    if _doubles(base):
        return base + base[-1] + "ed"
    return base + "ed"


def gerund(base: str) -> str:
    """Return the -ing form: "lie" becomes "lying"."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith(("ee", "oe", "ye")) and base != "be":
        return base[:-1] + "ing"
    if re.search(r"[aeiou]c$", base):
        return base + "king"
    if _doubles(base):
        return base + base[-1] + "ing"
    return base + "ing"


def inflect(base: str, tag: str) -> str:
    """Return the form of a verb for a Penn Treebank tag (VB, VBP, VBZ, VBD, VBN, VBG)."""
    if (base, tag) == ("be", "VBP"):
        return "are"
    makers = {"VBZ": third_person, "VBD": past, "VBN": participle, "VBG": gerund}
    if tag not in makers:
        return base
    return makers[tag](base)


def base_form(form: str, tag: str, guess: str = "") -> str:
    """Return the base of a finite form, in lower case.

    Args:
        form: The form.
        tag: Its Penn Treebank tag (VBZ, VBP, VBD or VBN).
        guess: Lemma by a lemmatizer; it decides if a form has several bases ("lay" of "lie" and
            "lay").
    """
    form = form.lower()
    guess = guess.lower()
    if tag in ("VB", "VBP"):
        return {"are": "be", "am": "be", "'re": "be", "'m": "be", "'ve": "have"}.get(form, form)
    if tag == "VBZ":
        return _base_of_third_person(form, guess)
    forms, bases = _irregular()
    if guess in forms and form in forms[guess][0] + forms[guess][1]:
        return guess
    if form in bases:
        return bases[form]
    if form in forms:
        # put, set, cut
        return form
    return _base_of_ed(form)


def verb_base(verb: Token) -> str:
    """Return the base of a verb in any form."""
    if verb.tag == "VBG":
        return verb.lemma.lower()
    return base_form(verb.text, verb.tag, verb.lemma)


_PAST_IN_EED = ("agreed", "disagreed", "freed", "decreed", "guaranteed", "refereed")


def is_past(form: str) -> bool:
    """Return whether a form can be a past tense: "sang", "put", but not "sung" or "need"."""
    form = form.lower()
    forms, bases = _irregular()
    base = bases.get(form, form)
    if base in forms:
        return form in forms[base][0] or (form == base and base in forms[base][0])
    return form in _PAST_IN_EED or (form.endswith("ed") and not form.endswith(("eed", "embed")))


# Ends like a participle, and is none.
_NO_PARTICIPLES = frozenset("bed embed hundred kindred naked red sacred shed sled".split())


def is_participle(form: str) -> bool:
    """Return whether a form can be a past participle: "sung", "put", "opened", but not "sang"."""
    form = form.lower()
    forms, bases = _irregular()
    base = bases.get(form, form)
    if base in forms:
        return form in forms[base][1]
    if form in _NO_PARTICIPLES:
        return False
    return form in _PAST_IN_EED or (form.endswith("ed") and not form.endswith("eed"))


def _base_of_third_person(form: str, guess: str) -> str:
    if form in ("is", "'s", "has"):
        return "have" if form == "has" else "be"
    if guess and guess != form and third_person(guess) == form:
        return guess
    if form.endswith("ies") and len(form) > 4:
        return form[:-3] + "y"
    if re.search(r"(?:ss|x|zz|ch|sh|[^aeiou]o)es$", form) and form != "aches":
        return form[:-2]
    if form.endswith("s") and not form.endswith("ss"):
        return form[:-1]
    return form


def _base_of_ed(form: str) -> str:
    """Remove a regular "-ed" by spelling, which is more often right than a lemmatizer."""
    if not form.endswith("ed"):
        return form
    stem = form[:-2]
    if re.search(r"[aeiou]\w+ick$", stem):
        # panicked
        return stem[:-1]
    if stem.endswith("i"):
        return stem + "e" if len(stem) <= 2 else stem[:-1] + "y"
    if re.search(r"..([bdgkmnprt])\1$|[^aeiou][^aeiou]?[aeiou]\w*[^w]ell$|ntroll$", stem):
        # planned, travelled
        return stem[:-1]
    if len(re.findall(r"[aeiouy]+", stem)) == 1 and _doubles(stem):
        # hoped: hop would have given hopped.
        return stem + "e"
    if _SILENT_E.search(stem) or len(stem) <= 2:
        return stem + "e"
    return stem


# Words that are written with a vowel letter and spoken with a consonant: "one" (w) and long u (y).
_SPOKEN_CONSONANT = re.compile(
    r"eu|ewe|once\b|one(?:s|self|ness|time)?\b|ouija|u(?:"
    r"ni(?!n|m|de|dio|rr|ss)"  # union, unique; but unintended, unimportant, unidentified
    r"|nanim|s[aeiu]|t[aeio]|r[aeiou]|ga|k[ru]|biq|ly|vu|fo\b)",  # useful, utility, uranium, Uganda, Ukraine
    re.IGNORECASE,
)
_SILENT_H = re.compile(r"hour|honou?r|honest|heir", re.IGNORECASE)
# X-ray, MP, NBC
_SPELLED_LETTER = re.compile(r"[AEFHILMNORSX](?![A-Za-z])|[FHLMNRSX][B-DF-HJ-NP-TV-XZ]+(?![a-z])")
_SPELLED_U = re.compile(r"U(?:[A-Z]{1,2})?(?![A-Za-z])")  # U-turn, UN, USA
_NUMERAL = re.compile(r"\d[\d,]*")


def indefinite_article(word: str) -> str:
    """Return "a" or "an", whichever stands before a word or a numeral in speech.

    The rule follows sound as far as spelling tells: "an hour", "a union", "an MP", "an 1850 map",
    "a 180-page book".

    Args:
        word: The next word as it is written.
    """
    numeral = _NUMERAL.match(word)
    if numeral:
        return "an" if _begins_with_a_vowel(numeral[0]) else "a"
    if _SPELLED_LETTER.match(word):
        return "an"
    if _SPELLED_U.match(word) or _SPOKEN_CONSONANT.match(word):
        return "a"
    begins_with_vowel = word[:1].lower() in ("a", "e", "i", "o", "u")
    return "an" if begins_with_vowel or _SILENT_H.match(word) else "a"


_ARTICLE_AND_WORD = re.compile(r"\b(an?) ([\w-]+)", re.IGNORECASE)


def correct_articles(new: str, old: str) -> str:
    """Return a text that a rule made of another, with "a" and "an" as the next word asks.

    Only articles that came to stand before another word are touched; what the user wrote stays.
    """
    written = {match[0] for match in _ARTICLE_AND_WORD.finditer(old)}

    def corrected(match: re.Match[str]) -> str:
        if match[0] in written:
            return match[0]
        article = match_case(indefinite_article(match[2]), match[1])
        return f"{article} {match[2]}"

    return _ARTICLE_AND_WORD.sub(corrected, new)


def _begins_with_a_vowel(numeral: str) -> bool:
    """Return whether a numeral is spoken with "eight", "eleven" or "eighteen" at its beginning."""
    digits = numeral.replace(",", "")
    if digits[0] == "8":
        return True
    # A year: "eighteen hundred and fifty".
    hundreds = len(digits) == 4 and "," not in numeral
    return digits[:2] in ("11", "18") and (len(digits) % 3 == 2 or hundreds)


def article_edits(text: str, tokens: Sequence[Token], place: int, word: str) -> list[Edit]:
    """Return the edit that corrects "a" or "an" before a token that a word replaces, if needed."""
    before = tokens[place - 1] if place else None
    if before is None or before.text.lower() not in ("a", "an"):
        return []
    if text[before.end : tokens[place].start].strip():
        # A bracket stands between them.
        return []
    article = indefinite_article(word)
    if article == before.text.lower():
        return []
    return [(before.start, before.end, match_case(article, before.text))]
