"""The training loop: batch, step, callbacks.

`opencse.training.step` is one step, `opencse.training.network` maps a batch to its loss, and
everything else that happens around a step is a callback.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from opencse.encoder.device import same_random_state
from opencse.foundation.progress import LOG, Phase
from opencse.recipes import Recipe
from opencse.text.corpus import Corpus
from opencse.training.batches import Batch, BatchSampler, Collator, shares_of
from opencse.training.callbacks import ActiveRun, TrainingCallback
from opencse.training.checkpoint import Checkpoints, TrainingState
from opencse.training.network import Network
from opencse.training.optimizers import build_optimizer
from opencse.training.schedules import rate_factor, set_learning_rates, warmup_steps
from opencse.training.session import TrainingOutcome, TrainingSession
from opencse.training.sharding import ShardedNetwork, check_shardable
from opencse.training.step import train_step


class TrainingLoop:
    """The training loop of a run in its folder.

    Args:
        network: The network to train, on its device.
        collator: Returns the batch of some row numbers.
        rows: Number of training rows.
        corpus: The text of the training rows.
        recipe: The recipe.
        session: The run, which was begun.
        callbacks: What happens around the steps.
    """

    def __init__(
        self,
        network: Network,
        collator: Collator,
        rows: int,
        corpus: Corpus,
        recipe: Recipe,
        session: TrainingSession,
        callbacks: Sequence[TrainingCallback],
    ) -> None:
        self.network = network
        self.collator = collator
        self.rows = rows
        self.corpus = corpus
        self.recipe = recipe
        self.session = session
        self.callbacks = callbacks
        self.accelerator = session.accelerator
        self.sampler = BatchSampler(
            rows,
            min(recipe.training.batch_size, rows),
            recipe.training.seed,
            self.accelerator.num_processes,
        )

    def run(self) -> ActiveRun:
        """Train to the end, from the latest checkpoint of a run that is resumed.

        Raises:
            OpencseError: The loss is not finite, the disk is full, or the checkpoint does not fit.
            Interrupted: The process received SIGINT or SIGTERM; a checkpoint was written first.
        """
        self._freeze_unused()
        run = self.prepare()
        if self.session.resume:
            self._restore(run)
        # With several processes, the wrapper averages their gradients.
        self.model: torch.nn.Module = self.network
        if run.sharded is not None:
            self.model = run.sharded.trained
            self.model.train()
        elif self.accelerator.num_processes > 1:
            self.model = self.accelerator.prepare_model(self.network)

        run.began = run.clock() - run.state.seconds
        run.phase = Phase(
            "training",
            total=run.steps,
            unit="steps",
            initial=run.step,
            show=self.session.progress,
        )
        self.network.train()
        with run.interrupted.awaited(), run.phase:
            run.call("on_train_begin")
            while run.step < run.steps and not run.stopped:
                values = self.step(run)
                run.call("on_step_end", values)
        run.state.seconds = run.seconds
        run.gather_weights()
        run.call("on_train_end")
        return run

    def prepare(self) -> ActiveRun:
        """Return the run with its optimiser, before the first step."""
        recipe = self.recipe
        session = self.session
        device = self.accelerator.device
        steps = recipe.training.steps(self.sampler.batches_per_epoch)
        trained = sum(p.numel() for p in self.network.parameters() if p.requires_grad)
        LOG.debug(
            "%d steps, %d in an epoch; %s parameters are trained",
            steps,
            self.sampler.batches_per_epoch,
            f"{trained:,}",
        )
        if warmup_steps(recipe.schedule, steps) >= steps > 1:
            session.notify(
                f"warning: the warm-up takes all {steps} steps of the run: the learning rate never "
                "reaches its peak (--set schedule.warmup=0.1)"
            )
        left_out = self.rows - self.sampler.rows_per_epoch
        if left_out:
            session.notify(
                f"{left_out} of {self.rows} rows are left out of each epoch, others each time: the last "
                "batch has too few rows for the negatives or the processes"
            )
        sharded = None
        network = self.network
        if recipe.training.shard_weights and self.accelerator.num_processes > 1:
            check_shardable(self.network, recipe)
            sharded = ShardedNetwork(self.network, device, session.main)
            network = sharded.trained
        groups = [
            group for callback in self.callbacks for group in callback.parameter_groups(network)
        ]
        return ActiveRun(
            recipe=recipe,
            session=session,
            network=self.network,
            sharded=sharded,
            optimizer=build_optimizer(network, recipe.optimizer, groups),
            scaler=torch.amp.GradScaler(device.type, enabled=recipe.training.precision == "fp16"),
            checkpoints=Checkpoints(
                session.folder / "checkpoints",
                session.record["fingerprint"],
                session.notify,
                keep=recipe.training.keep_checkpoints,
            ),
            state=TrainingState(),
            steps=steps,
            corpus=self.corpus,
            sampler=self.sampler,
            collator=self.collator,
            callbacks=self.callbacks,
        )

    def step(self, run: ActiveRun) -> dict[str, torch.Tensor]:
        """Take one step, and return its values for the log."""
        count = self.recipe.training.accumulation_steps
        first = run.step * count
        batches = [self.batch(number) for number in range(first, first + count)]

        peak = self.recipe.optimizer.lr
        factor = rate_factor(self.recipe.schedule, run.step, run.steps, peak)
        set_learning_rates(run.optimizer, factor)
        values = train_step(
            self.model,
            batches,
            run.optimizer,
            run.scaler,
            step=run.step,
            precision=self.recipe.training.precision,
            max_grad_norm=self.recipe.optimizer.max_grad_norm,
        )
        run.state.step += 1
        return values

    def batch(self, number: int) -> Batch:
        """Return this process's part of a batch, on its device; batches count from 0 over all epochs."""
        rows = self.sampler.batch(number)
        shares = shares_of(len(rows), self.accelerator.num_processes)
        rank = self.accelerator.process_index
        first = sum(shares[:rank])
        own = rows[first : first + shares[rank]]
        batch = self.collator(own, number).to(self.accelerator.device)
        if len(shares) > 1:
            # Asking the other processes would wait for the device.
            batch = replace(batch, everyone=self.collator.present(rows))
        if len(set(shares)) > 1:
            batch = replace(batch, shares=tuple(shares))
        return batch

    def _restore(self, run: ActiveRun) -> None:
        """Continue from the latest checkpoint, if there is one."""
        latest = run.checkpoints.latest()
        if latest is None:
            return
        run.state = run.checkpoints.load(
            latest,
            self.network,
            run.optimizer,
            self.accelerator.device,
            self.accelerator.process_index,
            run.sharded,
        )
        run.scaler.load_state_dict(run.state.scaler)

    def _freeze_unused(self) -> None:
        """Freeze the parameters that do not affect the loss, found by a step on two rows that is thrown away.

        With several processes, such parameters (an unused pooler) would stall the training, which
        waits for their gradients. The step also finds mistakes before any time is spent. The random
        state does not change.
        """
        auxiliary = self.network.head.auxiliary
        weights = dict(auxiliary.named_parameters())
        # Some losses keep vectors and counts from step to step; these must not see this batch.
        memory = {}
        for name, value in auxiliary.state_dict().items():
            if name not in weights:
                memory[name] = value.clone()
        with same_random_state(self.accelerator.device):
            batch = self.collator(self.sampler.batch(0)[:2]).to(self.accelerator.device)
            self.network.train()
            loss, _, _ = self.network(batch)
            loss.backward()
        for parameter in self.network.parameters():
            if parameter.grad is None:
                parameter.requires_grad_(False)
            parameter.grad = None
        auxiliary.load_state_dict(memory, strict=False)


def outcome_of(run: ActiveRun) -> TrainingOutcome:
    """Return the result of a finished run."""
    # Without an evaluation after the first step, no weights were selected.
    selected = run.state.best_score is not None
    return TrainingOutcome(
        steps=run.step,
        best_step=run.state.best_step if selected else None,
        best_score=run.state.best_score,
        first_score=run.state.first_score,
        seconds=run.state.seconds,
    )
