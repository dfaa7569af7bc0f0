"""Differences from the authors' code that no recording shows: precision of teachers, and how texts are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opencse.encoder.backbone import Backbone
from opencse.losses import negatives
from opencse.recipes import load_recipe
from opencse.text.english.negation import _sncse_negation
from opencse.text.generated.likely_words import Substituter, Substitution
from opencse.text.syntax import Token
from opencse.training.teachers import load_teachers
from tests.tiny import tiny_bert
from tests.training.helpers import FakeDev, metrics, run, write_corpus


def test_faithful_runs_evaluate_at_multiples_of_the_interval_only(tmp_path) -> None:
    backbone, corpus = tiny_bert(tmp_path / "model", layers=1), write_corpus(tmp_path)
    settings = ("training.max_steps=5", "selection.every=2", "optimizer.lr=1e-3")
    for variant, expected in (("faithful", [0, 2, 4]), ("sound", [0, 2, 4, 5])):
        out = tmp_path / variant
        run(corpus, backbone, out, *settings, variant=variant, dev=FakeDev())
        assert [line["step"] for line in metrics(out) if "dev" in line] == expected


def test_faithful_teachers_run_in_full_precision(tmp_path) -> None:
    backbone = Backbone(tiny_bert(tmp_path / "model", layers=1))
    for variant, precision in (("faithful", "fp32"), ("sound", "bf16")):
        settings = ["training.precision=bf16", "teachers.a.max_length=16"]
        recipe = load_recipe("rankcse-listmle", variant=variant, overrides=settings)
        assert load_teachers(recipe, backbone)["a"].precision == precision


def test_a_token_whose_head_is_white_space_is_no_root() -> None:
    """ "Then" hangs on a line break, which is no token here."""

    def token(text: str, start: int, tag: str, head: int, relation: str, lemma: str = "") -> Token:
        end = start + len(text)
        return Token(text, start, end, lemma or text.lower(), tag, "X", head, relation)

    tokens = [
        token("Then", 0, "RB", 0, "dep"),
        token("rain", 6, "NN", 2, "nsubj"),
        token("fell", 11, "VBD", 2, "ROOT", "fall"),
    ]
    assert _sncse_negation(tokens) == ("Then rain did not fall", "faithful do-support VBD")


@pytest.mark.parametrize(("as_coded", "expected"), [(True, "[UNK]."), (False, "the the the the")])
def test_predicted_special_tokens_are_kept_or_vanish_as_in_the_authors_code(
    monkeypatch: pytest.MonkeyPatch, as_coded: bool, expected: str
) -> None:
    spec = Substitution(model="mini-mlm", fallback="", precision="fp32", predict_special=as_coded)
    opened = Substituter(spec, seed=0)
    tokenizer = opened._predictor.tokenizer
    the, mark = (tokenizer.convert_tokens_to_ids(word) for word in ("the", "."))
    best = [tokenizer.unk_token_id, tokenizer.mask_token_id, tokenizer.sep_token_id, mark]

    def scores(ids: Any, where: Any, *, special: bool = False) -> Any:
        table = np.zeros((len(where[0]), len(tokenizer)), dtype=np.float32)
        table[:, the] = 1.0
        if special:
            table[np.arange(len(best)), best] = 2.0
        yield 0, table

    monkeypatch.setattr(opened._predictor, "scores", scores)
    generators = [np.random.Generator(np.random.Philox(0))]
    text = "the cat is" if as_coded else "the cat is."
    assert opened.cycle([text], generators) == [expected]


def test_a_random_start_depends_on_the_seed_alone_and_leaves_the_encoder(tmp_path) -> None:
    encoder = Backbone(tiny_bert(tmp_path / "model", layers=1)).encoder(pooling="cls")
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    queues = [
        negatives.MomentumQueue(encoder, encoder, 32, 4, 0.9, random_start=seed)
        for seed in (1, 1, 2)
    ]
    for queue in queues:
        queue.follow(0)
        queue.follow(0)  # the loop tries the first step
    states = [queue.encoder.state_dict() for queue in queues]
    weight = next(name for name in states[0] if name.endswith("word_embeddings.weight"))
    assert states[0][weight].equal(states[1][weight])
    assert not states[0][weight].equal(states[2][weight])
    assert all(value.equal(before[name]) for name, value in encoder.state_dict().items())
