"""Optimisers and schedules by name."""

from __future__ import annotations

from pathlib import Path
from typing import get_args, get_type_hints

import pytest
import torch
from transformers import get_scheduler

from opencse.foundation.errors import OpencseError
from opencse.recipes.settings import Optimizer, Schedule
from opencse.training.schedules import rate_factor
from tests.training.helpers import crash_at, metrics, run, weights, write_corpus

OPTIMIZERS = get_args(get_type_hints(Optimizer)["name"])
KINDS = [
    ("cosine", {}),
    ("constant_with_warmup", {}),
    ("cosine_with_restarts", {"num_cycles": 2}),
    ("cosine_with_min_lr", {"min_lr_rate": 0.1}),
    ("polynomial", {"power": 2.0}),
    ("inverse_sqrt", {}),
    ("warmup_stable_decay", {"num_decay_steps": 5}),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"), 24)


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_schedule_of_transformers_is_the_same_here(kind: str, options: dict) -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2e-3)
    theirs = get_scheduler(kind, optimizer, 3, 20, scheduler_specific_kwargs=dict(options))
    schedule = Schedule(kind=kind, warmup=3, options=options)
    for step in range(20):
        ours = 2e-3 * rate_factor(schedule, step, 20, 2e-3)
        assert ours == pytest.approx(theirs.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        theirs.step()


def test_a_schedule_that_lacks_a_setting_is_refused() -> None:
    with pytest.raises(OpencseError, match="warmup_stable_decay"):
        rate_factor(Schedule(kind="warmup_stable_decay"), 0, 20)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimiser_trains_and_resumes_bit_for_bit(
    tmp_path, backbone, corpus, monkeypatch, name: str
) -> None:
    settings = ["training.max_steps=3", "training.checkpoint_every=1", f"optimizer.name={name}"]
    if name == "sgd":
        settings.append("optimizer.options.momentum=0.9")
    run(corpus, backbone, tmp_path / "whole", *settings)
    with monkeypatch.context() as patch:
        crash_at(2, patch)
        with pytest.raises(KeyboardInterrupt):
            run(corpus, backbone, tmp_path / "out", *settings)
    run(corpus, backbone, tmp_path / "out", *settings, resume=True)
    expected = weights(tmp_path / "whole")
    assert all((tensor == expected[key]).all() for key, tensor in weights(tmp_path / "out").items())
    assert metrics(tmp_path / "out") == metrics(tmp_path / "whole")


def test_a_setting_that_an_optimiser_lacks_is_refused(tmp_path, backbone, corpus) -> None:
    with pytest.raises(OpencseError, match=r"optimizer\.name 'adam'"):
        run(
            corpus,
            backbone,
            tmp_path / "out",
            "optimizer.name=adam",
            "optimizer.options.momentum=0.9",
        )
