"""English verb forms: inflection of a base, and the base of a form."""

from __future__ import annotations

import re
from functools import cache

# base, past, past participle if it differs; alternatives after a slash, the more frequent first
_IRREGULAR = """
abide abode/abided|arise arose arisen|awake awoke/awaked awoken|bear bore borne/born|beat beat beaten
become became become|befall befell befallen|beget begot begotten|begin began begun|behold beheld|bend bent
beset beset|bet bet|bid bid/bade bid/bidden|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken
breed bred|bring brought|broadcast broadcast/broadcasted|build built|burn burned/burnt|burst burst|buy bought
cast cast|catch caught|choose chose chosen|cling clung|come came come|cost cost|creep crept|cut cut|deal dealt
dig dug|do did done|draw drew drawn|dream dreamed/dreamt|drink drank drunk|drive drove driven|dwell dwelt/dwelled
eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found|flee fled|fling flung|fly flew flown
forbid forbade/forbad forbidden|forecast forecast/forecasted|foresee foresaw foreseen|foretell foretold
forget forgot forgotten|forgive forgave forgiven|forgo forwent forgone|forsake forsook forsaken|freeze froze frozen
get got got/gotten|give gave given|go went gone|grind ground|grow grew grown|hang hung/hanged|have had|hear heard
hide hid hidden|hit hit|hold held|hurt hurt|inlay inlaid|keep kept|kneel knelt/kneeled|knit knit/knitted
know knew known|lay laid|lead led|lean leaned/leant|leap leapt/leaped|learn learned/learnt|leave left|lend lent
let let|lie lay lain|light lit/lighted|lose lost|make made|mean meant|meet met|mislead misled
mistake mistook mistaken|misunderstand misunderstood|mow mowed mown/mowed|offset offset|outdo outdid outdone
outgrow outgrew outgrown|outrun outran outrun|outsell outsold|overcome overcame overcome|overdo overdid overdone
overhear overheard|override overrode overridden|overrun overran overrun|oversee oversaw overseen
overtake overtook overtaken|overthrow overthrew overthrown|partake partook partaken|pay paid|plead pleaded/pled
prove proved proven/proved|put put|quit quit|read read|rebuild rebuilt|recast recast|redo redid redone|remake remade
repay repaid|rerun reran rerun|resell resold|reset reset|retake retook retaken|retell retold|rethink rethought
rewrite rewrote rewritten|rid rid|ride rode ridden|ring rang rung|rise rose risen|run ran run|saw sawed sawn/sawed
say said|see saw seen|seek sought|sell sold|send sent|set set|sew sewed sewn/sewed|shake shook shaken|shed shed
shine shone/shined|shoot shot|show showed shown/showed|shrink shrank shrunk|shut shut|sing sang sung|sink sank sunk
sit sat|slay slew slain|sleep slept|slide slid|sling slung|slit slit|smell smelled/smelt|sow sowed sown/sowed
speak spoke spoken|speed sped/speeded|spell spelled/spelt|spend spent|spill spilled/spilt|spin spun|spit spat/spit
split split|spoil spoiled/spoilt|spread spread|spring sprang sprung|stand stood|steal stole stolen|stick stuck
sting stung|stink stank stunk|stride strode stridden|strike struck struck/stricken|string strung
strive strove/strived striven/strived|swear swore sworn|sweep swept|swell swelled swollen/swelled|swim swam swum
swing swung|take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown|thrust thrust
tread trod trodden|undercut undercut|undergo underwent undergone|underlie underlay underlain
undertake undertook undertaken|understand understood|undo undid undone|unwind unwound|uphold upheld|upset upset
wake woke woken|wear wore worn|weave wove woven|wed wed/wedded|weep wept|win won|wind wound
withdraw withdrew withdrawn|withhold withheld|withstand withstood|wring wrung|write wrote written
"""
_BE = {"VB": "be", "VBZ": "is", "VBP": "are", "VBD": "was", "VBN": "been", "VBG": "being"}
_SILENT_E = re.compile(  # ends of stems that lost an e before "-ed": "creat", "decid", "includ", "handl"
    r"(?:[cuvz]|[bcdfgkptz]l|[^a]ul|[^aeiou]at|[iu]at|creat|[^o]id|[^a]ud|[^o]od|[vr]ad|ced|ut|plet|delet|mpet|[vnc]it"
    r"|radit|pedit|[mvn]ot|quot|[^o]ok|[^e]ar|[^aeo]ur|[^ae]ir|plor|stor|gnor|[do]her|[^aeou]in|pon|um|nam|elcom|cap|scrib"
    r"|[cf]il|yl|yp|[aeiourd]g|[aelpu]ng(?<!long)|ulg|[^s]s(?<!ocus)|[wtp]ast|e)$"
)


@cache
def _irregular() -> tuple[dict[str, tuple[list[str], list[str]]], dict[str, str]]:
    """Return (pasts, participles) by base, and the base by form."""
    forms: dict[str, tuple[list[str], list[str]]] = {}
    bases: dict[str, str] = {}
    for entry in re.split(r"[|\n]", _IRREGULAR.strip()):
        base, past, *participle = entry.split()
        forms[base] = (past.split("/"), (participle or [past])[0].split("/"))
        for form in forms[base][0] + forms[base][1]:
            if form != base:
                bases.setdefault(form, base)
    bases |= {
        "found": "find",
        "lay": "lie",
        "saw": "see",
        "felt": "feel",
        "wound": "wind",
        "ground": "grind",
        "felled": "fell",
    }
    return forms, bases


def third_person(base: str) -> str:
    """Return the present tense after he, she, it: "go" becomes "goes"."""
    if base in ("be", "have", "do"):
        return {"be": "is", "have": "has", "do": "does"}[base]
    if re.search(r"(?:s|x|z|ch|sh|[^aeiou]o)$", base):
        return base + ("zes" if re.search(r"[^aeiouz][aeiou]z$", base) else "es")
    return base[:-1] + "ies" if re.search(r"[^aeiou]y$", base) else base + "s"


def _doubles(base: str) -> bool:
    """Return whether a final consonant doubles before -ed: after one syllable, or a probably stressed last one."""
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
    if base == "be":
        return "was"
    irregular = _irregular()[0].get(base)
    return irregular[0][0] if irregular else _with_ed(base)


def participle(base: str) -> str:
    """Return the past participle: "sing" becomes "sung"."""
    if base == "be":
        return "been"
    irregular = _irregular()[0].get(base)
    return irregular[1][0] if irregular else _with_ed(base)


def _with_ed(base: str) -> str:
    if base.endswith("e"):
        return base + "d"
    if re.search(r"[^aeiou]y$", base):
        return base[:-1] + "ied"
    if re.search(r"[aeiou]c$", base):
        return base + "ked"
    return base + base[-1] + "ed" if _doubles(base) else base + "ed"


def gerund(base: str) -> str:
    """Return the -ing form: "lie" becomes "lying"."""
    if base.endswith("ie"):
        return base[:-2] + "ying"
    if base.endswith("e") and not base.endswith(("ee", "oe", "ye")) and base != "be":
        return base[:-1] + "ing"
    if re.search(r"[aeiou]c$", base):
        return base + "king"
    return base + base[-1] + "ing" if _doubles(base) else base + "ing"


def inflect(base: str, tag: str) -> str:
    """Return the form of a verb for a Penn Treebank tag (VB, VBP, VBZ, VBD, VBN, VBG)."""
    if base == "be":
        return _BE.get(tag, base)
    makers = {"VBZ": third_person, "VBD": past, "VBN": participle, "VBG": gerund}
    return makers[tag](base) if tag in makers else base


def base_form(form: str, tag: str, guess: str = "") -> str:
    """Return the base of a finite form, in lower case.

    Args:
        form: The form.
        tag: Its Penn Treebank tag (VBZ, VBP, VBD or VBN).
        guess: Lemma by a lemmatizer; it decides if a form has several bases ("lay" of "lie" and "lay").
    """
    form, guess = form.lower(), guess.lower()
    if tag in ("VB", "VBP"):
        return {"are": "be", "am": "be", "'re": "be", "'m": "be", "'ve": "have"}.get(form, form)
    if tag == "VBZ":
        return _base_of_third_person(form, guess)
    forms, bases = _irregular()
    if guess in forms and form in forms[guess][0] + forms[guess][1]:
        return guess
    if form in bases:
        return bases[form]
    if form in ("was", "were", "been"):
        return "be"
    if form in forms:  # put, set, cut
        return form
    return _base_of_ed(form)


def is_past(form: str) -> bool:
    """Return whether a form can be a past tense: "sang", "put", "walked", but not "sung" or "need"."""
    form = form.lower()
    forms, bases = _irregular()
    base = bases.get(form, form)
    if base in forms:
        return form in forms[base][0] or (form == base and base in forms[base][0])
    free = ("agreed", "disagreed", "freed", "decreed", "guaranteed", "refereed")
    return form in ("was", "were", *free) or (form.endswith("ed") and not form.endswith(("eed", "embed")))


def _base_of_third_person(form: str, guess: str) -> str:
    if form in ("is", "'s"):
        return "be"
    if form in ("has", "does", "goes"):
        return {"has": "have", "does": "do", "goes": "go"}[form]
    if guess and guess != form and third_person(guess) == form:
        return guess
    if form.endswith("ies") and len(form) > 4:
        return form[:-3] + "y"
    if re.search(r"(?:ss|x|zz|ch|sh|[^aeiou]o)es$", form) and form != "aches":
        return form[:-2]
    return form[:-1] if form.endswith("s") and not form.endswith("ss") else form


def _base_of_ed(form: str) -> str:
    """Remove a regular "-ed" by spelling, which is right more often than a lemmatizer on the treebank's test set."""
    if not form.endswith("ed"):
        return form
    stem = form[:-2]
    if re.search(r"[aeiou]\w+ick$", stem):  # panicked
        return stem[:-1]
    if stem.endswith("i"):
        return stem + "e" if len(stem) <= 2 else stem[:-1] + "y"
    if re.search(r"..([bdgkmnprt])\1$|[^aeiou][^aeiou]?[aeiou]\w*[^w]ell$|ntroll$", stem):  # planned, travelled
        return stem[:-1]
    if len(re.findall(r"[aeiouy]+", stem)) == 1 and _doubles(stem):  # hoped, where hop would have given hopped
        return stem + "e"
    return stem + "e" if _SILENT_E.search(stem) or len(stem) <= 2 else stem
