"""Train a meaning block beside an untouched model.

    python benchmarks/debias/block/train.py ROWS.parquet... -o OUT [--steps 600] [--backbone minilm]

ROWS are mixtures that `opencse run debias` has drawn. Three stages:

1. The untouched model reads every distinct text once; what the block needs is kept beside ROWS, in ROWS.states.
2. φ is fitted to max(c, 0)^k, then all but the copied layers are trained (`--head-steps`): minutes.
3. The copied layers are trained, too (`--steps`).

OUT/checkpoint.pt is written every `--every` steps, and a run that finds one goes on from there. OUT/progress.txt says
how far it is and how long it will take; OUT/model is the model with its block.
"""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
import torch.nn.functional as F
from block_losses import (
    GROUP,
    BlockLoss,
    Relations,
    relations,
    sharpening_loss,
)
from torch import Tensor, nn

from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.meaning_block import MeaningBlock

LONG_SHARE = 0.04
"""Share of the rows that get a long text, of which nothing is claimed: the texts of several rows, joined."""
TOKENS = 1024
"""Tokens of a batch that the untouched model reads."""
WINDOW, RANKS = (0.3, 0.88), 24
"""Cosines and ranks from which a row's related sentences are drawn: nearer ones may say the same."""
PARTS = 4
"""The texts of a step are padded in so many groups of similar length."""


def read_rows(path: Path, rng: random.Random) -> list[dict[str, str]]:
    """Return rows as texts by column; some get a `long` text."""
    records = pq.read_table(path).to_pylist()
    rows = [{name: text for name, text in record.items() if name in GROUP and text} for record in records]
    for row in rows:
        if rng.random() < LONG_SHARE:
            others = [rng.choice(rows)["text"] for _ in range(rng.randrange(2, 5))]
            row["long"] = " ".join([*others, row.get("passage", row["text"])])
    return [row for row in rows if len(row) > 1]


class States:
    """What the block reads of the texts of one file: e, the frozen averages, and the tokens at which the copy starts.

    Args:
        folder: Where it is kept, as float16; read from there if it is complete.
        model: The untouched model.
        block: Its block, for the layers.
        texts: Distinct texts.
        say: Receives the progress.
    """

    def __init__(self, folder: Path, model: Any, block: MeaningBlock, texts: list[str], say: Any) -> None:
        encoded = model[0].tokenizer(texts, truncation=True, max_length=model.max_seq_length)["input_ids"]
        self.lengths = np.array([len(ids) for ids in encoded])
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        width, d = model[0].auto_model.config.hidden_size, model.get_embedding_dimension()
        shapes = {
            "e": (len(texts), d),
            "frozen": (len(texts), width * len(block.averages)),
            "tokens": (int(self.lengths.sum()), width),
        }
        done = (folder / "done").is_file()
        folder.mkdir(exist_ok=True)
        self.arrays = {
            name: np.load(folder / f"{name}.npy", mmap_mode="r")
            if done
            else np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float16, shape)
            for name, shape in shapes.items()
        }
        if not done:
            self._read(model, block, encoded, say)
            (folder / "done").touch()

    @torch.no_grad()
    def _read(self, model: Any, block: MeaningBlock, encoded: list[list[int]], say: Any) -> None:
        first, begun, seen, told = copy.deepcopy(model[0]).bfloat16(), time.time(), 0, time.time()
        order = np.argsort(self.lengths, kind="stable")
        total, start = int(self.lengths.sum()), 0
        while start < len(order):
            some = order[start : start + max(1, TOKENS // int(self.lengths[order[start]]))]
            some = some[self.lengths[some] == self.lengths[some[0]]]  # no padding
            ids = torch.tensor([encoded[i] for i in some])
            features = first({"input_ids": ids, "attention_mask": torch.ones_like(ids), "modality": "text"})
            features["token_embeddings"] = features["token_embeddings"].float()
            for module in list(model)[1:]:
                features = module(features)
            e, frozen = block.read(features)
            self.arrays["e"][some], self.arrays["frozen"][some] = e.numpy(), frozen.numpy()
            state = features["all_layer_embeddings"][block.first].float().numpy()
            for i, one in zip(some, state, strict=True):
                self.arrays["tokens"][self.starts[i] : self.starts[i] + self.lengths[i]] = one
            start, seen = start + len(some), seen + ids.numel()
            if time.time() - told > 30:
                told = time.time()
                say(f"read {start} of {len(order)} texts, {(told - begun) / seen * (total - seen) / 60:.0f} min left")


class AllStates:
    """The states of all files; a text is its place in the concatenation of all, that of its last file.

    Args:
        parts: The texts of each file, and their states.
    """

    def __init__(self, parts: list[tuple[list[str], States]]) -> None:
        self.place = {text: i for i, text in enumerate(text for texts, _ in parts for text in texts)}
        self.e, self.frozen = (np.concatenate([states.arrays[name] for _, states in parts]) for name in ("e", "frozen"))
        self.lengths = np.concatenate([states.lengths for _, states in parts])
        self._tokens = [states.arrays["tokens"] for _, states in parts]
        self._starts = np.concatenate([states.starts for _, states in parts])
        self._file = np.repeat(np.arange(len(parts)), [len(texts) for texts, _ in parts])

    def averages(self, some: np.ndarray) -> tuple[Tensor, Tensor]:
        """Return e and the frozen averages of texts."""
        return torch.from_numpy(self.e[some].astype(np.float32)), torch.from_numpy(self.frozen[some].astype(np.float32))

    def features(self, some: np.ndarray, block: MeaningBlock) -> dict[str, Any]:
        """Return the features of texts as `MeaningBlock.copied` reads them."""
        lengths = self.lengths[some]
        state = np.zeros((len(some), lengths.max(), self._tokens[0].shape[1]), np.float32)
        mask = np.zeros(state.shape[:2], np.int64)
        for row, i in enumerate(some):
            start, length = self._starts[i], self.lengths[i]
            state[row, :length] = self._tokens[self._file[i]][start : start + length]
            mask[row, :length] = 1
        return {
            "attention_mask": torch.from_numpy(mask),
            "all_layer_embeddings": {block.first: torch.from_numpy(state)},
        }


class Trainer:
    """A model, its block, what the block reads, and how to step."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options, self.rows = options, list[dict[str, str]]()
        self.model = load_encoder(options.backbone, pooling="backbone", device="cpu").eval().requires_grad_(False)
        self.block = MeaningBlock.beside(self.model, code=options.code).train()
        self.block.drop.p = options.frozen_dropout
        for module in self.block.copy.modules():
            if isinstance(module, nn.Dropout):
                module.p = options.dropout
        parts = []
        for path in options.rows_files:
            rows = read_rows(path, random.Random(path.name))  # so that its states hold for every run
            texts = sorted({text for row in rows for text in row.values()})
            self.say(f"{path.name}: {len(rows)} rows, {len(texts)} texts")
            parts.append((texts, States(path.with_suffix(".states"), self.model, self.block, texts, self.say)))
            self.rows += rows
        self.states = AllStates(parts)
        self.relate()
        self.loss = BlockLoss(power=options.power)
        copied = {id(parameter) for parameter in self.block.copy.parameters()}
        self.heads = [parameter for parameter in self.block.parameters() if id(parameter) not in copied]
        self.step = 0
        self.begin_stage(options.head_lr)

    def begin_stage(self, head_lr: float) -> None:
        """Start an optimiser of all that this stage trains."""
        groups = [{"params": self.heads, "peak": head_lr}]
        if self.step >= self.options.head_steps:
            groups.append({"params": [*self.block.copy.parameters()], "peak": self.options.lr})
        self.optimizer = torch.optim.AdamW(groups, lr=1e-4, weight_decay=0.01)

    @property
    def copies(self) -> bool:
        """Whether the copied layers are trained by now."""
        return self.step >= self.options.head_steps

    def parts(self, some: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Return e, code and z of texts, in the given order."""
        e, frozen = self.states.averages(some)
        if self.copies:
            order = np.argsort(self.states.lengths[some], kind="stable")
            found = []
            for part in np.array_split(order, min(PARTS, len(order))):
                features = self.states.features(some[part], self.block)
                with torch.autocast("cpu", torch.bfloat16, enabled=self.options.bf16):
                    found.append(self.block.copied(features).float())
            copied = torch.cat(found)[torch.from_numpy(np.argsort(order))]
        else:
            copied = frozen[:, -self.model[0].auto_model.config.hidden_size :]  # as the copy begins
        return e, *self.block.meaning(e, frozen, copied)

    def relate(self) -> None:
        """Give each row without mined sentences two that are near it, of which nothing is claimed."""
        rng = np.random.default_rng(self.options.seed)
        texts = [row["text"] for row in self.rows]
        e = np.asarray(self.states.e[[self.states.place[text] for text in texts]], np.float32)
        for start in range(0, len(e), 512):
            cosines = e[start : start + 512] @ e.T
            cosines[cosines > WINDOW[1]] = -1
            nearest = np.argpartition(-cosines, min(RANKS, len(e) - 1), axis=1)[:, :RANKS]
            for i, near in enumerate(nearest):
                some = [j for j in rng.permutation(near) if cosines[i, j] > WINDOW[0]][:2]
                if "related_1" not in self.rows[start + i]:
                    self.rows[start + i] |= {f"related_{n + 1}": texts[j] for n, j in enumerate(some)}

    def fit_sharpening(self) -> None:
        """Fit φ to max(c, 0)^k; a quarter of each batch are neighbours of one text."""
        some = np.sort(np.random.default_rng(self.options.seed).permutation(len(self.states.e))[:20000])
        e, frozen = self.states.averages(some)
        read = torch.cat([e, frozen, frozen[:, -self.model[0].auto_model.config.hidden_size :]], dim=-1)
        optimizer = torch.optim.AdamW(self.block.sharpen.parameters(), lr=1e-3)
        steps, recent = self.options.sharpen_steps, deque[float](maxlen=100)
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = 1e-3 * min(1, (step + 1) / 50) * (1 - step / steps)
            near = (e @ e[int(torch.randint(len(e), ()))]).topk(64).indices
            chosen = torch.cat([torch.randperm(len(e))[:192], near])
            loss = sharpening_loss(F.normalize(self.block.sharpen(read[chosen]), dim=-1), e[chosen], self.loss.power)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            recent.append(float(loss.detach()))
        self.say(f"sharpening fitted to {np.mean(recent) ** 0.5:.3f}")

    def fit_code(self) -> None:
        """Fit the code to the logistic loss alone, on the frozen averages."""
        self.block.standardise(torch.from_numpy(self.states.frozen.astype(np.float32)))
        steps, recent = self.options.code_steps, deque[float](maxlen=100)
        optimizer = torch.optim.AdamW(self.block.code.parameters(), lr=1e-3, weight_decay=0.05)
        width = self.model[0].auto_model.config.hidden_size
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = 2e-3 * min(1, (step + 1) / 50) * (1 - step / steps)
            some, related = self.draw(self.options.head_rows, f"code {step}")
            _, frozen = self.states.averages(some)
            loss = self.loss.of_code(self.block.codes(frozen, frozen[:, -width:]), related)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            recent.append(float(loss.detach()))
        self.say(f"code fitted to {np.mean(recent):.3f}")

    def draw(self, size: int, salt: str) -> tuple[np.ndarray, Relations]:
        """Return the texts of rows drawn at random, and how they are related."""
        chosen = random.Random(f"{self.options.seed} {salt}").sample(self.rows, size)
        texts = [(i, name, text) for i, row in enumerate(chosen) for name, text in row.items()]
        rows, groups = (torch.tensor(each) for each in zip(*((i, GROUP[name]) for i, name, _ in texts), strict=True))
        return np.array([self.states.place[text] for _, _, text in texts]), relations(rows, groups)

    def train_step(self) -> dict[str, float]:
        """Take one step, and return the parts of the loss."""
        options = self.options
        if self.step == options.head_steps:
            self.begin_stage(options.head_lr / 3)
        done, size = self.step / options.head_steps, options.head_rows
        if self.copies:
            done, size = (self.step - options.head_steps) / options.steps, options.rows
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * min(1, (done + 1e-3) / 0.06) * (1 - done)
        some, related = self.draw(size, str(self.step))
        parts = self.parts(some)
        loss, reports = self.loss(*parts, related)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.block.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        return reports

    def save(self) -> None:
        """Write the checkpoint."""
        path = self.options.out / "checkpoint.pt"
        state = {"block": self.block.state_dict(), "optimizer": self.optimizer.state_dict(), "step": self.step}
        torch.save(state, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one."""
        path = self.options.out / "checkpoint.pt"
        if not path.is_file():
            return False
        state = torch.load(path, weights_only=True)
        self.block.load_state_dict(state["block"])
        self.step = state["step"]
        if self.step != self.options.head_steps:  # there the next stage begins
            self.begin_stage(self.options.head_lr / (3 if self.copies else 1))
            self.optimizer.load_state_dict(state["optimizer"])
        return True

    def save_model(self) -> None:
        """Write the model with its block."""
        save_encoder(copy.deepcopy(self.model).append(self.block), self.options.out / "model")

    def say(self, line: str) -> None:
        """Add a line to the progress."""
        with (self.options.out / "progress.txt").open("a", encoding="utf-8") as file:
            file.write(f"{time.strftime('%H:%M:%S')} {line}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows_files", nargs="+", type=Path, metavar="ROWS.parquet")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--rows", type=int, default=24, help="rows in a step")
    parser.add_argument("--head-steps", type=int, default=1200)
    parser.add_argument("--head-rows", type=int, default=48)
    parser.add_argument("--lr", type=float, default=2e-4, help="of the copied layers")
    parser.add_argument("--head-lr", type=float, default=1e-3)
    parser.add_argument("--code", type=int, default=8)
    parser.add_argument("--dropout", type=float, default=0.1, help="in the copied layers")
    parser.add_argument("--frozen-dropout", type=float, default=0.2, help="of the frozen averages that the code reads")
    parser.add_argument("--power", type=float, default=4.0, help="k")
    parser.add_argument("--code-steps", type=int, default=3000)
    parser.add_argument("--sharpen-steps", type=int, default=1000)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    trainer = Trainer(options)
    if not trainer.resume():
        trainer.fit_code()
        trainer.fit_sharpening()
    total = options.head_steps + options.steps
    begun, at, recent = time.time(), trainer.step, deque[dict[str, float]](maxlen=options.every)
    while trainer.step < total:
        recent.append(trainer.train_step())
        if trainer.step == options.head_steps:
            begun, at = time.time(), trainer.step  # the next stage has another pace
        if trainer.step % options.every == 0 or trainer.step in (options.head_steps, total):
            trainer.save()
            end = total if trainer.copies else options.head_steps
            left = (time.time() - begun) / max(trainer.step - at, 1) * (end - trainer.step)
            means = {name: np.mean([one[name] for one in recent]) for name in recent[0]}
            shown = " ".join(f"{name} {value:.4f}" for name, value in means.items())
            trainer.say(f"step {trainer.step} of {total}, this stage {left / 60:.0f} min more: {shown}")
            if trainer.step % (10 * options.every) == 0 or trainer.step == options.head_steps:
                trainer.save_model()
    trainer.save_model()


if __name__ == "__main__":
    main()
