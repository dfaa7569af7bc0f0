"""Train the meaning block that ships.

    python benchmarks/debias/block/train.py ROWS.parquet -o OUT [--minutes 7] [--start BLOCK] [--seed 1]
    python benchmarks/debias/block/train.py ROWS.parquet -o OUT --backbone MPNET --begin-with 64 --keep plain=0.1

ROWS are those of table.py. The untouched model reads every text once, and the states on which the
copied layers run are kept in memory (some 20 GiB for a million texts), so that a step costs the
copied layers alone. A batch has rows whose sentences are near each other: what tells related
sentences from paraphrases is learned from pairs of different rows with cosines of 0.3 to 0.9, and
random rows have none.

With `--small`, the copied layers stay as they are, and are read once: a step then costs the small
parts alone, a fifth of a second on two cores of a CPU.

OUT is the block: a running average of the weights. It is written when the time is over, and with
`--save-every` on the way, as OUT-1, OUT-2 and so on; ship.py measures its strength.

Made for a GPU: on an H100 a step of 4,000 texts takes a tenth of a second.
It runs on a CPU, too.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.debias.meaning_block import MeaningBlock
from opencse.debias.meaning_loss import MeaningLoss, expected, relations
from opencse.encoder import load_encoder

LOSS = MeaningLoss(
    same=(
        *(
            "text",
            "same_paraphrase",
            "reordered",
            "roles_kept",
            "claim_reworded",
            "query_same",
            "passage_same",
        ),
        *("context_same", "same_1", "same_2", "same_3", "same_4"),
    ),
    opposed=(
        ("negation", "negated_paraphrase"),
        ("same_negation", "same_antonym"),
        ("claim_opposed", "claim_opposed_reworded"),
        ("opposed_1", "opposed_2", "opposed_3", "query_opposed", "passage_opposed"),
        ("negative_word",),
        ("antonym_swap",),
        ("opposed_paraphrase",),
        ("context_opposed",),
    ),
    exchanged=(
        "swapped",
        "roles_exchanged",
        "number",
        "entity",
        "claim_exchanged",
        "exchanged_1",
        "exchanged_2",
    ),
    related=("keywords", "related_1", "related_2", "related_3", "long"),
    queries=("question", "topic_question"),
)
SHARES = {
    "plain": 2,
    "patterns": 1.5,
    "rest": 0.7,
    "frames": 4,
    "searches": 4,
    "paraphrases": 3,
    "claims": 1.5,
}
SHARES |= {
    "kind_actions": 2.5,
    "kind_orders": 1.5,
    "kind_limits": 1,
    "kind_constraints": 1.5,
    "kind_prefixes": 1.5,
    "kind_exchanged": 2,
    "kind_amounts": 1.5,
    "questions": 3,
    "articles": 3,
    "passages": 2,
    "claims_short": 0.7,
    "opposites": 1.5,
    "roles": 0.7,
}
"""How often a part of the rows is drawn; 1 for others."""
SEEDS, PER_SEED, MOST_TEXTS = 96, 8, 7
"""Rows that a batch begins with, rows near each of them with itself, and texts of a row."""
NEIGHBOURS, NEAR = 48, (0.25, 0.88)
"""Nearest rows of a row that are kept, and their cosines."""
EXCHANGED_CODES = 0.5
"""Weight of one more loss: codes of texts with other roles, numbers or times should not agree."""
WIDTH = 256
"""Tokens of a text at most."""
LR, HEAD_LR, DROPOUT, AVERAGE, WARM_UP = 4e-4, 1e-3, 0.1, 0.998, 100


@dataclass
class Rows:
    """Token ids of n texts, (n, WIDTH), their lengths, and rows as places of texts by column, -1 for none."""

    tokens: Tensor
    lengths: Tensor
    texts: Tensor
    groups: Tensor
    sources: Tensor
    parts: dict[str, Tensor]


def read_rows(path: Path, tokenizer: Any, device: torch.device, keep: dict[str, float]) -> Rows:
    """Read and tokenise the rows, of some parts a random share."""
    groups = {
        view: number for number, views in enumerate((LOSS.same, *LOSS.opposed)) for view in views
    }
    groups |= (
        dict.fromkeys(LOSS.exchanged, -1)
        | dict.fromkeys(LOSS.related, -2)
        | dict.fromkeys(LOSS.queries, -3)
    )
    table = pq.read_table(path)
    chance = np.random.default_rng(1).random(table.num_rows)
    table = table.filter(
        chance < np.array([keep.get(part, 1.0) for part in table["part"].to_pylist()])
    )
    columns = ["text", *(name for name in table.column_names if name in groups and name != "text")]
    place: dict[str, int] = {}
    texts = np.full((table.num_rows, len(columns)), -1, np.int64)
    for j, column in enumerate(columns):
        for i, text in enumerate(table[column].to_pylist()):
            if text:
                texts[i, j] = place.setdefault(text, len(place))
    known = list(place)
    tokens, lengths = np.zeros((len(known), WIDTH), np.int32), np.zeros(len(known), np.int64)
    for start in range(0, len(known), 20_000):
        some = tokenizer(known[start : start + 20_000], truncation=True, max_length=WIDTH)[
            "input_ids"
        ]
        for i, ids in enumerate(some, start):
            tokens[i, : len(ids)], lengths[i] = ids, len(ids)
    names = np.array(table["part"].to_pylist())
    parts = {
        str(name): torch.from_numpy(np.flatnonzero(names == name)).to(device)
        for name in np.unique(names)
    }
    group = torch.tensor([groups[column] for column in columns])
    arrays = map(torch.from_numpy, (tokens, lengths, texts, np.array(table["source"], np.int64)))
    ids, length, rows, sources = (tensor.to(device) for tensor in arrays)
    return Rows(ids, length, rows, group.to(device), sources, parts)


class Trainer:
    """A block, what the untouched model says of every text, and how to step."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cuda.enable_cudnn_sdp(False)  # it plans again for every shape
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.backends.cuda.enable_flash_sdp(
            self.device.type == "cuda"
        )  # slower on a CPU than plain matrix products
        model = (
            load_encoder(options.backbone, pooling="backbone", device=self.device).float().eval()
        )
        model.requires_grad_(False)
        self.block = MeaningBlock.beside(model)
        if options.start:
            self.block.load_state_dict(MeaningBlock.load(str(options.start)).state_dict())
        self.block.to(self.device)
        self.rows = read_rows(options.rows, model.tokenizer, self.device, dict(options.keep))
        self._read_texts(model)
        self.copies: Tensor | None = (
            None  # what the copied layers say of every text, where they learn no more
        )
        self.nearest, self.first_rows = self._nearest(), options.begin_with
        if not options.start:
            self._begin()
        for name, module in self.block.named_modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0 if name.endswith("attention.self.dropout") else DROPOUT
        self.block.train()
        if options.small:
            self.copies = self._read_copies()
        layers = {id(parameter) for parameter in self.block.copy.parameters()}
        small = [parameter for parameter in self.block.parameters() if id(parameter) not in layers]
        peaks = ([*self.block.copy.parameters()], LR), (small, HEAD_LR)
        rates = [{"params": parameters, "peak": options.rate * peak} for parameters, peak in peaks]
        self.optimizer = torch.optim.AdamW(rates, weight_decay=0.01, betas=(0.9, 0.98))
        self.average = {
            name: tensor.detach().clone() for name, tensor in self.block.state_dict().items()
        }

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16)

    def _batches(self, texts: Tensor, most: int) -> Iterator[tuple[Tensor, int]]:
        """Yield places of texts of similar length, and the longest of them in tokens, in multiples of eight."""
        most = (
            most if self.device.type == "cuda" else 8_000
        )  # as much as the caches of a processor hold
        order = self.rows.lengths[texts].argsort()
        lengths = self.rows.lengths[texts][order].tolist()
        start = 0
        while start < len(lengths):
            end = min(len(lengths), start + max(1, len(lengths) // 6))
            while lengths[end - 1] * (end - start) > most and end > start + 1:
                end = start + (end - start) // 2
            yield order[start:end], min(WIDTH, -(-lengths[end - 1] // 8) * 8)
            start = end

    @torch.no_grad()
    def _read_texts(self, model: Any) -> None:
        """Keep e, the frozen averages and the states of every token of every text."""
        rows, block = self.rows, self.block
        n, width = len(rows.tokens), model[0].auto_model.config.hidden_size
        self.starts = F.pad(rows.lengths.cumsum(0), (1, 0))
        self.states = torch.empty(
            int(self.starts[-1]), width, dtype=torch.bfloat16, device=self.device
        )
        self.e = torch.empty(n, block.config["width"], dtype=torch.float16, device=self.device)
        self.frozen = torch.empty(
            n, width * len(block.averages), dtype=torch.float16, device=self.device
        )
        for texts in torch.arange(n, device=self.device).split(16384):
            for some, longest in self._batches(texts, 300_000):
                chosen = texts[some]
                mask = (
                    torch.arange(longest, device=self.device)[None] < rows.lengths[chosen][:, None]
                )
                inputs = {
                    "input_ids": rows.tokens[chosen, :longest],
                    "attention_mask": mask.long(),
                    "modality": "text",
                }
                with self._autocast():
                    features = model[0](inputs)
                features["token_embeddings"] = features["token_embeddings"].float()
                for module in list(model)[1:]:
                    features = module(features)
                e, frozen = block.read(features)
                self.e[chosen], self.frozen[chosen] = e.half(), frozen.half()
                tokens = (self.starts[chosen][:, None] + torch.arange(longest, device=self.device))[
                    mask
                ]
                self.states[tokens] = features["all_layer_embeddings"][block.first][mask].bfloat16()

    def _nearest(self) -> Tensor:
        """Return the rows whose sentences are nearest to that of each row, -1 where they are too far."""
        e = self.e[self.rows.texts[:, 0]]
        found = []
        for some in e.split(4096):
            cosines = some @ e.T
            values, places = cosines.masked_fill(cosines > NEAR[1], -1).topk(
                min(NEIGHBOURS, len(e)), dim=1
            )
            found.append(places.masked_fill(values < NEAR[0], -1).int())
        return torch.cat(found)

    @torch.no_grad()
    def _standardise(self) -> None:
        texts = self.rows.texts[
            torch.randperm(len(self.rows.texts), device=self.device)[:1500]
        ].flatten()
        texts = texts[texts >= 0][:6000]
        self.block.standardise(self._copied(texts), self.frozen[texts].float())

    def _begin(self, steps: int = 800) -> None:
        """Standardise what the block reads, and fit φ to e alone."""
        self._standardise()
        first, last = self.block.sharpen[0], self.block.sharpen[2]
        d, e = self.e.shape[1], self.e[self.rows.texts[:, 0]]
        optimizer = torch.optim.AdamW(self.block.sharpen.parameters(), lr=1e-3)
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = 1e-3 * min(1, (step + 1) / 50) * (1 - step / steps)
            near = (
                self.nearest[torch.randint(len(e), (16,), device=self.device)]
                .flatten()
                .long()
                .clamp(min=0)
            )
            some = e[torch.cat([torch.randint(len(e), (512,), device=self.device), near])].float()
            hidden = F.relu(F.linear(some * d**0.5, first.weight[:, :d], first.bias))
            topic, c = F.normalize(last(hidden), dim=-1), some @ some.T
            error, other = (
                (topic @ topic.T - expected(c)) ** 2,
                ~torch.eye(len(c), dtype=torch.bool, device=c.device),
            )
            loss = error[other].mean() + 0.3 * error[other & (c > 0.35)].mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            first.weight[:, d:] = 0

    @torch.no_grad()
    def _read_copies(self) -> Tensor:
        """Return what the copied layers say of every text, (texts, 2 width), and forget the states."""
        self.block.copy.eval()
        parts = [
            self._copied(some).half()
            for some in torch.arange(len(self.e), device=self.device).split(4096)
        ]
        del self.states
        return torch.cat(parts)

    def _copied(self, texts: Tensor) -> Tensor:
        """Return what the copied layers say of texts, in their order."""
        if self.copies is not None:
            return self.copies[texts].float()
        parts, order = [], []
        for some, longest in self._batches(texts, 120_000):
            chosen, places = texts[some], torch.arange(longest, device=self.device)
            mask = places[None] < self.rows.lengths[chosen][:, None]
            states = self.states[
                (self.starts[chosen][:, None] + places).clamp(max=len(self.states) - 1)
            ]
            with self._autocast():
                features = {
                    "attention_mask": mask.long(),
                    "all_layer_embeddings": {self.block.first: states},
                }
                parts.append(self.block.copied(features).float())
            order.append(some)
        return torch.cat(parts)[torch.cat(order).argsort()]

    def _draw(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the texts of a batch with their row, group and source."""
        shares = torch.tensor([float(SHARES.get(part, 1)) for part in self.rows.parts])
        drawn = torch.multinomial(shares, self.first_rows, replacement=True).tolist()
        parts = [[*self.rows.parts.values()][i] for i in drawn]
        first = torch.stack(
            [part[torch.randint(len(part), (), device=self.device)] for part in parts]
        )
        near = self.nearest[first].long()
        chance = torch.rand(near.shape, device=self.device).masked_fill(near < 0, -1)
        chosen = chance.topk(min(PER_SEED - 1, near.shape[1]), dim=1)
        near = near.gather(1, chosen.indices)[chosen.values >= 0]
        rows = torch.cat([first, near]).unique()
        texts = self.rows.texts[rows]
        short = self.rows.lengths[texts.clamp(min=0)] < 48
        chance = (torch.rand(texts.shape, device=self.device) + 0.3 * short).masked_fill(
            texts < 0, -1
        )
        chance[:, 0] = 9
        columns = chance.topk(min(MOST_TEXTS, texts.shape[1]), dim=1)
        has = columns.values >= 0
        row = torch.arange(len(rows), device=self.device)[:, None].expand_as(has)[has]
        return (
            texts.gather(1, columns.indices)[has],
            row,
            self.rows.groups[columns.indices][has],
            self.rows.sources[rows][row],
        )

    def step(self, number: int, done: float) -> tuple[int, dict[str, Tensor]]:
        """Take a step; return the number of texts and the parts of the loss."""
        rate = min(1, (number + 1) / WARM_UP) * max(0.02, 0.5 * (1 + math.cos(math.pi * done)))
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak"] * rate
        texts, row, group, source = self._draw()
        e, frozen = self.e[texts].float(), self.frozen[texts].float()
        code, topic, z = self.block.meaning(e, frozen, self._copied(texts))
        related = relations(row, group)
        related = replace(related, generic=related.generic & (source[:, None] != source[None]))
        loss = LOSS.of_vectors(e, z, code, topic, related)
        total = loss.value
        if EXCHANGED_CODES and len(related.exchanged[0]):
            first, second = related.exchanged
            agreement = (code[first] * code[second]).sum(dim=-1)
            total = total + EXCHANGED_CODES * F.relu(agreement).square().mean()
        self.optimizer.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(self.block.parameters(), 1.0)
        self.optimizer.step()
        share = min(AVERAGE, (number + 1) / (number + 20))
        torch._foreach_lerp_(
            [*self.average.values()], [*self.block.state_dict().values()], 1 - share
        )
        return len(texts), loss.reports

    def save(self, out: Path) -> None:
        """Write the block with the average of the weights."""
        out.mkdir(parents=True, exist_ok=True)
        trained = {name: tensor.clone() for name, tensor in self.block.state_dict().items()}
        self.block.load_state_dict(self.average)
        self.block.save(str(out))
        self.block.load_state_dict(trained)


def share(text: str) -> tuple[str, float]:
    """Return a part and a share of its rows."""
    part, _, value = text.partition("=")
    return part, float(value)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--minutes", type=float, default=7)
    parser.add_argument("--start", type=Path, help="folder of a block to go on from")
    parser.add_argument("--rate", type=float, default=1, help="factor of the learning rates")
    parser.add_argument(
        "--small", action="store_true", help="train code, φ and P alone, on copied layers that stay"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--begin-with", type=int, default=SEEDS, help="rows that a batch begins with"
    )
    parser.add_argument(
        "--keep", type=share, action="append", default=[], metavar="PART=SHARE", help="of its rows"
    )
    parser.add_argument(
        "--save-every", type=float, metavar="MINUTES", help="write the block on the way, too"
    )
    options = parser.parse_args()
    trainer, begun, number, seen = Trainer(options), time.time(), 0, 0
    saved = 0
    print(f"{len(trainer.rows.texts)} rows, {len(trainer.rows.tokens)} texts", flush=True)
    while (done := (time.time() - begun) / 60 / options.minutes) < 1:
        texts, reports = trainer.step(number, done)
        number, seen = number + 1, seen + texts
        if number % 10 == 0:
            shown = " ".join(f"{name} {float(value):.3f}" for name, value in reports.items())
            print(f"step {number}, {100 * done:.0f} %, {seen} texts: {shown}", flush=True)
        if options.save_every and (time.time() - begun) / 60 >= options.save_every * (saved + 1):
            saved += 1
            trainer.save(options.out.with_name(f"{options.out.name}-{saved}"))
            print(f"step {number}: saved {options.out.name}-{saved}", flush=True)
    print(f"{number} steps, {seen} texts", flush=True)
    trainer.save(options.out)


if __name__ == "__main__":
    main()
