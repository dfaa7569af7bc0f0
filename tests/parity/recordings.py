"""Recordings of the authors' own code, and opencse trained on the same inputs.

The recordings are no part of the project: `$OPENCSE_PARITY`, or `shared/parity` next to the
checkout. Their README describes the files. `replay` runs a recipe through `train_encoder`; only what
is random is replaced: the order of the rows, the weights of new heads, and every draw.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

from opencse.encoder.backbone import Backbone
from opencse.encoder.dropout import set_rates
from opencse.encoder.embedder import Embedder
from opencse.encoder.loading import attends_to_padding, load_encoder
from opencse.encoder.prompts import TemplateDenoising
from opencse.evaluation.evaluators import one_batch
from opencse.evaluation.sts import spearman
from opencse.foundation.evaluator import Evaluators
from opencse.losses import MarginInfoNCELoss, negatives, replaced_tokens
from opencse.recipes import Recipe, load_recipe
from opencse.text.corpus import Corpus
from opencse.training import batches, train, trained_model, training_text
from opencse.training.network import Network
from opencse.training.session import RunControl
from opencse.training.train import train_encoder

SYSTEMS = (
    "simcse",
    "diffcse",
    "promptbert",
    "promptbert-roberta",
    "esimcse",
    "sncse",
    "rankcse-listmle",
    "rankcse-listnet",
    "san-simcse",
    "san-sncse",
    "san-rankcse",
    "san-rlrd",
    "dclr",
)
_ENCODER, _GENERATOR, _DISCRIMINATOR, _TEMPLATE = 1, 2, 3, 4
"""The phases of the recordings' rule for dropout masks; view v's template is `_TEMPLATE + v`."""
_RECORDED_BATCH = 128
_ROUNDING = 1e-8
"""Norm of a tensor's update below which it is rounding noise."""
_LONGEST = 64  # the rule draws masks for sequences of this length and cuts them


def find_recordings() -> Path | None:
    """Return the folder of the recordings, or None if there is none."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "parity"
    folder = Path(os.environ.get("OPENCSE_PARITY") or beside)
    return folder if (folder / "manifest.json").is_file() else None


def find_data() -> Path | None:
    """Return the folder of the real data that the recordings name, or None if there is none."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("OPENCSE_DATA") or beside)
    return folder if (folder / "eval").is_dir() else None


@dataclass(frozen=True)
class Recording:
    """What the authors' code computed for one system.

    Attributes:
        name: The system.
        folder: The folder of the recordings.
        data: The folder of the data that the recording names.
    """

    name: str
    folder: Path
    data: Path

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The settings, rows, draws and results."""
        return json.loads((self.folder / f"{self.name}.json").read_text(encoding="utf-8"))

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Initial heads, tables of draws, and vectors."""
        return load_file(self.folder / f"{self.name}.safetensors")

    @property
    def backbone(self) -> str:
        """The backbone that opencse is to train."""
        if "backbone" in self.meta["opencse"]:
            return str(self.folder / self.meta["opencse"]["backbone"])
        return "mini-mlm"

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer of the backbone."""
        return load_encoder(self.backbone, pooling="cls").tokenizer

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        """The training rows with all their columns."""
        text = self.meta["text"]
        with gzip.open(self.data / text["file"], "rt", encoding="utf-8") as file:
            lines = [line.rstrip("\n") for line in file]
        rows = [{"text": lines[number - 1]} for number in text["lines"]]
        # `san-rankcse` asks for a column of negations that no loss reads.
        for column in ("negation", "substitution"):
            texts = self._column(column, len(rows)) or [row["text"] for row in rows]
            for row, cell in zip(rows, texts, strict=True):
                row[column] = cell
        return rows

    def _column(self, column: str, count: int) -> list[str]:
        if f"text.{column}.ids" not in self.tensors:
            return []
        lengths = self.tensors[f"text.{column}.lengths"].tolist()
        ids = self.tensors[f"text.{column}.ids"].split(lengths)
        assert len(ids) == count
        options = {"clean_up_tokenization_spaces": False}
        return [self.tokenizer.decode(part.tolist(), **options) for part in ids]

    @cached_property
    def dev_pairs(self) -> tuple[list[str], list[str], np.ndarray]:
        """First sentences, second sentences and scores of the development pairs."""
        settings = self.meta["dev_set"]
        with gzip.open(self.data / settings["file"], "rt", encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        places = [lines[0].index(column) for column in settings["columns"]]
        first, last = settings["lines"]
        cells = [[line[place] for place in places] for line in lines[first - 1 : last]]
        texts = [[" ".join(row[i].split()) for row in cells] for i in (0, 1)]
        return texts[0], texts[1], np.array([float(row[2]) for row in cells])

    def recipe(self, *overrides: str) -> Recipe:
        """Return the faithful recipe with the settings of the recording, and every step in the log."""
        settings = self.meta["opencse"]
        base = [
            *_today(settings["set"]),
            "training.log_every=1",
            "training.checkpoint_every=0",
        ]
        recipe = load_recipe(
            settings["recipe"], family=settings["family"], variant=settings["variant"]
        )
        for name, view in recipe.used_views.items():
            if view.dropout is not None:
                base.append(f"views.{name}.dropout=0.0")
        return load_recipe(
            settings["recipe"],
            family=settings["family"],
            variant=settings["variant"],
            overrides=[*base, *overrides],
        )

    def result(self, run: str) -> dict[str, Any]:
        """Return what one of the authors' runs gave."""
        return self.meta["results"][run]


@dataclass
class Replay:
    """What opencse computed from the inputs of a recording.

    Attributes:
        log: For each step, its line in `metrics.jsonl`: loss, unweighted losses, gradient norm, rate.
        development: Spearman correlation on the development pairs by step.
        evaluated: The steps at which training evaluated.
        start: The weights before the first step, by the recording's names.
        weights: The weights after the last step.
        embeddings: The vectors of the recording's evaluation sentences by step.
        tokens: crc32 of the token ids of each row, by view.
        best_step: The step whose weights are kept.
    """

    log: list[dict[str, float]] = field(default_factory=list)
    development: dict[int, float] = field(default_factory=dict)
    evaluated: list[int] = field(default_factory=list)
    start: dict[str, Tensor] = field(default_factory=dict)
    weights: dict[str, Tensor] = field(default_factory=dict)
    embeddings: dict[int, np.ndarray] = field(default_factory=dict)
    tokens: dict[str, dict[int, int]] = field(default_factory=dict)
    best_step: int | None = None

    def values(self, name: str) -> list[float]:
        """Return a quantity of the log at every step."""
        return [line[name] for line in self.log]


def replay(
    recording: Recording,
    run: str,
    folder: Path,
    *overrides: str,
    precision: str = "fp64",
    evaluate: bool = True,
    steps: int | None = None,
) -> Replay:
    """Train opencse on the inputs of a recording.

    Args:
        recording: The recording.
        run: The name of the authors' run whose draws are used.
        folder: An empty folder for the corpus and the run.
        *overrides: Further settings of the recipe.
        precision: `fp64` converts the network to double before the first step; or `fp32`.
        evaluate: Embed the development pairs; else every score is the number of the step.
        steps: Stop after so many steps, whose rates are those of the complete run.
    """
    player = _Player(recording, run, precision, evaluate)
    if steps is not None:
        player.limit = min(steps, player.limit)
    return player.play(folder, overrides)


class _EnoughSteps(Exception):
    """Ends a replay before its last step."""


class _Player:
    """One replay: the state that its patches share."""

    def __init__(self, recording: Recording, run: str, precision: str, evaluate: bool) -> None:
        self.recording = recording
        self.run = run
        self.double = precision == "fp64"
        self.evaluate = evaluate
        self.limit = len(self.batches)
        self.with_dropout = run.startswith("dropout0.1")
        self.replay = Replay()
        self.network: Network | None = None
        self.scored: Any = None
        self.step = 0
        self.steps_done = 0
        self._repetitions: Iterator[int] = iter(())
        self.masks = _DropoutMasks()

    @property
    def batches(self) -> list[list[int]]:
        return self.recording.meta["batches"]

    def play(self, folder: Path, overrides: Sequence[str]) -> Replay:
        corpus = folder / "corpus.jsonl"
        with corpus.open("w", encoding="utf-8") as file:
            for row in self.recording.rows:
                file.write(json.dumps(row) + "\n")
        recipe = self.recording.recipe(*overrides)
        control = RunControl(folder=folder / "run", progress=False)
        handle = register_optimizer_step_post_hook(self._after_step)
        try:
            with self._patched():
                backbone = Backbone(self.recording.backbone)
                evaluators = Evaluators(development=self)
                run = train_encoder(recipe, Corpus(corpus), backbone, evaluators, control)
                self.replay.best_step = run.outcome.best_step
        except _EnoughSteps:
            pass
        finally:
            handle.remove()
        lines = (folder / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        self.replay.log = [line for line in map(json.loads, lines) if "loss" in line]
        if self.evaluate and self.limit == len(self.batches):
            self._score_last_weights()
        return self.replay

    @contextmanager
    def _patched(self) -> Iterator[None]:
        with ExitStack() as stack:

            def replace(owner: Any, name: str, value: Any) -> None:
                stack.enter_context(patch.object(owner, name, value))

            replace(batches.BatchSampler, "batch", lambda sampler, step: self._rows_of_step(step))
            replace(Network, "__init__", self._built(Network.__init__))
            replace(Network, "forward", self._passed(Network.forward))
            replace(replaced_tokens, "mask_tokens", self._masked(replaced_tokens.mask_tokens))
            replace(batches, "_with_repetitions", self._repeated)
            replace(negatives, "start_at_random", self._momentum_start)
            replace(negatives, "normal_noise", self._noise)
            if self.with_dropout:
                # It encodes before the first batch, so the rule has no masks for it.
                replace(train, "check_same_vectors", lambda *_, **__: None)
                replace(trained_model, "prepare_for_training", lambda encoder, packed: False)
                replace(training_text, "_CPU_TOKENS", None)
                replace(replaced_tokens, "_ROWS", 1 << 20)
                fill = replaced_tokens.TokenGenerator.fill
                replace(replaced_tokens.TokenGenerator, "fill", self._filled(fill))
                replace(TemplateDenoising, "delta", self._template(TemplateDenoising.delta))
                stack.enter_context(self.masks.active())
            yield

    # The development measure of the run.

    def start(self, encoder: Any) -> None:
        self.scored = encoder

    def scores(self) -> dict[str, float]:
        self.replay.evaluated.append(self.steps_done)
        return {"recording": self._evaluate()}

    def _evaluate(self) -> float:
        """Embed the recording's sentences and pairs with the current weights; return the score."""
        if not self.evaluate:
            return float(self.steps_done)
        rows = self.recording.meta["eval_sentences"]
        sentences = [self.recording.rows[row]["text"] for row in rows]
        self.replay.embeddings[self.steps_done] = self._embed(sentences)
        first, second, gold = self.recording.dev_pairs
        texts = [*first, *second]
        if attends_to_padding(self.scored):
            vectors = self._embed_in_batches(texts)
        else:
            vectors = self._embed(texts)
        a, b = np.split(vectors, 2)
        cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
        score = spearman(gold, cosines)
        assert score is not None
        self.replay.development[self.steps_done] = score
        return score

    def _embed(self, texts: Sequence[str]) -> np.ndarray:
        with self.masks.inactive():
            return Embedder(self.scored).encode(list(texts))

    def _embed_in_batches(self, texts: Sequence[str]) -> np.ndarray:
        """Embed texts in their order, in batches that are padded to their longest text.

        So did the recordings. Their README does not say it: of 40 orders and sizes that were
        tried, only this one gives DCLR's scores, and it gives them exactly.
        """
        parts = []
        with self.masks.inactive():
            for start in range(0, len(texts), _RECORDED_BATCH):
                parts.append(one_batch(self.scored, texts[start : start + _RECORDED_BATCH]))
        return np.concatenate(parts)

    def _score_last_weights(self) -> None:
        """Evaluate after the last step, which training need not do."""
        assert self.network is not None
        self.network.load_state_dict(self.last_state)
        self._evaluate()

    # What replaces a draw.

    def _rows_of_step(self, step: int) -> np.ndarray:
        self.step = step
        self._repetitions = iter(self.batches[step])
        return np.array(self.batches[step])

    def _built(self, build: Callable[..., None]) -> Callable[..., None]:
        def init(network: Network, *args: Any, **kwargs: Any) -> None:
            build(network, *args, **kwargs)
            self.network = network
            self._load_heads(network)
            if self.double:
                network.double()
            parts = [network, *_generators(network)]
            for part in parts:
                set_rates(part, 0.1 if self.with_dropout else 0.0)
            if self.with_dropout:
                self.masks.attach(network, self._encoder_rows)
            self.replay.start = self._named_weights(network)

        return init

    def _load_heads(self, network: Network) -> None:
        tensors = self.recording.tensors
        projector = _with_prefix(tensors, "init.head.")
        pooler = _with_prefix(tensors, "init.head_pooler.")
        if pooler:
            network.head.projector[0].load_state_dict(pooler)
            network.head.projector[2].load_state_dict(
                {key.partition(".")[2]: value for key, value in projector.items()}
            )
            for module in network.head.modules_by_loss.values():
                module.complementary.module.pooler.dense.load_state_dict(pooler)
        else:
            network.head.projector.load_state_dict(projector)
        detector = _with_prefix(tensors, "init.detector.")
        if detector:
            module = network.head.modules_by_loss["replaced_token_detection"]
            module.predict.head.load_state_dict(detector)

    def _named_weights(self, network: Network) -> dict[str, Tensor]:
        pooler = "init.head_pooler.weight" in self.recording.tensors
        return _named_weights(network, pooler)

    def _passed(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        def passed(network: Network, batch: Any, step: int = 0) -> Any:
            self.step, self.batch = step, batch
            if batch.rows == len(self.batches[step]) and step == self.steps_done:
                if step == self.limit:
                    raise _EnoughSteps
                self._note_tokens(batch, self.batches[step])
            return forward(network, batch, step)

        return passed

    def _note_tokens(self, batch: Any, rows: Sequence[int]) -> None:
        for part in batch.passes:
            ids = [row for group in part.groups for row in group[0]]
            for slot, tokens, length in zip(
                part.slots.tolist(), ids, part.lengths.tolist(), strict=True
            ):
                view, place = divmod(slot, batch.rows)
                seen = self.replay.tokens.setdefault(batch.views[view], {})
                seen[rows[place]] = crc(tokens[:length].tolist())

    def _masked(self, original: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def masked(ids: Tensor, *args: Any) -> Tensor:
            if "masked" not in self.recording.tensors or self.batch.rows != len(
                self.batches[self.step]
            ):
                return original(ids, *args)
            table = self.recording.tensors["masked"]
            table = table[table[:, 0] == self.step].long()
            table = table[table[:, 4] >= 0]
            changed = ids.clone()
            changed[table[:, 1] * self.batch.rows + table[:, 2], table[:, 3]] = table[:, 4]
            return changed

        return masked

    def _repeated(
        self, content: np.ndarray, share: float, special: int, prompt: int = 0
    ) -> np.ndarray:
        # The collator asks for the rows of a batch in their order.
        row = next(self._repetitions)
        times = np.ones(len(content), dtype=np.int64)
        table = self.recording.tensors["repeated"]
        for position in table[table[:, 0] == row][:, 1].tolist():
            times[position - 1] += 1
        return np.repeat(content, times)

    def _momentum_start(self, encoder: torch.nn.Module, seed: int) -> None:
        parameters = dict(encoder[0].auto_model.named_parameters())
        for i, name in enumerate(sorted(parameters)):
            weight = parameters[name]
            if weight.ndim > 1:
                draws = np.random.RandomState(1000 + i).standard_normal(tuple(weight.shape)) * 0.02
                weight.data.copy_(torch.from_numpy(draws.astype(np.float32)))
            else:
                weight.data.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)

    def _noise(self, count: int, width: int, step: int) -> Tensor:
        return self.recording.tensors["noise"][step].double()[:count]

    # What replaces a dropout mask.

    def _encoder_rows(self) -> Sequence[int]:
        return self.batch.passes[0].slots.tolist()

    def _filled(self, fill: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def filled(generator: Any, ids: Tensor, mask: Tensor, *args: Any) -> Tensor:
            self.masks.generator_rows = mask.sum(1).sort(stable=True).indices.tolist()
            return fill(generator, ids, mask, *args)

        return filled

    def _template(self, delta: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def templated(denoiser: Any, lengths: Tensor) -> Tensor:
            view = list(self.network._denoisers.values()).index(denoiser)  # type: ignore[union-attr]
            with self.masks.template(_TEMPLATE + view, lengths.unique().tolist()):
                return delta(denoiser, lengths)

        return templated

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        self.steps_done += 1
        self.masks.step = self.steps_done
        if self.steps_done == len(self.batches):
            assert self.network is not None
            state = self.network.state_dict()
            self.last_state = {
                name: value.clone() if isinstance(value, Tensor) else value
                for name, value in state.items()
            }
            self.replay.weights = self._named_weights(self.network)


class _DropoutMasks:
    """Dropout masks by the recordings' rule: a function of step, phase, call and row."""

    def __init__(self) -> None:
        self.step = 0
        self.phase = 0
        self.call = 0
        self.rows: Sequence[int] = ()
        self.generator_rows: Sequence[int] = ()
        self._override: tuple[int, Sequence[int]] | None = None
        self._on = False

    @contextmanager
    def active(self) -> Iterator[None]:
        with patch("torch.nn.functional.dropout", self._dropout):
            self._on = True
            yield
            self._on = False

    @contextmanager
    def inactive(self) -> Iterator[None]:
        before, self._on = self._on, False
        yield
        self._on = before

    @contextmanager
    def template(self, phase: int, rows: Sequence[int]) -> Iterator[None]:
        self._override = phase, rows
        yield
        self._override = None

    def attach(self, network: Network, encoder_rows: Callable[[], Sequence[int]]) -> None:
        """Let each model begin a phase when it is called, and compute attention by `eager`."""
        encoder = network.encoder[0].auto_model

        def at_encoder(*_: Any) -> None:
            self._begin(*(self._override or (_ENCODER, encoder_rows())))

        # Hooks are on the embeddings: sentence-transformers calls `forward` of the model itself,
        # past its hooks.
        encoder.embeddings.register_forward_pre_hook(at_encoder)
        models = [encoder]
        for module in network.head.modules_by_loss.values():
            if hasattr(module, "predict"):
                predictor = module.predict.transformer
                predictor.embeddings.register_forward_pre_hook(
                    lambda module, args, inputs: self._begin(
                        _DISCRIMINATOR, range(len(inputs["input_ids"]))
                    ),
                    with_kwargs=True,
                )
                models.append(predictor)
        for generator in _generators(network):
            generator.base_model.embeddings.register_forward_pre_hook(
                lambda *_: self._begin(_GENERATOR, self.generator_rows)
            )
            models.append(generator)
        for model in models:
            model.set_attn_implementation("eager")

    def _begin(self, phase: int, rows: Sequence[int]) -> None:
        self.phase, self.call, self.rows = phase, 0, list(rows)

    def _dropout(
        self, x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not (training and p > 0):
            return x
        assert self._on
        assert len(x) == len(self.rows), (len(x), self.phase, self.rows)
        masks = []
        for row in self.rows:
            state = np.random.RandomState([self.step, self.phase, self.call, row])
            if x.ndim == 3:  # activations (rows, length, width)
                # The rule draws for _LONGEST tokens; the first draws are those of the first tokens.
                draws = state.random_sample(tuple(x.shape[1:]))
            else:  # attention probabilities (rows, heads, length, length)
                draws = state.random_sample((x.shape[1], _LONGEST, _LONGEST))
                draws = draws[:, : x.shape[2], : x.shape[3]]
            masks.append(draws >= p)
        self.call += 1
        keep = torch.from_numpy(np.stack(masks)).to(x.dtype)
        return x * keep / (1 - p)


def crc(ids: Sequence[int]) -> int:
    """Return the recordings' checksum of token ids."""
    return zlib.crc32(",".join(map(str, ids)).encode())


def _generators(network: Network) -> list[Any]:
    """Return the frozen models of the losses."""
    modules = network.head.modules_by_loss.values()
    found = []
    for module in modules:
        for name in ("generator", "complementary"):
            frozen = getattr(module, name, None)
            if frozen is not None:
                found.append(frozen.module)
    return found


def _with_prefix(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _named_weights(network: Network, pooler: bool) -> dict[str, Tensor]:
    """Return copies of the weights by the recordings' names; `pooler`: the projector begins with BERT's."""
    parts = {"encoder": network.encoder[0].auto_model}
    if pooler:
        parts["head_pooler"] = network.head.projector[0]
        parts["head.0"] = network.head.projector[2]
    else:
        parts["head"] = network.head.projector
    for module in network.head.modules_by_loss.values():
        if hasattr(module, "predict"):
            parts["detector"] = module.predict.head
            parts["discriminator"] = module.predict.transformer
        elif hasattr(module, "vectors"):
            parts["momentum"] = module.encoder[0].auto_model
    weights = {}
    for part, module in parts.items():
        for name, value in module.named_parameters():
            weights[f"{part}.{name}"] = value.detach().clone()
    return weights


def _today(settings: Sequence[str]) -> list[str]:
    """Return the settings of a recording by today's names.

    Losses were called terms; and the form `code` of DCLR names its complementary model itself.
    """
    renamed = [setting.replace("terms.", "losses.") for setting in settings]
    teacher = "teachers.complementary.model="
    for setting in settings:
        if setting.startswith(teacher):
            renamed.append(f"losses.info_nce.complementary={setting.removeprefix(teacher)}")
    return renamed


def relative_errors(played: Replay, authors: Mapping[str, Any]) -> dict[str, float]:
    """Return the largest difference of each quantity between a replay and the authors' run.

    Losses and gradient norms are relative to theirs, entries of the weights to the update of their
    tensor; development scores and embeddings are absolute.

    A few tensors have a gradient of 0 up to rounding, and move by 1e-14 where others move by 1e-5
    to 1e-2: the biases of the keys, and the bias of the last LayerNorm if a BatchNorm or template
    denoising subtracts it again. They are the `resting weights`, whose difference is absolute.
    """
    errors = {
        "loss": _largest(played.values("loss"), authors["loss"]),
        "gradient norm": _largest(played.values("grad_norm"), authors["grad_norm"]),
    }
    for part, values in authors["components"].items():
        if part in played.log[0]:
            errors[part] = _largest(played.values(part), values)
    for name, expected in authors["final_weights"].items():
        if name not in played.weights:
            continue
        weight = played.weights[name].flatten().double()
        places = [i * (len(weight) - 1) // 7 for i in range(8)]
        entries = torch.tensor(expected["entries"], dtype=torch.float64)
        difference = float((weight[places] - entries).norm())
        kind = "resting weights"
        if expected["update_norm"] > _ROUNDING:
            kind = "weights"
            difference /= expected["update_norm"]
        errors[kind] = max(errors.get(kind, 0.0), difference)
    if played.development:
        scores = dict(map(tuple, authors["dev_spearman"]))
        errors["development score"] = max(
            abs(score - scores[step]) for step, score in played.development.items()
        )
        errors["embeddings"] = _embedding_error(played, authors["eval_embeddings"])
    return errors


def ifm_errors(recording: Recording) -> dict[str, float]:
    """Return the largest relative differences of IFM's loss and of the norm of its gradient.

    IFM mixes the plain loss with the perturbed one by α, as (plain + α · perturbed) / (1 + α).
    """
    positive = recording.tensors["positive"].double()
    errors = {"loss": 0.0, "gradient norm": 0.0}
    for case in recording.meta["results"]:
        anchor = recording.tensors["anchor"].double().requires_grad_()
        values = []
        for size in (0.0, case["epsilon"]):
            loss = MarginInfoNCELoss(temperature=case["temperature"], signs="p-n+", size=size)
            values.append(loss(anchor, positive).value)
        plain, perturbed = values
        mixed = (plain + case["alpha"] * perturbed) / (1 + case["alpha"])
        (gradient,) = torch.autograd.grad(mixed, anchor)
        pairs = [(plain, "plain"), (perturbed, "perturbed"), (mixed, "loss")]
        for value, key in pairs:
            errors["loss"] = max(errors["loss"], _largest([float(value.detach())], [case[key]]))
        norm = _largest([float(gradient.norm())], [case["grad_anchor_norm"]])
        errors["gradient norm"] = max(errors["gradient norm"], norm)
    return errors


def _largest(values: Sequence[float], expected: Sequence[float]) -> float:
    done = np.array(expected)[: len(values)]
    return float((np.abs(np.array(values) - done) / np.abs(done)).max())


def _embedding_error(played: Replay, recorded: Sequence[Mapping[str, Any]]) -> float:
    largest = 0.0
    for evaluation in recorded:
        vectors = played.embeddings[evaluation["step"]]
        for vector, sentence in zip(vectors, evaluation["sentences"], strict=True):
            first = np.abs(vector[:8] - np.array(sentence["first8"])).max()
            norm = abs(float(np.linalg.norm(vector)) - sentence["norm"])
            largest = max(largest, float(first), norm)
    return largest


def token_mismatches(played: Replay, recording: Recording) -> list[tuple[str, int]]:
    """Return the view and row of every sequence of token ids that is not the authors'."""
    names = recording.meta["opencse"]["views"]  # ours by theirs
    wrong = []
    for theirs, ours in names.items():
        checksums = recording.meta["tokens"]["views"][theirs]["crc32"]
        for row, checksum in played.tokens[ours].items():
            if checksum != checksums[row]:
                wrong.append((ours, row))
    return wrong
