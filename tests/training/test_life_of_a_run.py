"""A run that is killed, resumed, replaced and damaged in any order ends as if nothing had happened, or refuses."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import find_damage
from tests.tiny import tiny_bert
from tests.training.helpers import FakeDev, crash_at, run, weights, write_corpus
from tests.training.test_loop import LONG

STEPS = 12
STOPS = st.one_of(st.none(), st.integers(0, STEPS - 1))
"""The step at which the process is killed; none where it is not."""


class Life(RuleBasedStateMachine):
    """One output folder, and what must hold of it.

    Attributes:
        begun: Whether the folder holds a run.
        ended: Whether that run ended and its model is there.
        whole: Checkpoints that were seen whole and that nobody damaged since.
        hopeless: Whether every checkpoint was damaged.
    """

    backbone: Path
    corpus: Path
    expected: dict[str, Any]

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.out = self.folder / "out"
        self.begun = self.ended = self.hopeless = False
        self.whole: set[str] = set()

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def train(self, stop: int | None, **how: bool) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if stop is not None:
                crash_at(stop, patch)
            try:
                run(self.corpus, self.backbone, self.out, *LONG, dev=FakeDev(), **how)
                self.ended = True
            except KeyboardInterrupt:
                assert stop is not None
                self.ended = False
        self.begun = (self.out / "run.json").is_file()
        self.whole = {path.name for path in self.checkpoints() if find_damage(path) is None}
        self.hopeless = False

    def checkpoints(self) -> list[Path]:
        return sorted((self.out / "checkpoints").glob("step-*"))

    @rule(stop=STOPS)
    def start(self, stop: int | None) -> None:
        if not self.begun:
            self.train(stop)
            return
        with pytest.raises(OpencseError, match="--resume"):
            run(self.corpus, self.backbone, self.out, *LONG, dev=FakeDev())

    @rule(stop=STOPS)
    def start_anew(self, stop: int | None) -> None:
        self.train(stop, overwrite=True)

    @rule(stop=STOPS)
    def resume(self, stop: int | None) -> None:
        if self.begun and not self.hopeless:
            self.train(stop, resume=True)
            return
        with pytest.raises(
            OpencseError, match="every checkpoint is damaged" if self.begun else "no run to resume"
        ):
            run(self.corpus, self.backbone, self.out, *LONG, dev=FakeDev(), resume=True)

    @precondition(lambda self: self.begun and not self.ended)
    @rule(
        data=st.data(),
        newest=st.booleans(),
        how=st.sampled_from(["truncated", "changed", "missing"]),
    )
    def damage_a_checkpoint(self, data: st.DataObject, newest: bool, how: str) -> None:
        """The newest one, or each of them."""
        found = self.checkpoints()
        for checkpoint in found[-1:] if newest else found:
            path = data.draw(st.sampled_from(sorted(checkpoint.iterdir())))
            content = path.read_bytes()
            if how == "missing":
                path.unlink()
            elif how == "truncated":
                path.write_bytes(content[: len(content) // 2])
            else:
                at = len(content) // 2
                path.write_bytes(
                    content[:at] + bytes([(content[at] + 1) % 256]) + content[at + 1 :]
                )
            self.whole.discard(checkpoint.name)
        self.hopeless = bool(found) and not self.whole

    @precondition(lambda self: self.ended)
    @rule()
    def lose_the_model(self) -> None:
        shutil.rmtree(self.out / "model")
        self.ended = False

    @invariant()
    def no_whole_checkpoint_is_lost(self) -> None:
        assert {path.name for path in self.checkpoints() if find_damage(path) is None} == self.whole

    @invariant()
    def what_ended_is_what_an_undisturbed_run_gives(self) -> None:
        if self.ended:
            found = weights(self.out)
            assert found.keys() == self.expected.keys()
            for name, tensor in found.items():
                np.testing.assert_array_equal(tensor, self.expected[name], err_msg=name)


def test_the_life_of_a_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    Life.backbone = tiny_bert(tmp_path_factory.mktemp("bert"))
    Life.corpus = write_corpus(tmp_path_factory.mktemp("corpus"), 64)
    undisturbed = tmp_path_factory.mktemp("undisturbed") / "out"
    run(Life.corpus, Life.backbone, undisturbed, *LONG, dev=FakeDev())
    Life.expected = weights(undisturbed)
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    small = settings(
        max_examples=12, stateful_step_count=6, deadline=None, suppress_health_check=checks
    )
    run_state_machine_as_test(Life, settings=small)
