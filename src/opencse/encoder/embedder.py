"""Texts in, float32 matrix out: fast, exact encoding for evaluation, mining and development scores.

`SentenceTransformer.encode` sorts by characters, takes 16 to 32 texts at a time and tokenises in
between. Here every distinct text is tokenised once, a batch has texts of nearly the same number of
tokens within a token budget, so that there is almost no padding, and on a CPU each core runs its
own batch instead of sharing every small matrix product. The vectors equal those of `encode`, up to
float32 rounding.
"""

from __future__ import annotations

import contextlib
import copy
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from opencse.encoder.backbone import weights_hash
from opencse.encoder.device import ChosenPrecision, bfloat16_copy, model_config, resolve_precision
from opencse.encoder.dropout import evaluation_mode
from opencse.encoder.invariant import tasks_of
from opencse.foundation.cache import Store, Together, is_whole, new_store, store_folder
from opencse.foundation.chunks import chunks
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import Phase, note
from opencse.foundation.reading import error_reason
from opencse.foundation.roles import RoleText, plain

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


Precision = Literal["auto", "fp32", "bf16"]

# Tokens per batch: enough for matrix products at full speed; more only takes memory.
_CPU_TOKENS = 1024
_GPU_TOKENS = 32768
# Texts per tokenizer call, whose Python lists and offsets take about 10 kB per text.
_CHUNK = 1024
# Texts of `cached_vectors` that are encoded at once, and the number of such blocks in a shard.
_BLOCK = 8 * _CHUNK
_SHARD = 16
# Names of prompts by the role of the texts, in the order in which sentence-transformers looks.
_ROLE_PROMPTS = {"query": ("query",), "document": ("document", "passage", "corpus")}


def own_similarity(
    model: SentenceTransformer,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray] | None:
    """Return the similarity (n, m) that a model's settings name, of vectors as they are; None for the cosine."""
    if model.similarity_fn_name in (None, "cosine"):
        return None

    def similarity(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        compared = model.similarity(np.asarray(first), np.asarray(second))
        return np.asarray(compared.cpu(), dtype=np.float32)

    similarity.raw = True  # type: ignore[attr-defined]
    return similarity


@contextlib.contextmanager
def _readable_failures() -> Iterator[None]:
    """Turn the errors of a model that was loaded, but cannot encode, into one line.

    Settings such as `chunk_size_feed_forward` are read only when a text is encoded.
    """
    try:
        yield
    except (OpencseError, OSError, MemoryError):
        raise
    # Each class of model has errors of its own.
    except Exception as error:
        if "memory" in str(error).lower():
            # Others know what to do about a full memory.
            raise
        raise OpencseError(
            f"the model cannot encode texts ({error_reason(error)})",
            "Its settings do not fit its weights or its tokenizer: use another model.",
        ) from error


def _finite(matrix: np.ndarray) -> np.ndarray:
    if not np.isfinite(matrix).all():
        raise OpencseError(
            "the model returns vectors that are not finite",
            "Its weights are damaged: train it again.",
        )
    return matrix


class Embedder:
    """Function from texts to a float32 matrix, for any loaded `SentenceTransformer`.

    It reads the current weights of the model at every call, so a training loop can score its
    development set with one `Embedder` and one `PreparedTexts`. Training mode, random state and
    weights of the model stay unchanged. A surrounding autocast has no effect.

    The cost is one forward pass over the *distinct* texts, linear in their tokens (plus attention,
    quadratic in the length of each text). Memory is that of the model, plus half of it in bf16, one
    token budget of activations per core, and the result. A text that occurs in ten tasks costs as
    much as one that occurs once.

    Models whose first module is not a plain text transformer (`StaticEmbedding`, routers,
    chat-templated or multimodal models) are run by `model.encode`, in the precision of their
    weights.

    Args:
        model: Any loaded `SentenceTransformer`. Its `max_seq_length`, default prompt,
            `truncate_dim` and all modules after the transformer apply, as in `model.encode`.
        precision: `"fp32"` runs the weights as they are. `"bf16"` runs the transformer on a
            bfloat16 copy of its weights and the later modules (pooling, projection, normalisation)
            in float32: about twice as fast if the processor has bfloat16 instructions. On
            all-MiniLM-L6-v2 it changed no STS score by more than 0.02 points (of 100), the same as
            autocast, and was a little faster. `"auto"` is the faster one on this machine
            (`opencse.encoder.device`); the attribute `precision` is the choice.
        token_budget: Tokens per batch; by default chosen for the device, and less for few texts on
            many cores. With a given budget, the batches do not depend on the number of cores.
        progress: Label of the progress bar; None for no bar.

    Example:
        >>> embedder = Embedder(SentenceTransformer("path/to/model"), precision="bf16")  # doctest: +SKIP
        >>> dev = embedder.prepare(dev_texts)  # doctest: +SKIP
        >>> matrix = embedder.encode(dev)  # doctest: +SKIP
    """

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        precision: Precision = "fp32",
        token_budget: int | None = None,
        progress: str | None = None,
    ) -> None:
        if precision not in get_args(Precision):
            raise OpencseError(
                f"precision {precision!r} is unknown",
                f"Use one of {', '.join(get_args(Precision))}.",
            )
        self.model = model
        self.precision: ChosenPrecision = resolve_precision(
            precision, model_config(model), model.device
        )
        self.token_budget = token_budget
        self.prompt: str | None = model.prompts.get(model.default_prompt_name or "")
        self.progress = progress
        self.reads_roles = self._distinguishes_roles()
        """Whether queries and documents (`opencse.foundation.roles`) get other vectors than other texts."""

    def _distinguishes_roles(self) -> bool:
        """Return whether the model has routes, lengths or prompts of queries or documents."""
        if tasks_of(self.model) != [None]:
            return True
        for role in _ROLE_PROMPTS:
            if getattr(self.model[0], f"{role}_length", None) is not None:
                return True
            if (self._prompt_of(role) or "") != (self.prompt or ""):
                return True
        return False

    def _prompt_of(self, role: str) -> str | None:
        """Return the prompt of queries or documents, by the rule of sentence-transformers; else that of any text."""
        for name in _ROLE_PROMPTS[role]:
            if name in self.model.prompts:
                return self.model.prompts[name]
        return self.prompt

    def _encode_roles(self, texts: Sequence[str]) -> np.ndarray:
        """Embed texts of which some are queries or documents."""
        groups: dict[str, list[int]] = {}
        for row, text in enumerate(texts):
            groups.setdefault(getattr(text, "role", ""), []).append(row)
        matrix = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for role, rows in groups.items():
            matrix[rows] = self._encode_role(role, [plain(texts[row]) for row in rows])
        return matrix

    def _encode_role(self, role: str, texts: list[str]) -> np.ndarray:
        """Embed texts of one role; "" for texts without any."""
        part = copy.copy(self)
        part.reads_roles = False
        if role and self._by_prompt_alone(role):
            part.prompt = self._prompt_of(role) or None
        elif role:
            return self._by_own_methods(role, texts)
        return part.encode(texts)

    def _by_own_methods(self, role: str, texts: list[str]) -> np.ndarray:
        """Embed queries or documents with the model's method for them."""
        encode = self.model.encode_document
        if role == "query":
            encode = self.model.encode_query
        distinct = list(dict.fromkeys(texts))
        place = {text: row for row, text in enumerate(distinct)}
        with evaluation_mode(self.model), _readable_failures():
            vectors = encode(distinct, show_progress_bar=False)
        matrix = _finite(np.asarray(vectors, dtype=np.float32))
        return matrix[[place[text] for text in texts]]

    def _by_prompt_alone(self, role: str) -> bool:
        """Return whether the texts of a role differ from others by their prompt alone."""
        is_plain = _is_plain_text_transformer(self.model)
        return is_plain and getattr(self.model[0], f"{role}_length", None) is None

    @property
    def dimension(self) -> int:
        """Dimension d of the vectors."""
        width = self.model.get_embedding_dimension() or 0
        return min(width, self.model.truncate_dim or width)

    def key(self) -> list[Any]:
        """Return what the vectors depend on, apart from the texts: weights, prompt, precision."""
        return [weights_hash(self.model), self.prompt, self.precision]

    def prepare(self, texts: Sequence[str]) -> PreparedTexts:
        """Deduplicate and tokenise texts, for encoding them once or many times.

        Args:
            texts: n texts, in any order, with any repetitions; empty ones are allowed.

        Raises:
            OpencseError: An item is not a string.
        """
        if any(isinstance(text, RoleText) for text in texts):
            if self.reads_roles:
                rows = np.arange(len(texts))
                return PreparedTexts(rows=rows, texts=list(texts), tokens=None, roles=True)
            texts = [plain(text) for text in texts]
        index: dict[str, int] = {}
        rows = np.empty(len(texts), dtype=np.int64)
        for row, text in enumerate(texts):
            if not isinstance(text, str):
                raise OpencseError(
                    f"text {row} is {text!r}, not a string", "Drop or fill missing texts first."
                )
            rows[row] = index.setdefault(text, len(index))
        distinct = list(index)
        table = None
        if distinct and _is_plain_text_transformer(self.model):
            table = self._tokenize(distinct)
        return PreparedTexts(rows=rows, texts=distinct, tokens=table)

    def encode(self, texts: Sequence[str] | PreparedTexts) -> np.ndarray:
        """Embed n texts.

        Args:
            texts: The texts, or the result of `prepare` with the same tokenizer.

        Returns:
            Float32 matrix (n, d), row i for text i; (0, d) for no texts.
        """
        prepared = texts if isinstance(texts, PreparedTexts) else self.prepare(texts)
        if prepared.roles:
            return self._encode_roles(prepared.texts)
        if not prepared.texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        with evaluation_mode(self.model), _readable_failures():
            if prepared.tokens is None:
                matrix = self._encode_by_model(prepared.texts)
            else:
                matrix = self._encode_tokens(prepared.tokens)
        matrix = _finite(matrix)
        if len(prepared.rows) == len(prepared.texts):
            # Without repeated texts, the rows are 0, 1, 2, …
            return matrix
        return matrix[prepared.rows]

    __call__ = encode

    def _encode_by_model(self, texts: list[str]) -> np.ndarray:
        """Embed distinct texts with the model's own `encode`."""
        tasks = tasks_of(self.model)
        task = None
        if tasks[0] is not None:
            # The last one is that of documents, which any text is taken for.
            task = tasks[-1]
        vectors = self.model.encode(texts, prompt=self.prompt, show_progress_bar=False, task=task)
        return np.asarray(vectors, dtype=np.float32)

    def _tokenize(self, texts: list[str]) -> TokenTable:
        """Tokenise distinct texts like the model's `preprocess`, without padding.

        Raises:
            OpencseError: The tokenizer has no padding token and the texts differ in length.
        """
        tokenizer: Any = self.model[0].tokenizer
        prompt = self.prompt or ""
        parts: dict[str, list[np.ndarray]] = {}
        counts: list[int] = []
        with Phase("tokenising", total=len(texts), unit="texts", show=bool(self.progress)) as phase:
            for chunk in chunks(texts, _CHUNK):
                encoded = tokenizer([prompt + text for text in chunk], truncation="longest_first")
                counts += [len(ids) for ids in encoded["input_ids"]]
                for name, lists in encoded.items():
                    flat = np.fromiter(chain.from_iterable(lists), np.int32)
                    parts.setdefault(name, []).append(flat)
                phase.update(len(chunk))
        if tokenizer.pad_token_id is None and len(set(counts)) > 1:
            raise OpencseError(
                "the model's tokenizer has no padding token", "Set tokenizer.pad_token and save it."
            )
        lengths = np.array(counts)
        limit = self.model.max_seq_length
        cut = 0 if limit is None else int((lengths >= limit).sum())
        remark = cut_note(cut, len(lengths), limit)
        if self.progress and remark:
            note(remark)
        padding = dict.fromkeys(parts, 0)
        padding["input_ids"] = tokenizer.pad_token_id or 0
        padding["token_type_ids"] = getattr(tokenizer, "pad_token_type_id", 0)
        columns = {name: np.concatenate(arrays) for name, arrays in parts.items()}
        left = tokenizer.padding_side == "left"
        return TokenTable(lengths=lengths, columns=columns, padding=padding, left=left)

    def _encode_tokens(self, tokens: TokenTable) -> np.ndarray:
        """Run the model over a table of tokens, and return the vectors in its order."""
        device = self.model.device
        # A GPU takes batches one after another; several threads would wait for each other.
        workers = 1
        budget = _GPU_TOKENS
        if device.type == "cpu":
            workers = torch.get_num_threads()
            budget = _CPU_TOKENS
        if self.token_budget:
            # The batches must not depend on the number of cores.
            batches = plan_batches(tokens.lengths, self.token_budget, workers=1)
        else:
            batches = plan_batches(tokens.lengths, budget, workers=workers)
        constants: dict[str, Any] = {"modality": "text"}
        if self.prompt:
            probe = self.model.preprocess(["a"], prompt=self.prompt)
            constants["prompt_length"] = probe.get("prompt_length")
        # Module by module like the model's forward, which training frameworks wrap in autocast.
        modules: list[Callable[[dict[str, Any]], dict[str, Any]]] = list(self.model)
        if self.precision == "bf16":
            modules[0] = bfloat16_copy(self.model[0])

        def run(batch: np.ndarray) -> tuple[np.ndarray, Tensor]:
            # Inference mode and autocast are per thread, so each worker enters them itself.
            with torch.inference_mode(), torch.autocast(device.type, enabled=False):
                features: dict[str, Any] = {}
                for name, tensor in tokens.batch(batch).items():
                    features[name] = tensor.to(device)
                features |= constants
                for module in modules:
                    features = module(features)
                vectors = features["sentence_embedding"][:, : self.model.truncate_dim]
                return batch, vectors.float()

        out: np.ndarray | None = None
        total = int(tokens.lengths.sum())
        show = bool(self.progress)
        with Phase(self.progress or "", total=total, unit="tokens", show=show) as phase:
            for batch, vectors in _run_all(run, batches, workers):
                if out is None:
                    # Only the first vectors show the width: the settings of some models are wrong.
                    out = np.empty((len(tokens.lengths), vectors.shape[1]), dtype=np.float32)
                out[batch] = vectors.cpu().numpy()
                phase.update(int(tokens.lengths[batch].sum()))
        # There is at least one text, and so at least one batch.
        assert out is not None
        return out


def cached_vectors(
    embedder: Embedder,
    texts: Iterable[str | None],
    hashed: tuple[str, int],
    title: str = "",
    together: Together | None = None,
) -> np.ndarray:
    """Return the vectors of texts, float32 (n, d), memory-mapped, from the cache if possible.

    The vector of None is zero.

    Args:
        embedder: The encoder.
        texts: n texts; only read if their vectors are not in the cache yet.
        hashed: Their hash and number, from `opencse.text.views.registry.texts_hash`.
        title: Label of the progress; empty for none.
        together: The processes that encode the texts together; all of them call this function. By
            default this process alone.
    """
    digest, count = hashed
    together = together or Together()
    key = [*embedder.key(), digest]
    folder = store_folder("vectors", key)
    phase = Phase(title, total=count, unit="sentences", show=bool(title))
    if together.count > 1:
        _encode_together(embedder, texts, key, together, phase)
    elif not is_whole(folder):
        with phase:
            _write_vectors(folder, embedder, chunks(texts, _BLOCK), phase)
    vectors = Store(folder).columns["vectors"].values
    if vectors.shape != (count, embedder.dimension):
        raise OpencseError(f"{folder}: holds vectors of other texts", "Remove it.")
    return vectors


def _encode_together(
    embedder: Embedder,
    texts: Iterable[str | None],
    key: list[Any],
    together: Together,
    phase: Phase,
) -> None:
    """Encode every `count`-th shard in this process; the first process joins the shards of all."""
    folder = store_folder("vectors", key)
    shards: list[Path] = []
    if not is_whole(folder):
        with phase:
            shards = _write_shards(embedder, texts, key, together, phase)
    together.wait()
    if together.rank == 0 and not is_whole(folder):
        # Another run may have removed shards, or finished the store while others looked for it.
        if not shards or not all(map(is_whole, shards)):
            shards = _write_shards(embedder, texts, key, Together(), phase)
        with new_store(folder, {"vectors": np.float32}) as writer:
            for shard in shards:
                writer.add(Store(shard).columns["vectors"].values)
    together.wait()
    if together.rank == 0:
        for shard in shards:
            shutil.rmtree(shard, ignore_errors=True)


def _write_shards(
    embedder: Embedder,
    texts: Iterable[str | None],
    key: list[Any],
    together: Together,
    phase: Phase,
) -> list[Path]:
    """Encode the missing shards of this process; return the folders of the shards of all."""
    shards = []
    numbered = enumerate(chunks(texts, _BLOCK))
    for number, group in groupby(numbered, key=lambda pair: pair[0] // _SHARD):
        shard = store_folder("vectors", [*key, _SHARD, number])
        shards.append(shard)
        blocks = (block for _, block in group)
        if number % together.count == together.rank and not is_whole(shard):
            _write_vectors(shard, embedder, blocks, phase)
        else:
            for block in blocks:
                phase.update(len(block))
    return shards


def _write_vectors(
    folder: Path, embedder: Embedder, blocks: Iterable[Sequence[str | None]], phase: Phase
) -> None:
    """Write a store with the vectors of some blocks of texts."""
    with new_store(folder, {"vectors": np.float32}) as writer:
        for texts in blocks:
            vectors = np.zeros((len(texts), embedder.dimension), dtype=np.float32)
            present = [i for i, text in enumerate(texts) if text is not None]
            if present:
                vectors[present] = embedder.encode([str(texts[i]) for i in present])
            writer.add(vectors)
            phase.update(len(texts))


def _run_all(
    run: Callable[[np.ndarray], tuple[np.ndarray, Tensor]], batches: list[np.ndarray], workers: int
) -> Iterator[tuple[np.ndarray, Tensor]]:
    """Run every batch, and yield the results in order.

    With several workers, each batch runs on one thread and one core. Cores that share a matrix
    product wait for each other at its end, which takes longer than the product on a busy machine.
    """
    workers = min(workers, len(batches))
    if workers <= 1:
        # A GPU gets the next batch before the last one is fetched.
        results = chain(map(run, batches), [None])
        for done, _ in pairwise(results):
            if done is not None:
                yield done
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        # Every thread has its own setting.
        one_thread: dict[str, Any] = {"initializer": torch.set_num_threads, "initargs": (1,)}
        with ThreadPoolExecutor(workers, **one_thread) as pool:
            yield from pool.map(run, batches)
    finally:
        torch.set_num_threads(threads)


def _is_plain_text_transformer(model: SentenceTransformer) -> bool:
    """Return whether the model's preprocessing of texts is only `tokenizer(texts)`."""
    from sentence_transformers.sentence_transformer.modules import Transformer

    first = model[0]
    return (
        type(first) is Transformer
        and first.modalities == ["text"]
        and first.transformer_task == "feature-extraction"
        and not getattr(first, "processing_kwargs", None)
        and bool(getattr(first.tokenizer, "is_fast", False))
        and first.tokenizer is first.processor
        and not first.can_flatten_inputs
    )


_MAX_ROWS = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class PreparedTexts:
    """Deduplicated, tokenised texts; made by `Embedder.prepare`, read by `Embedder.encode`.

    Args:
        rows: Index of the distinct text of each given text, (n,).
        texts: The distinct texts, in order of first occurrence.
        tokens: Their token ids; None if the model tokenises itself.
        roles: Whether `texts` are the given ones, some of them queries or documents.
    """

    rows: np.ndarray
    texts: list[str]
    tokens: TokenTable | None
    roles: bool = False

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenTable:
    """Token ids and other inputs of m texts: 4 bytes per token and input, no padding.

    Args:
        lengths: Number of tokens of each text, (m,).
        columns: Values of each model input at every token, texts concatenated.
        padding: Padding value of each model input.
        left: Whether the tokenizer pads on the left.
    """

    lengths: np.ndarray
    columns: Mapping[str, np.ndarray]
    padding: Mapping[str, int]
    left: bool

    @cached_property
    def starts(self) -> np.ndarray:
        """Index of the first token of each text, (m,)."""
        return np.cumsum(self.lengths) - self.lengths

    def batch(self, rows: np.ndarray) -> dict[str, Tensor]:
        """Return the model inputs of some texts, int64 (len(rows), longest), padded."""
        lengths = self.lengths[rows]
        width = int(lengths.max())
        position = np.arange(width)
        # Index of each text's first cell.
        offset = np.zeros_like(lengths)
        if self.left:
            offset = width - lengths
        offset = offset[:, None]
        real = (position >= offset) & (position < offset + lengths[:, None])
        # Index of each cell's token in the flat columns; any valid index at padding.
        source = np.where(real, self.starts[rows][:, None] + position - offset, 0)
        inputs = {}
        for name, column in self.columns.items():
            cells = np.where(real, column[source], self.padding[name])
            inputs[name] = torch.from_numpy(cells.astype(np.int64, copy=False))
        return inputs


def cut_note(cut: int, texts: int, limit: int | None) -> str:
    """Return a remark if more than a tenth of the texts reach the maximum length, otherwise "".

    Args:
        cut: Number of texts of which as many tokens are read as the limit allows.
        texts: Number of all texts.
        limit: Maximum number of tokens; None for none.
    """
    if 10 * cut <= texts:
        return ""
    return (
        f"{cut:,} of {texts:,} texts reach the limit of {limit} tokens: "
        "the text after it is not read"
    )


def plan_batches(lengths: np.ndarray, budget: int, *, workers: int = 1) -> list[np.ndarray]:
    """Group texts into batches of nearly equal length.

    Texts are sorted by token length, longest first, so that memory runs out in the first batch or
    never. A batch ends at `budget` padded tokens, or at a change of length from a quarter of the
    budget on, so that only rare lengths are padded. The budget is reduced if there would be too few
    batches for the workers.

    Args:
        lengths: Number of tokens of each text, (m,).
        budget: Maximum number of tokens per batch, padding included; a longer text is a batch of
            its own.
        workers: Number of batches that run at the same time.

    Returns:
        Index arrays that partition 0 … m-1.
    """
    if workers > 1:
        budget = min(budget, max(256, int(lengths.sum()) // (4 * workers)))
    order = np.argsort(-lengths, kind="stable")
    batches: list[np.ndarray] = []
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        end = min(len(order), start + max(1, budget // longest), start + _MAX_ROWS)
        # The first text of each shorter length.
        change = start + np.flatnonzero(np.diff(lengths[order[start:end]])) + 1
        settled = change[(change - start) * longest >= budget // 4]
        if len(settled):
            end = int(settled[0])
        batches.append(order[start:end])
        start = end
    return batches
