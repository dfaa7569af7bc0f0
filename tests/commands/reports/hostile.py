"""Probe scores on sentences that try to break the page."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import numpy as np

from opencse.commands.reports.page import write_report
from opencse.evaluation import Triplet, TripletSet
from opencse.evaluation.probes import ProbeData, ProbeScores, ProbeSentences, probe_encoders
from tests.evaluation.probes.helpers import ROWS, bag_of_words, pairs

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> the drug"
OVERRIDE = "\u202egnirts desrever a si siht\u202c & \u2067more"
LONG = "a" * 100_000
CLOSING = '"></bdi></main></svg><style>body{display:none}</style> {{ 7*7 }} $x^{2$'
NAME = "<b>evil</b>\u202e $\\frac{"


def probe_scores(*names: str) -> dict[str, ProbeScores]:
    hostile = (SCRIPT, OVERRIDE, LONG, CLOSING)
    rows = [(text, f"reworded {i}", f"{text} not", "x") for i, text in enumerate(hostile)] + ROWS
    anchors, paraphrases, negations, others = zip(*rows, strict=True)
    sentences = ProbeSentences(
        name="hostile",
        anchors=anchors,
        versions={"paraphrase": paraphrases, "negation": negations, "random": others},
        total=len(rows),
    )
    scored = [(a, b, float(i % 6)) for i, (a, b) in enumerate(zip(anchors * 3, negations * 3, strict=True))]
    toy = pairs(scored, SCRIPT)
    triplets = [
        Triplet(id=str(i), anchor=a, positive=p, negative=n, groups={"grade": NAME, "kind": str(i % 2)})
        for i, (a, p, n, _) in enumerate(rows)
    ]
    data = ProbeData(
        sts=[toy],
        split_sets=[toy],
        pairs=[pairs([("a", "b", 3.0), ("c", "d", 3.0)], "flat")],
        sentences=sentences,
        triplets=[TripletSet(name=SCRIPT, triplets=tuple(triplets))],
    )

    def noisy(texts):
        clean = bag_of_words([text[:200] for text in texts])
        return clean + np.random.default_rng(0).normal(size=clean.shape)

    return probe_encoders({name: bag_of_words if i == 0 else noisy for i, name in enumerate(names)}, data)


def render(models: dict[str, ProbeScores], **options) -> str:
    with TemporaryDirectory() as folder:
        return write_report(models, folder, **options).read_text(encoding="utf-8")
