"""Figures that the papers report, to be shown beside a model's own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PublishedSplit:
    """One row of OssCSE Tables 2 and 6; correlations as printed (not times 100).

    Attributes:
        pairs: Consistent and opposed pairs.
        median_score: Median human score.
        median_error_rate: Median match error rate.
        unsupervised: Spearman of unsupervised SimCSE (BERT-base) on the consistent and the opposed pairs.
        supervised: The same for supervised SimCSE.
    """

    pairs: tuple[int, int]
    median_score: float
    median_error_rate: float
    unsupervised: tuple[float, float]
    supervised: tuple[float, float]


def _row(pairs: str, medians: str, unsupervised: str, supervised: str) -> PublishedSplit:
    (cont, oppn), (score, rate), (c, o), (supervised_c, supervised_o) = (
        map(float, cells.split()) for cells in (pairs, medians, unsupervised, supervised)
    )
    return PublishedSplit(
        pairs=(int(cont), int(oppn)),
        median_score=score,
        median_error_rate=rate,
        unsupervised=(c, o),
        supervised=(supervised_c, supervised_o),
    )


SPLITS = {
    "STS12 MSRvid": _row("406 344", "2.4 .444", ".8848 .7306", ".9388 .8862"),
    "STS13 headlines": _row("495 255", "2.6 .625", ".8688 .4487", ".8810 .5281"),
    "STS13 OnWN": _row("286 275", "2.4 .556", ".8584 .7816", ".8788 .8140"),
    "STS14 deft-forum": _row("251 199", "2.6 .4375", ".7269 .3550", ".7942 .3279"),
    "STS14 headlines": _row("483 267", "3 .6", ".8578 .4066", ".8898 .3640"),
    "STS14 images": _row("461 289", "3.2 .5", ".8723 .3638", ".9108 .6450"),
    "STS15 answers-students": _row("494 256", "3 .75", ".8394 .3220", ".8264 .3992"),
    "STS15 headlines": _row("517 233", "2.6 .625", ".8932 .4020", ".9081 .4602"),
    "STS15 images": _row("548 202", "2.5 .538", ".8926 .5648", ".9446 .8224"),
    "STS16 answer-answer": _row("134 120", "2 .5", ".7646 .5011", ".8410 .6070"),
    "STS16 headlines": _row("160 89", "2 .625", ".8887 .3836", ".8793 .4075"),
    "STS16 plagiarism": _row("153 77", "3 .737", ".9098 .5058", ".9137 .5425"),
    "STS16 postediting": _row("180 64", "3 .416", ".8982 .0719", ".9064 .0835"),
    "STS16 question-question": _row("75 134", "2 .4", ".7187 .6347", ".7517 .6821"),
    "STS-B train": _row("3532 2217", "3 .536", ".8577 .4966", ".8928 .6293"),
    "STS-B test": _row("855 524", "2.8 .516", ".8354 .5415", ".8762 .7271"),
}
"""OssCSE Tables 2 and 6, by data set: the sets, their splits, and the scores of SimCSE on the parts."""

WEIGHTED_UNSUPERVISED = (0.8574, 0.4982)
WEIGHTED_SUPERVISED = (0.8891, 0.6152)
"""OssCSE Table 3: average over the sets weighted by their pairs, consistent and opposed."""
