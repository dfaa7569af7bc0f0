"""How long training takes, and how many steps fit before a deadline."""

from __future__ import annotations

import torch
from torch import Tensor

from opencse.foundation.progress import about
from opencse.training.callbacks import ActiveRun, TrainingCallback
from opencse.training.log import check_finite

MEASURED_STEPS = 20
"""Steps after which the time of a step is known."""


class Forecast(TrainingCallback):
    """Reports the expected time after the first steps, and limits the steps if there is a deadline.

    The limit is computed once in a run, at a fixed step, and recorded in `run.json`: a resumed run
    takes the same steps. The schedule then runs to its end by that number.
    """

    def on_train_begin(self, run: ActiveRun) -> None:
        """Start the clock."""
        self._start = run.step
        self._began = run.clock()
        self._evaluated = run.all_evaluation_seconds
        self._apply_limit(run)
        deadline = run.session.deadline
        undecided = "step_limit" not in run.session.record
        if deadline is not None and undecided and self._began > deadline:
            run.session.notify(
                f"the time is over before training: it ends after its first {MEASURED_STEPS} steps"
            )

    def on_step_end(self, run: ActiveRun, values: dict[str, Tensor]) -> None:
        """Measure the first steps, and those after a resumption."""
        run.phase.update()
        if run.step not in (MEASURED_STEPS, self._start + MEASURED_STEPS):
            return
        # This waits for the device, or the time would be that of queueing its steps.
        check_finite(run)
        in_evaluations = run.all_evaluation_seconds - self._evaluated
        in_steps = run.clock() - self._began - in_evaluations
        each = in_steps / (run.step - self._start)
        each += run.evaluation_seconds / run.recipe.selection.every
        if run.step == MEASURED_STEPS and "step_limit" not in run.session.record:
            self._decide_limit(run, each)
        self._apply_limit(run)
        self._report(run, each)

    def _decide_limit(self, run: ActiveRun, seconds: float) -> None:
        """Record how many steps fit before the deadline, given the seconds of a step."""
        if run.session.deadline is None:
            return
        left = run.session.deadline - run.clock()
        fitting = run.step + max(0, int(left / seconds))
        # The clock of the main process counts: the others contribute nothing to the sum.
        own = float(min(fitting, run.steps)) if run.main else 0.0
        accelerator = run.session.accelerator
        limit = accelerator.reduce(torch.tensor(own, device=accelerator.device), "sum")
        run.session.write_record(step_limit=int(limit))

    def _apply_limit(self, run: ActiveRun) -> None:
        """Apply the limit, from the step at which it was computed."""
        limit = run.session.record.get("step_limit")
        if limit is not None and run.step >= MEASURED_STEPS:
            run.steps = min(run.steps, limit)
            run.phase.total = run.steps

    def _report(self, run: ActiveRun, seconds: float) -> None:
        """Report the expected time of the training, or that its time limit has passed."""
        if run.step < run.steps:
            expected = run.seconds + seconds * (run.steps - run.step)
            run.session.notify(f"training takes about {about(expected)}: {run.steps:,} steps")
        elif run.session.deadline is not None:
            run.session.notify(f"the time is over: training ends after step {run.step}")
