"""Training rows from patterns of our own, and from a list of antonyms.

patterns    exchanged roles and converses (who did what to whom, comparisons, places, times,
causes), short queries
            with passages that say yes or no, complaints, quantifiers, entailment under negation;
            words in words.tsv
antonyms    sentences that have paraphrases (`text`, `back_translation`), with a word exchanged for
its antonym,
            in the sentence and in another paraphrase (word, antonym, part of speech)

table.py joins them with the other rows; train.py names the columns.
"""

from __future__ import annotations

import collections
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.parquet as pq

R = random.Random(11)
Forms = Sequence[str]
Row = dict[str, str]


def _read() -> dict[str, list[str]]:
    found = collections.defaultdict[str, list[str]](list)
    for line in Path(__file__).with_name("words.tsv").read_text(encoding="utf-8").split("\n")[:-1]:
        name, words = line.split("\t")
        found[name] += words.split(" / ")
    return found


WORDS = _read()


def split(entry: str) -> list[list[str]]:
    """Return the fields of an entry of a table, each a list."""
    return [field.split(", ") for field in entry.split(" : ")]


def vp(v):
    a, _, b = v.partition(":")
    return a, (b or a)


def art(n):
    return R.choice(["the", "the", "the", "a", "our", "their", "that"]) + " " + n


def pair():
    k = R.random()
    if k < 0.3:
        a, b = R.sample(WORDS["names"], 2)
        return a, b, R.choice(WORDS["vh"])
    if k < 0.58:
        a, b = R.sample(WORDS["people"], 2)
        if R.random() < 0.3:
            x, y = R.sample(WORDS["adjs"], 2)
            a, b = f"{x} {a}", f"{y} {b}"
        return (
            "the " + a if R.random() < 0.7 else art(a),
            "the " + b if R.random() < 0.7 else art(b),
            R.choice(WORDS["vh"]),
        )
    if k < 0.68:
        a, b = R.choice(WORDS["names"]), "the " + R.choice(WORDS["people"])
        a, b = R.sample([a, b], 2)
        return a, b, R.choice(WORDS["vh"])
    if k < 0.83:
        a, b = R.sample(WORDS["orgs"], 2)
        return "the " + a, "the " + b, R.choice(WORDS["vo"])
    if k < 0.93:
        a, b = R.sample(WORDS["animals"], 2)
        return art(a), art(b), R.choice(WORDS["va"])
    a, b = R.sample(WORDS["things"], 2)
    return art(a), art(b), R.choice(WORDS["vt"])


def up(s):
    return s[0].upper() + s[1:]


def many(forms, n):
    return R.sample(forms, min(n, len(forms)))


def row(text_forms, exch_forms, opp_forms=()):
    f = [up(x) for x in many(text_forms, 3)]
    x = [up(x) for x in many(exch_forms, 2)]
    o = [up(y) for y in many(list(opp_forms), R.choice([0, 1, 1, 2]))] if opp_forms else []
    r = {"text": f[0]}
    r |= {f"same_{i}": t for i, t in enumerate(f[1:], 1)}
    r |= {f"exchanged_{i}": t for i, t in enumerate(x, 1)}
    r |= {f"opposed_{i}": t for i, t in enumerate(o, 1)}
    return r


def trans():
    a, b, v = pair()
    p, q = vp(v)
    w = R.choice(WORDS["pre"])
    ins = R.random() < 0.75
    t = f" {w}" if ins else ""

    def forms(a, b):
        f = [f"{a} {p} {b}{t}.", f"{b} was {q} by {a}{t}."]
        if ins:
            f += [f"{w}, {a} {p} {b}.", f"{w}, {b} was {q} by {a}.", f"{b} was {q} {w} by {a}."]
        f += [
            f"it was {a} who {p} {b}{t}.",
            f"it was {a} that {p} {b}{t}.",
            f"{b} is the one whom {a} {p}{t}.",
            f"the one who {p} {b}{t} was {a}.",
            f"{b} got {q} by {a}{t}.",
            f"what happened{t} was that {a} {p} {b}.",
        ]
        return f[:5] * 2 + f[5:] if ins else f

    N = [
        f"{a} never {p} {b}{t}.",
        f"{b} was not {q} by {a}{t}.",
        f"it is not true that {a} {p} {b}{t}.",
        f"{b} was never {q} by {a}.",
    ]
    return row(
        sorted(set(forms(a, b)), key=lambda _: R.random()),
        forms(b, a),
        N if R.random() < 0.4 else (),
    )


def giver():
    a, b = (
        R.sample(WORDS["names"], 2)
        if R.random() < 0.5
        else ["the " + x for x in R.sample(WORDS["people"], 2)]
        if R.random() < 0.6
        else ["the " + x for x in R.sample(WORDS["orgs"], 2)]
    )
    v, c = R.choice(WORDS["give"]).split(":")
    x = R.choice(WORDS["objs"])
    w = R.choice(WORDS["pre"])
    t = R.choice(["", " " + w])
    part = {
        "gave": "given",
        "sold": "sold",
        "lent": "lent",
        "sent": "sent",
        "rented out": "rented out",
        "handed": "handed",
        "passed": "passed",
        "bequeathed": "bequeathed",
        "offered": "offered",
        "showed": "shown",
        "brought": "brought",
        "returned": "returned",
        "donated": "donated",
    }[v]

    def forms(a, b):
        return [
            f"{a} {v} {x} to {b}{t}.",
            f"{b} {c.format(x=x)} {a}{t}.",
            f"{x} was {part} to {b} by {a}{t}." if x[0] not in "f" else f"{a} {v} {x} to {b}{t}.",
            f"it was {b} who {c.format(x=x)} {a}{t}.",
            f"it was {a} who {v} {x} to {b}{t}.",
        ]

    return row(forms(a, b), forms(b, a))


def kin():
    a, b = (
        R.sample(WORDS["names"], 2)
        if R.random() < 0.7
        else ["the " + x for x in R.sample(WORDS["people"], 2)]
    )
    r, s = R.choice(WORDS["rels"]).split(":")
    t = R.choice(["", " for years", " in Lisbon", " at that time", " until 1998"])
    k = R.choice([("is", "is"), ("was", "was"), ("became", "became")])[0]

    def forms(a, b):
        return [
            f"{a} {k} {b}'s {r}{t}.",
            f"{a} {k} the {r} of {b}{t}.",
            f"{b} {k} {a}'s {s}{t}.",
            f"{b} {k} the {s} of {a}{t}.",
            f"the {r} of {b} {k} {a}{t}.",
        ]

    return row(forms(a, b), forms(b, a))


def comparison():
    a, b = R.sample(WORDS["cthing"], 2)
    m, less, pos = R.choice(WORDS["comp"]).split(":")
    if R.random() < 0.5 and less != "less " + pos:
        m, less, pos = less, m, None
    mod = R.choice(["", "", "much ", "a little ", "far ", "clearly "])
    if pos:

        def forms(a, b):
            return [
                f"{a} is {mod}{m} than {b}.",
                f"{b} is {mod}{less} than {a}.",
                f"{b} is not as {pos} as {a}.",
                f"{b} isn't nearly as {pos} as {a}.",
                f"of the two, {a} is the {m} one, not {b}.",
                f"compared with {b}, {a} is {m}.",
            ]
    else:

        def forms(a, b):
            return [
                f"{a} is {mod}{m} than {b}.",
                f"{b} is {mod}{less} than {a}.",
                f"compared with {b}, {a} is {m}.",
                f"compared with {a}, {b} is {less}.",
                f"it is {a} that is {m}, not {b}.",
            ]

    return row(
        forms(a, b),
        forms(b, a),
        [f"{a} is {less} than {b}.", f"{a} is not {m} than {b}."] if R.random() < 0.4 else (),
    )


def vcomparison():
    a, b = R.sample(WORDS["names"][:12] if R.random() < 0.8 else WORDS["cthing"], 2)
    m, less = R.choice(WORDS["vcomp"]).split(":")
    t = R.choice(["", " this year", " as a rule", ", according to the report", " nowadays"])

    def forms(a, b):
        return [
            f"{a} {m} than {b}{t}.",
            f"{b} {less} than {a}{t}.",
            f"compared with {b}, {a} {m}{t}.",
            f"compared with {a}, {b} {less}{t}.",
            f"it is {a}, not {b}, that {m}{t}.",
        ]

    return row(forms(a, b), forms(b, a), [f"{a} {less} than {b}{t}."] if R.random() < 0.5 else ())


def places():
    a, b = R.sample(WORDS["pthing"], 2)
    p, q = R.choice(WORDS["place"]).split(":")
    if R.random() < 0.5:
        p, q = q, p
    v = R.choice(["is", "lies", "was", "stands", "can be found"])

    def forms(a, b):
        return [
            f"{a} {v} {p} {b}.",
            f"{b} {v} {q} {a}.",
            f"{p} {b} {v if v != 'can be found' else 'is'} {a}.",
            f"{q} {a} there is {b}.",
            f"you will find {a} {p} {b}.",
        ]

    return row(forms(a, b), forms(b, a), [f"{a} {v} {q} {b}."] if R.random() < 0.5 else ())


def clauses():
    a, b = R.sample(WORDS["cl"], 2)
    k = R.choice(["because", "after", "if", "because", "after", "caused"])
    if k == "because":

        def forms(a, b):
            return [
                f"{a} because {b}.",
                f"because {b}, {a}.",
                f"{b}, so {a}.",
                f"{b}, and that is why {a}.",
                f"since {b}, {a}.",
                f"the reason why {a} is that {b}.",
            ]
    elif k == "after":

        def forms(a, b):
            return [
                f"{a} after {b}.",
                f"after {b}, {a}.",
                f"{b} before {a}.",
                f"before {a}, {b}.",
                f"first {b}, then {a}.",
                f"{b}; only later {a}.",
                f"by the time {a}, {b} already.",
            ]
    elif k == "if":

        def forms(a, b):
            return [
                f"whenever {b}, {a}.",
                f"{a} whenever {b}.",
                f"every time {b}, {a}.",
                f"{a} each time {b}.",
            ]
    else:

        def forms(a, b):
            return [
                f"{b}, which meant that {a}.",
                f"{a} as a result of this: {b}.",
                f"{a} owing to the fact that {b}.",
                f"as {b}, {a}.",
            ]

    return row(forms(a, b), forms(b, a))


def attrs():
    a, b = R.sample(WORDS["people"] + WORDS["things"] + WORDS["animals"], 2)
    x, y = R.sample(WORDS["looks"], 2)
    v = R.choice(WORDS["beside"])

    def forms(x, y):
        return [
            f"a {x} {a} {v} a {y} {b}.",
            f"a {y} {b} {v} a {x} {a}.",
            f"the {a} that was {x} {v} the {b} that was {y}.",
            f"the {x} {a} {v} the {y} {b}.",
        ]

    return row(forms(x, y), forms(y, x))


def told():
    a, b = (
        R.sample(WORDS["names"], 2)
        if R.random() < 0.6
        else ["the " + x for x in R.sample(WORDS["people"], 2)]
    )
    k = R.choice(
        [
            "had won the raffle",
            "was in danger",
            "should leave the room",
            "had to pay the fine",
            "was wrong about the date",
            "would be promoted",
            "had lost the file",
        ]
    )
    v, q = R.choice(
        [
            ("told", "told"),
            ("warned", "warned"),
            ("assured", "assured"),
            ("reminded", "reminded"),
            ("informed", "informed"),
        ]
    )
    o = R.choice(WORDS["names"])

    def forms(a, b):
        return [
            f"{a} {v} {b} that {o} {k}.",
            f"{b} was {q} by {a} that {o} {k}.",
            f"it was {a} who {v} {b} that {o} {k}.",
            f"{b} heard from {a} that {o} {k}.",
        ]

    return row(forms(a, b), forms(b, a))


def want():
    a, b = (
        R.sample(WORDS["names"], 2)
        if R.random() < 0.5
        else ["the " + x for x in R.sample(WORDS["people"], 2)]
    )
    k = R.choice(
        [
            "wait outside",
            "sell the house",
            "drive",
            "cook dinner",
            "sign the form",
            "stay longer",
            "repair the fence",
            "carry the boxes",
            "apologise",
            "sing first",
        ]
    )
    v, q = R.choice(
        [
            ("asked", "asked"),
            ("ordered", "ordered"),
            ("begged", "begged"),
            ("allowed", "allowed"),
            ("forced", "forced"),
            ("helped", "helped"),
            ("encouraged", "encouraged"),
            ("forbade", "forbidden"),
        ]
    )

    def forms(a, b):
        return [
            f"{a} {v} {b} to {k}.",
            f"{b} was {q} to {k} by {a}.",
            f"{b} was {q} by {a} to {k}.",
            f"it was {a} who {v} {b} to {k}.",
        ]

    return row(forms(a, b), forms(b, a))


def fromto():
    a, b = R.sample(
        "Oslo Lima Cairo Turin Perth Seoul Quito Ghent Dakar Riga Porto Minsk Accra Basel Kyoto Leeds".split(),
        2,
    )
    w = R.choice(
        "Nadia|the freight train|the delegation|my cousin|the orchestra|a refugee family|the airmail|flight 212".split(
            "|"
        )
    )
    v, n = R.choice(
        [
            ("travelled", "trip"),
            ("flew", "journey"),
            ("moved", "move"),
            ("went", "trip"),
            ("drove", "journey"),
        ]
    )
    t = R.choice(["", " in April", " overnight", " in 1962"])

    def forms(a, b):
        return [
            f"{w} {v} from {a} to {b}{t}.",
            f"{w} {v} to {b} from {a}{t}.",
            f"{w} left {a} for {b}{t}.",
            f"coming from {a}, {w} arrived in {b}{t}.",
            f"{w} started in {a} and ended in {b}{t}.",
            f"{a} was where {w} set off, {b} where the {n} ended{t}.",
        ]

    return row(forms(a, b), forms(b, a))


def passage(s):
    s = up(s)
    k = R.random()
    if k < 0.35:
        return s
    if k < 0.65:
        return s + " " + R.choice(WORDS["extra"])
    if k < 0.9:
        return R.choice(WORDS["extra"]) + " " + s
    return R.choice(WORDS["extra"]) + " " + s + " " + R.choice(WORDS["extra"])


def bare(f):
    return f.split(" ", 1)[1] if f.split()[0] in ("a", "an") else f


def s_has():
    kinds, features = split(R.choice(WORDS["has"]))
    th, f = R.choice(kinds), R.choice(features)
    b = bare(f)
    an = "an" if th[0] in "aeio" else "a"
    q = [
        f"{th} with {f}",
        f"{th} that has {f}",
        f"{th} {b} included",
        f"looking for {an} {th} that comes with {f}",
        f"does the {th} have {f}?",
        f"{an} {th} with {b}",
        f"is there {f} in the {th}?",
        f"{b} in {th}",
    ]
    nq = [
        f"{th} without {f}",
        f"{th} without {b}",
        f"{th} that doesn't have {f}",
        f"{b}-free {th}" if " " not in b else f"{th} with no {b}",
        f"{th}, no {b}",
        f"{an} {th} that does not come with {f}",
        f"{th} lacking {b}",
    ]
    P = [
        f"this {th} has {f}.",
        f"every {th} we offer comes with {f}.",
        f"you will find {f} in this {th}.",
        f"{f} is part of the {th}.",
        f"the {th} includes {f}.",
        f"with this {th} you get {f}.",
        f"our {th} was made with {f}.",
        f"the {th} is equipped with {f}."
        if kinds[0] in ("hotel", "phone", "car", "flat")
        else f"there is {f} in the {th}.",
        f"the {th} contains {b}." if "soup" in kinds else f"{f} belongs to what the {th} offers.",
    ]
    N = [
        f"this {th} has no {b}.",
        f"the {th} comes without {f}.",
        f"you will look for {f} in vain in this {th}.",
        f"the {th} does without {f}.",
        f"there is no {b} in the {th}.",
        f"the {th} doesn't have {f}.",
        f"we left {f} out of the {th}.",
        f"the {th} lacks {f}.",
        f"unlike others, our {th} is free of {b}."
        if "soup" in kinds
        else f"{f} is not part of the {th}.",
        f"the {th} doesn't come with {f}.",
        f"not a single {th} of ours has {f}.",
    ]
    return q, nq, P, N


def s_allow():
    (v,), (g,) = split(R.choice(WORDS["act"]))
    s = R.choice(WORDS["spots"])
    q = [
        f"{s} where you can {v}",
        f"{s} that allows {g}",
        f"can I {v} at the {s}?",
        f"is {g} allowed in the {s}?",
        f"{g} permitted {s}",
        f"{s} where {g} is fine",
        f"may I {v} in the {s}",
    ]
    nq = [
        f"{s} where you can't {v}",
        f"{s} that bans {g}",
        f"{s} where {g} is forbidden",
        f"no {g} {s}",
        f"{s} {g} not allowed",
        f"{s} that doesn't let people {v}",
    ]
    P = [
        f"visitors may {v} in the {s}.",
        f"{g} is allowed throughout the {s}.",
        f"nobody minds if you {v} here in the {s}.",
        f"feel free to {v} at the {s}.",
        f"the {s} has no rule against {g}.",
        f"since March you have been able to {v} in the {s}.",
        f"{g} in the {s} is not a problem.",
        f"the ban on {g} in the {s} has been lifted.",
        f"at the {s}, guests are welcome to {v}.",
        f"you can {v} in the {s} whenever you like.",
    ]
    N = [
        f"visitors may not {v} in the {s}.",
        f"{g} is prohibited throughout the {s}.",
        f"please do not {v} here in the {s}.",
        f"it is forbidden to {v} at the {s}.",
        f"the {s} has a strict rule against {g}.",
        f"since March you have no longer been able to {v} in the {s}.",
        f"{g} in the {s} is not tolerated.",
        f"the ban on {g} in the {s} remains in force.",
        f"at the {s}, guests must never {v}.",
        f"whoever wants to {v} has to leave the {s}.",
    ]
    return q, nq, P, N


def s_need():
    d = R.choice(WORDS["docs"])
    s = R.choice(WORDS["serv"])
    b = bare(d)
    nq = [
        f"{s} without {d}",
        f"{s} no {b} needed",
        f"can I {s} without {d}?",
        f"{s} {b} not required",
        f"where can I {s} with no {b}",
    ]
    q = [
        f"{s} {b} required",
        f"do I need {d} to {s}?",
        f"{s} only with {d}",
        f"is {d} needed to {s}",
        f"{s} {b} mandatory",
    ]
    P = [
        f"you need {d} to {s}.",
        f"to {s}, {d} is required.",
        f"nobody can {s} without {d}.",
        f"{d} is compulsory if you want to {s}.",
        f"people without {d} cannot {s}.",
        f"you must have {d} before you {s}.",
        f"only those who have {d} can {s}.",
        f"you will be turned away unless you have {d}; only then can you {s}.",
    ]
    N = [
        f"you don't need {d} to {s}.",
        f"to {s}, no {b} is required.",
        f"anybody can {s}, with or without {d}.",
        f"{d} is optional if you want to {s}.",
        f"people without {d} can {s} as well.",
        f"you can {s} even if you don't have {d}.",
        f"it is possible to {s} without {d}.",
        f"we no longer ask for {d} when you {s}.",
    ]
    return q, nq, P, N


def s_time():
    e = R.choice(WORDS["evs"])
    v = R.choice(WORDS["vs"])
    q = [f"{v} before {e}", f"{v} up to {e}?", f"{v} until {e}", f"earlier than {e}: {v}"]
    nq = [f"{v} after {e}", f"{v} from {e} on", f"{v} once {e} is over?", f"later than {e}: {v}"]
    P = [
        f"{v} before {e}, but not afterwards.",
        f"until {e} {v}.",
        f"{v} only up to {e}.",
        f"as soon as {e} has passed, it is no longer the case that {v}.",
        f"{v} no later than {e}.",
    ]
    N = [
        f"{v} after {e}, but not earlier.",
        f"from {e} onwards {v}.",
        f"{v} only after {e}.",
        f"before {e} it is not yet the case that {v}.",
        f"{v} no earlier than {e}.",
    ]
    return q, nq, P, N


def s_state():
    (x,), (v,), (b,), bad, good = split(R.choice(WORDS["stat"]))
    t = R.choice(WORDS["aft"])
    t = " " + t if t else ""
    past = v in (
        "arrived",
        "came through",
        "installed",
        "worked",
        "went away",
        "rose",
        "came",
        "stopped",
        "replied",
    )
    negated = "didn't" if past else "doesn't"
    P = [
        f"{x} {v}{t}",
        f"{x} is {R.choice(good)}{t}",
        f"no complaints: {x} {v}{t}",
        f"{x} did {b}{t}" if past else f"{x} does {b}{t}",
        f"glad to say {x} {v}{t}",
        f"{x} finally {v}{t}" if past else f"{x} {v} without trouble{t}",
    ]
    N = [
        f"{x} {'did' if past else 'does'} not {b}{t}",
        f"{x} is {R.choice(bad)}{t}",
        f"{x} {negated} {b}{t}",
        f"{x} never {v}{t}",
        f"{x} refuses to {b}{t}",
        f"waiting in vain for {x} to {b}{t}",
        f"{x} failed to {b}{t}",
        f"still no sign that {x} will {b}{t}",
    ]
    return P, N, P, N


def search(g, complaint=False):
    q, nq, P, N = g()
    if R.random() < 0.5:
        q, nq, P, N = nq, q, N, P
    ps = many(P, 2)
    ns = many(N, 2)
    pw = str if complaint else passage
    t = R.choice(q)
    qs = [x for x in q if x != t]
    r = {
        "text": t,
        "same_1": pw(ps[0]),
        "same_2": pw(ps[-1]),
        "opposed_1": pw(ns[0]),
        "opposed_2": pw(ns[-1]),
    }
    if R.random() < 0.4:
        r["opposed_3"] = R.choice(nq)
    elif R.random() < 0.5:
        r["same_3"] = R.choice(qs)
    if complaint:
        r = {c: (up(x) + "." if R.random() < 0.5 else x) for c, x in r.items()}
    return {c: x for c, x in r.items() if c == "text" or x != t}


def entail():
    h, kind = R.choice(WORDS["hyp"]).split(":")
    w = R.choice(WORDS["where"])
    if R.random() < 0.5:
        r = (
            {
                "text": f"There are no {h} {w}.",
                "same_1": f"You won't find any {h} {w}.",
                "opposed_1": f"There are some {kind} {w}.",
                "opposed_2": f"{up(kind)} can be found {w}.",
                "same_2": f"Not a single one of the {h} is {w}.",
            }
            if R.random() < 0.5
            else {
                "text": f"There are no {kind} {w}.",
                "same_1": f"{up(kind)} are nowhere to be found {w}.",
                "same_2": f"{up(w)} there are no {h} at all.",
                "opposed_1": f"There are {kind} {w}.",
            }
        )
    else:
        r = {
            "text": f"There are {kind} {w}.",
            "same_1": f"There are {h} {w}.",
            "same_2": f"{up(w)} you can find {kind}.",
            "opposed_1": f"There are no {h} {w}.",
            "opposed_2": f"There aren't any {kind} {w}.",
        }
    return r


def quant():
    g = R.choice(WORDS["grp"])
    p = R.choice(WORDS["pred"])
    n = R.choice([3, 5, 12, 20, 40, 60, 100])
    k = R.randrange(7)
    if k == 0:
        P = [
            f"all the {g} {p}.",
            f"every one of the {g} {p}.".replace(" were ", " was ")
            .replace(" are ", " is ")
            .replace(" have ", " has "),
            f"without exception, the {g} {p}.",
            f"the {g} {p}, every single one.",
        ]
        N = [
            f"not all the {g} {p}.",
            f"some of the {g} did not: only a part {p}.",
            f"it is not true that all the {g} {p}.",
        ]
    elif k == 1:
        P = [
            f"none of the {g} {p}.",
            f"not one of the {g} {p}.",
            f"there was no exception: no {g} {p}.",
        ]
        N = [
            f"some of the {g} {p}.",
            f"a few of the {g} {p}.",
            f"at least a handful of the {g} {p}.",
        ]
    elif k == 2:
        P = [
            f"most of the {g} {p}.",
            f"the majority of the {g} {p}.",
            f"more than half of the {g} {p}.",
            f"the {g} {p} for the most part.",
        ]
        N = [
            f"few of the {g} {p}.",
            f"hardly any of the {g} {p}.",
            f"only a minority of the {g} {p}.",
            f"fewer than half of the {g} {p}.",
        ]
    elif k == 3:
        P = [
            f"at least {n} {g} {p}.",
            f"{n} or more {g} {p}.",
            f"no fewer than {n} {g} {p}.",
            f"a minimum of {n} {g} {p}.",
        ]
        N = [
            f"fewer than {n} {g} {p}.",
            f"under {n} {g} {p}.",
            f"not even {n} {g} {p}.",
            f"less than {n} {g} {p}.",
        ]
    elif k == 4:
        P = [f"more than {n} {g} {p}.", f"over {n} {g} {p}.", f"upwards of {n} {g} {p}."]
        N = [
            f"at most {n} {g} {p}.",
            f"no more than {n} {g} {p}.",
            f"{n} {g} or fewer {p}.",
            f"a maximum of {n} {g} {p}.",
        ]
    elif k == 5:
        P = [
            f"only the {g} {p}, nothing else.",
            f"nothing but the {g} {p}.",
            f"apart from the {g}, nothing {p}.",
        ]
        N = [
            f"everything {p} except the {g}.",
            f"everything but the {g} {p}.",
            f"the {g} were the only exception: all else {p}.",
        ]
    else:
        P = [
            f"exactly {n} {g} {p}.",
            f"{n} {g} {p}, neither more nor fewer.",
            f"the number of {g} that {p} is {n}.",
        ]
        N = None
    if R.random() < 0.5 and N:
        P, N = N, P
    a = many(P, 3)
    r = {"text": up(a[0])} | {f"same_{i}": up(x) for i, x in enumerate(a[1:], 1)}
    if N:
        r |= {f"opposed_{i}": up(x) for i, x in enumerate(many(N, 2), 1)}
    else:
        m = n * R.choice([2, 3]) + 1
        r |= {
            "exchanged_1": up(P[0].replace(str(n), str(m))),
            "exchanged_2": up(P[1].replace(str(n), str(m))),
        }
    return r


GENERATORS: tuple[tuple[Callable[[], Row], int], ...] = (
    (trans, 90),
    (giver, 30),
    (kin, 20),
    (comparison, 40),
    (vcomparison, 20),
    (places, 20),
    (clauses, 40),
    (attrs, 10),
    (told, 10),
    (want, 10),
    (fromto, 10),
    (lambda: search(s_has), 50),
    (lambda: search(s_allow), 40),
    (lambda: search(s_need), 30),
    (lambda: search(s_time), 10),
    (lambda: search(s_state, complaint=True), 30),
    (entail, 5),
    (quant, 30),
)
"""What writes a row, and how many of a hundred times `--size`."""


def patterns(size: int) -> list[Row]:
    """Return distinct rows from the patterns."""
    found: dict[tuple[str, ...], Row] = {}
    for write, share in GENERATORS:
        for _ in range(share * size // 100):
            row = {column: " ".join(text.split()) for column, text in write().items()}
            if len(row) > 2 and len(set(row.values())) == len(row):
                found[tuple(sorted(row.values()))] = row
    return list(found.values())


def exchange(text: str, opposites: dict[str, list[str]]) -> tuple[str, str, str] | None:
    """Return a word, its antonym, and the text with the one for the other; None if no word has one."""
    places = [match for match in re.finditer(r"[a-z]+", text) if match[0] in opposites]
    if not places:
        return None
    match = R.choice(places)
    other = R.choice(opposites[match[0]])
    article = re.sub(
        r"\b([Aa])n? $", r"\1n " if other[0] in "aeiou" else r"\1 ", text[: match.start()]
    )
    return match[0], other, article + other + text[match.end() :]


def antonyms(table: Path, views: Path) -> list[Row]:
    """Return sentences with a paraphrase, and the same with a word exchanged for its antonym."""
    opposites = collections.defaultdict[str, list[str]](list)
    for line in table.read_text(encoding="utf-8").split("\n")[1:-1]:
        word, other, _ = line.split("\t")[:3]
        if (
            word.isalpha()
            and word.islower()
            and len(word) > 2
            and other.isalpha()
            and other.islower()
        ):
            opposites[word].append(other)
    paraphrases = collections.defaultdict[str, list[str]](list)
    for record in pq.read_table(views).to_pylist():
        text, other = record["text"], record["back_translation"]
        if (
            other
            and len(text.split()) <= 20
            and 0.6 < len(other) / len(text) < 1.5
            and other.lower() != text.lower()
        ):
            paraphrases[text].append(other)
    rows = []
    for text, others in paraphrases.items():
        if (exchanged := exchange(text, opposites)) is None:
            continue
        word, antonym, opposed = exchanged
        row = {"text": text, "opposed_1": opposed, "same_1": R.choice(others)}
        pattern = re.compile(rf"\b{word}\b")
        for other in others:
            if other != row["same_1"] and len(pattern.findall(other)) == 1:
                row |= {"same_2": other, "opposed_2": pattern.sub(antonym, other)}
        rows.append(row)
    return rows
