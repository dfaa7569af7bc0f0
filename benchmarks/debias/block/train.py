"""Train the meaning block that ships, in one run of chosen length.

    python benchmarks/debias/block/train.py ROWS.parquet[=WEIGHT]... -o OUT [--minutes 60] [--backbone minilm]

ROWS have a column `text`, and views of it in columns of the groups below: rows of `opencse run debias`, and those that
rows.py writes from patterns and from a list of antonyms. A file is drawn as often as its weight says (1).

The untouched model reads a text when it is met first; its states are kept in memory, so that texts that come again cost
half. A batch has groups of rows whose sentences are near each other: what tells related sentences from paraphrases is
learned from pairs of different rows with cosines of 0.3 to 0.9, and random rows have none. Beside each step, the small
parts of the block take one on three of the last batches, whose features were kept.

OUT/checkpoint.pt is written every 50 steps, and a run that finds one goes on from there, with what is left of its time.
OUT/block is the block: a running average of the weights. ship.py measures its strength.
"""

from __future__ import annotations

import argparse
import copy
import random
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.encoder import load_encoder
from opencse.encoder.meaning_block import MeaningBlock
from opencse.losses.meaning import MeaningLoss, Relations, relations, sharpening_loss

SAME = ("text", "paraphrase", "paraphrase_2", "same_paraphrase", "reordered", "roles_kept", "claim_reworded")
OPPOSED = (
    ("negation", "negated_paraphrase"),
    ("same_negation", "same_antonym"),
    ("claim_opposed", "claim_opposed_reworded"),
    ("opposed_1", "opposed_2", "opposed_3"),
    ("negative_word",),
    ("antonym_swap",),
    ("opposed_paraphrase",),
)
EXCHANGED = ("swapped", "roles_exchanged", "number", "entity", "claim_exchanged", "exchanged_1", "exchanged_2")
RELATED = ("related_1", "related_2", "related_3", "question", "topic_question", "keywords", "passage", "long")
LOSS = MeaningLoss(
    same=(*SAME, "same_1", "same_2", "same_3"),
    opposed=OPPOSED,
    exchanged=EXCHANGED,
    related=RELATED,
    exchanged_weight=4.0,
)
GROUPS, PER_GROUP, MOST_TEXTS = 5, 5, 6
NEAR, RANKS = (0.3, 0.88), 60
"""Cosines and ranks from which a group's rows are drawn."""
TOKENS = 1600
"""Tokens that run at once."""
WARM_UP, EVERY, AVERAGE = 60, 50, 0.995
LR, HEAD_LR, DROPOUT = 2e-4, 1e-3, 0.1
Row = dict[str, str]


class Rows:
    """The rows of all files, drawn file by file without repeats until a file has been seen."""

    def __init__(self, files: list[str], encode: Any, rng: random.Random) -> None:
        self._rng, self._rows, self._weights, self._next = rng, list[list[Row]](), list[float](), list[int]()
        known = {column for group in (LOSS.same, *OPPOSED, EXCHANGED, RELATED) for column in group}
        for file in files:
            path, _, weight = file.partition("=")
            records = pq.read_table(path).to_pylist()
            rows = [{c: t for c, t in record.items() if c in known and t} for record in records]
            rows = [row for row in rows if len(row) > 1]
            rng.shuffle(rows)
            self._rows.append(rows)
            self._weights.append(float(weight or 1))
            self._next.append(0)
        self._all = [row for rows in self._rows for row in rows]
        self._e = encode([row["text"] for row in self._all])
        self._place = {id(row): i for i, row in enumerate(self._all)}

    def batch(self) -> list[Row]:
        """Return groups of rows near each other; some get a long text, of which nothing is claimed."""
        rows: list[Row] = []
        for _ in range(GROUPS):
            first = self._draw()
            c = self._e @ self._e[self._place[id(first)]]
            c[c > NEAR[1]] = -1
            ranked = np.argpartition(-c, min(RANKS, len(c) - 1))[:RANKS]
            near = [self._all[i] for i in ranked if c[i] > NEAR[0] and self._short(self._all[i])]
            self._rng.shuffle(near)
            group = [self._at_most(row) for row in (first, *near[: PER_GROUP - 1])]
            more = near[PER_GROUP - 1 : PER_GROUP + 2]
            if len(more) == 3 and self._rng.random() < 0.5:
                group[-1]["long"] = " ".join(row["text"] for row in more)
            rows += group
        return rows

    def _draw(self) -> Row:
        file = self._rng.choices(range(len(self._rows)), self._weights)[0]
        while True:
            row = self._rows[file][self._next[file] % len(self._rows[file])]
            self._next[file] += 1
            if self._short(row):
                return row

    def _short(self, row: Row) -> bool:
        return self._rng.random() < (13 / len(row["text"].split())) ** 1.5  # costs go by tokens

    def _at_most(self, row: Row) -> Row:
        others = [column for column in row if column != "text"]
        chosen = {"text", *self._rng.sample(others, min(MOST_TEXTS - 1, len(others)))}
        return {column: text for column, text in row.items() if column in chosen}


@dataclass
class Read:
    """What the block reads of a text: e, the frozen averages, and the state on which the copied layers run."""

    e: Tensor
    frozen: Tensor
    state: Tensor


class Reader:
    """The untouched model, and what it has read."""

    def __init__(self, model: Any, block: MeaningBlock) -> None:
        self.model, self.block, self._read = copy.deepcopy(model), block, dict[str, Read]()
        self.model[0].bfloat16()

    @torch.no_grad()
    def __call__(self, texts: list[str], keep: bool = True) -> list[Read]:
        """Return what the block reads of each text."""
        found = self._read if keep else {}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        encoded = self.model[0].tokenizer(new, truncation=True, max_length=self.model.max_seq_length)["input_ids"]
        for some in batches([len(ids) for ids in encoded]):
            longest = max(len(encoded[i]) for i in some)
            ids = torch.tensor([encoded[i] + [0] * (longest - len(encoded[i])) for i in some])
            mask = torch.tensor([[1] * len(encoded[i]) + [0] * (longest - len(encoded[i])) for i in some])
            features = self.model[0]({"input_ids": ids, "attention_mask": mask, "modality": "text"})
            features["token_embeddings"] = features["token_embeddings"].float()
            for module in list(self.model)[1:]:
                features = module(features)
            e, frozen = self.block.read(features)
            states = features["all_layer_embeddings"][self.block.first]
            for row, i in enumerate(some):
                state = states[row, : len(encoded[i])].clone()
                found[new[i]] = Read(e[row].half(), frozen[row].half(), state)
        return [found[text] for text in texts]

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return e of texts, float32, without keeping states."""
        parts = [self(texts[start : start + 2048], keep=False) for start in range(0, len(texts), 2048)]
        return torch.stack([read.e for part in parts for read in part]).float().numpy()


def batches(lengths: list[int]) -> list[list[int]]:
    """Return the places of texts in batches of similar length."""
    found: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        last = found[-1] if found else []
        if not last or lengths[i] * (len(last) + 1) > TOKENS or lengths[i] > 1.25 * lengths[last[0]] + 1:
            found.append([i])
        else:
            last.append(i)
    return found


def copied(block: MeaningBlock, reads: list[Read]) -> Tensor:
    """Return what the copied layers give for each text, in order."""
    parts, order = [], []
    for some in batches([len(read.state) for read in reads]):
        state = nn.utils.rnn.pad_sequence([reads[i].state for i in some], batch_first=True)
        mask = torch.tensor([len(reads[i].state) for i in some])[:, None] > torch.arange(state.shape[1])
        with torch.autocast("cpu", torch.bfloat16):
            features = {"attention_mask": mask.long(), "all_layer_embeddings": {block.first: state.float()}}
            parts.append(block.copied(features).float())
        order += some
    return torch.cat(parts)[torch.tensor(order).argsort()]


class Trainer:
    """A block, its rows, and how to step."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.options, self.rng, self.step, self.used = options, random.Random(options.seed), 0, 0.0
        model = load_encoder(options.backbone, pooling="backbone", device="cpu").eval().requires_grad_(False)
        self.block = MeaningBlock.beside(model).train()
        self.block.drop.p = DROPOUT
        for module in self.block.copy.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        self.reader = Reader(model, self.block)
        self.rows = Rows(options.rows, self.reader.encode, self.rng)
        layers = {id(parameter) for parameter in self.block.copy.parameters()}
        self.small = [parameter for parameter in self.block.parameters() if id(parameter) not in layers]
        rates = [{"params": [*self.block.copy.parameters()], "peak": LR}, {"params": self.small, "peak": HEAD_LR}]
        self.all_parts = torch.optim.AdamW(rates, weight_decay=0.01, betas=(0.9, 0.98))
        self.small_parts = torch.optim.AdamW([dict(rates[1])], weight_decay=0.01, betas=(0.9, 0.98))
        self.recent = deque[tuple[Tensor, Tensor, Tensor, Tensor, Tensor]](maxlen=80)
        if not self.resume():
            self.begin()
        self.average = getattr(self, "average", None) or copy.deepcopy(self.block.state_dict())

    def begin(self) -> None:
        """Fit φ to e alone, and standardise what the block reads."""
        first, last, e = self.block.sharpen[0], self.block.sharpen[2], torch.from_numpy(self.rows._e)
        first.weight.data[:, e.shape[1] :] = 0
        optimizer, steps = torch.optim.AdamW(self.block.sharpen.parameters(), lr=1e-3), 600
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = 1e-3 * min(1, (step + 1) / 50) * (1 - step / steps)
            near = (e @ e[torch.randint(len(e), (2,))].T).topk(min(48, len(e)), dim=0).indices.flatten()
            some = e[torch.cat([torch.randint(len(e), (160,)), near])]
            hidden = F.linear(some * e.shape[1] ** 0.5, first.weight[:, : e.shape[1]], first.bias)
            loss = sharpening_loss(F.normalize(last(F.relu(hidden)), dim=-1), some, LOSS.power)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        first.weight.data[:, e.shape[1] :] = 0
        reads = self.reader([text for _ in range(3) for row in self.rows.batch() for text in row.values()])
        with torch.no_grad():
            self.block.standardise(copied(self.block, reads), torch.stack([read.frozen for read in reads]).float())

    def train_step(self, done: float) -> dict[str, float]:
        """Take one step, and one of the small parts; return the parts of the loss."""
        rate = min(1, (self.step + 1) / WARM_UP) * max(0.02, 1 - done)
        for group in (*self.all_parts.param_groups, *self.small_parts.param_groups):
            group["lr"] = group["peak"] * rate
        texts = [(i, column, text) for i, row in enumerate(self.rows.batch()) for column, text in row.items()]
        number = dict(LOSS._groups())
        row, group = torch.tensor([i for i, _, _ in texts]), torch.tensor([number[column] for _, column, _ in texts])
        reads = self.reader([text for _, _, text in texts])
        e, frozen = (torch.stack([getattr(read, name) for read in reads]).float() for name in ("e", "frozen"))
        features = copied(self.block, reads)
        reports = self.apply(self.all_parts, e, frozen, features, relations(row, group))
        self.recent.append((row, group, e.half(), frozen.half(), features.detach().half()))
        if len(self.recent) >= 10:
            some = self.rng.sample(self.recent, 3)
            row, group, e, frozen, features = (torch.cat(parts) for parts in zip(*some, strict=True))
            row = row + 1000 * torch.arange(3).repeat_interleave(torch.tensor([len(one[0]) for one in some]))
            noisy = features.float() + 0.002 * torch.randn(features.shape)
            self.apply(self.small_parts, e.float(), frozen.float(), noisy, relations(row, group))
        self.step += 1
        share = min(AVERAGE, (self.step + 1) / (self.step + 20))
        for name, tensor in self.block.state_dict().items():
            self.average[name].lerp_(tensor, 1 - share)
        return reports

    def apply(
        self, optimizer: Any, e: Tensor, frozen: Tensor, features: Tensor, related: Relations
    ) -> dict[str, float]:
        """Take a step on the loss of texts, and return its parts."""
        code, topic, z = self.block.meaning(e, frozen, features)
        loss = LOSS.of_vectors(e, z, code, topic, related)
        optimizer.zero_grad()
        loss.value.backward()
        nn.utils.clip_grad_norm_(self.block.parameters(), 1.0)
        optimizer.step()
        return {name: float(value) for name, value in loss.reports.items()}

    def save(self, seconds: float) -> None:
        """Write the checkpoint, and the block with the average of the weights."""
        path = self.options.out / "checkpoint.pt"
        names = ("all_parts", "small_parts", "block")
        state = {name: getattr(self, name).state_dict() for name in names}
        torch.save(state | {"average": self.average, "step": self.step, "used": seconds}, path.with_suffix(".new"))
        path.with_suffix(".new").replace(path)
        block = copy.deepcopy(self.block)
        block.load_state_dict(self.average)
        (self.options.out / "block").mkdir(exist_ok=True)
        block.save(str(self.options.out / "block"))

    def resume(self) -> bool:
        """Go on from the checkpoint, if there is one."""
        path = self.options.out / "checkpoint.pt"
        if not path.is_file():
            return False
        state = torch.load(path, weights_only=True)
        for name in ("all_parts", "small_parts", "block"):
            getattr(self, name).load_state_dict(state[name])
        self.average, self.step, self.used = state["average"], state["step"], state["used"]
        self.rng.seed(self.options.seed + self.step)
        return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="+", metavar="ROWS.parquet[=WEIGHT]")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    trainer, begun = Trainer(options), time.time()
    while (seconds := trainer.used + time.time() - begun) < 60 * options.minutes:
        reports = trainer.train_step(seconds / 60 / options.minutes)
        if trainer.step % EVERY == 0:
            trainer.save(seconds)
            shown = " ".join(f"{name} {value:.3f}" for name, value in reports.items())
            print(f"step {trainer.step}, {seconds / 60:.0f} min: {shown}", flush=True)
    trainer.save(seconds)


if __name__ == "__main__":
    main()
