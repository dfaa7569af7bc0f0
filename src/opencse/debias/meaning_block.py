"""The meaning block: a second vector next to a model's own, for what its own vector does not tell apart.

This file is copied into the folder of a saved model, so that the model loads without opencse
(`trust_remote_code=True`). It therefore imports nothing but torch, transformers and what that needs.
"""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

# Model types whose layers `model.encoder` runs on hidden states and an additive mask.
_SHARED = ("bert", "roberta", "xlm-roberta", "camembert", "electra", "mpnet")
_WEIGHTS = "model.safetensors"
_CONFIG = "config.json"
_TOKENIZERS = "model-tokenizer.json", "reader-tokenizer.json"
_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


class MeaningBlock(nn.Module):
    r"""Last module of a sentence-transformers model: appends a meaning vector z to the model's unit vector e.

    .. math::
        v = \frac{[e \,;\, \beta z \,;\, 0]}{\sqrt{1 + \beta^2}}, \qquad
        z = \frac{P(\text{code} \otimes \varphi)}{\lVert P(\text{code} \otimes \varphi) \rVert}

    so that cos(v, v') = (1 − w) e·e' + w z·z' with w = β² / (1 + β²). `code` (length 1) says which
    of two opposite things is claimed, φ (length 1) about what; their product is opposed if the
    codes are, whatever the topic. Both read

    .. math:: x = [\operatorname{mean} h'_L \,;\, \operatorname{pool} h'_L \,;\,
        \operatorname{mean} h_{l_1} \,;\, \operatorname{mean} h_{l_2} \,;\, …]

    the averages over tokens, each scaled to length 1, of the last layer h' of a trained copy of the
    upper layers, and of chosen layers h of the untouched transformer; φ also reads e. `pool` is
    an average with trained weights, so that a "not" counts in a long text, too: each head weights
    the tokens by a softmax of their scores, and averages its own share of their values. x is
    standardised (`standardise`). The lower layers run once for both. For an architecture whose
    layers cannot be run alone, the copy is a complete transformer.

    With d numbers in e, z has d − 1 and v has 2 d. The last place is 0 here, and β in an upgraded
    vector (`upgrade`).

    A block can serve another model than the one that it was trained for (`beside_another`): it then
    brings its own model along, which reads the text for it. e remains the vector of the other model,
    and z keeps its length. If both models have the same tokens, a table translates their numbers; if
    not, texts are put together from tokens and tokenised again.

    Args:
        width: d, the dimension of the model's own vector.
        transformer: Configuration of the copied layers (`PretrainedConfig.to_dict`).
        first: Index of the hidden state on which the copied layers run; None for a complete copy.
        averages: Indices of the hidden states that are averaged; 0 is the embedding layer.
        code: Numbers in the code.
        inner: Numbers in φ.
        hidden: Hidden units of φ.
        code_hidden: Hidden units of the code.
        heads: Heads of the pooling; they divide the transformer's width.
        strength: β; it may be changed at any time, also after training.
        tokens: Tokens of the model, if another one reads them for the block; 0 if not.
        prompts: Prompts of the model that are removed before its texts are tokenised again; None
            if they never are.
    """

    center: Tensor
    scale: Tensor
    tokens: Tensor

    def __init__(
        self,
        width: int,
        transformer: dict[str, Any],
        first: int | None,
        averages: list[int],
        code: int = 8,
        inner: int = 192,
        hidden: int = 384,
        code_hidden: int = 128,
        heads: int = 12,
        strength: float = 0.4,
        tokens: int = 0,
        prompts: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        if max(code, inner) > width:
            raise ValueError(
                f"code and inner are at most {width}, the dimension of the model's own vector"
            )
        from transformers import AutoConfig, AutoModel

        config: Any = AutoConfig.for_model(**transformer)
        self.reader = None
        # The tokenizers of the model and of the reader.
        self.tokenizers: tuple[Tokenizer, Tokenizer] | None = None
        own = width
        if tokens or prompts is not None:
            complete = AutoConfig.for_model(**transformer)
            complete.num_hidden_layers += first or 0
            self.reader = AutoModel.from_config(complete).float()
            own = complete.hidden_size
            self.register_buffer("tokens", torch.zeros(tokens, dtype=torch.long))
        if first is None:
            self.copy = AutoModel.from_config(config).float()
        else:
            # The copied layers embed no tokens, so a vocabulary would only take memory.
            config.vocab_size = (config.pad_token_id or 0) + 1
            self.copy = AutoModel.from_config(config).float().encoder
        self.averages = tuple(averages)
        self.first = first
        self.strength = strength
        self.config: dict[str, Any] = {
            "width": width,
            "transformer": dict(transformer),
            "first": first,
            "averages": list(averages),
            "code": code,
            "inner": inner,
            "hidden": hidden,
            "code_hidden": code_hidden,
            "heads": heads,
            "tokens": tokens,
            "prompts": prompts,
        }
        self.score = nn.Linear(config.hidden_size, heads)
        self.value = nn.Linear(config.hidden_size, config.hidden_size)
        nn.init.normal_(self.score.weight, std=0.05)
        read = config.hidden_size * (2 + len(averages))
        self.code = nn.Sequential(
            nn.Linear(read, code_hidden), nn.GELU(), nn.Linear(code_hidden, code)
        )
        self.sharpen = nn.Sequential(
            nn.Linear(read + own, hidden), nn.ReLU(), nn.Linear(hidden, inner)
        )
        self.project = nn.Linear(code * inner, own - 1, bias=False)
        nn.init.orthogonal_(self.project.weight)
        # On the averages, in training.
        self.drop = nn.Dropout(0.0)
        # Mean and standard deviation of what code and φ read, over the training texts
        # (`standardise`).
        self.register_buffer("center", torch.zeros(read))
        self.register_buffer("scale", torch.ones(read))

    @classmethod
    def beside(cls, model: Any, **settings: Any) -> MeaningBlock:
        """Return a new block for a sentence-transformers model, whose transformer then returns all hidden states.

        Args:
            model: A model whose first module is a transformer; the block is not appended.
            settings: Sizes, as for the class.
        """
        transformer = model[0].auto_model
        transformer.config.output_hidden_states = True
        config = transformer.config.to_diff_dict()
        layers = transformer.config.num_hidden_layers
        first = layers // 2 if config["model_type"] in _SHARED else None
        if first is not None:
            config["num_hidden_layers"] = layers - first
        averages = [max(1, round(layers * share / 3)) for share in (1, 2, 3)]
        width = int(model.get_embedding_dimension())
        sizes = {
            "code": 8,
            "inner": 192,
            "heads": transformer.config.num_attention_heads,
        } | settings
        sizes |= {name: min(sizes[name], width) for name in ("code", "inner")}
        block = cls(width, config, first, averages, **sizes)
        weights = transformer.state_dict() if first is None else transformer.encoder.state_dict()
        copied = {}
        for name, tensor in weights.items():
            parts = name.split(".")
            if first is not None and parts[0] == "layer":
                if int(parts[1]) < first:
                    continue
                parts[1] = str(int(parts[1]) - first)
            copied[".".join(parts)] = tensor
        block.copy.load_state_dict(copied)
        return block.to(model.device)

    def beside_another(
        self,
        reader: Any,
        width: int,
        cut: Tensor | tuple[Tokenizer, Tokenizer],
        prompts: Sequence[str] = (),
    ) -> MeaningBlock:
        """Return this block for another model.

        Args:
            reader: The transformer of the model that it was trained for, whose vector is the mean
                of its tokens.
            width: The dimension of the other model's vector, not below that of the reader.
            cut: The reader's number of each token of the other model, (tokens,), where both cut
                texts alike; or the tokenizers of both.
            prompts: Prompts of the other model, which the reader leaves out where it cuts texts
                itself.
        """
        how = {"prompts": list(prompts)} if isinstance(cut, tuple) else {"tokens": len(cut)}
        block = MeaningBlock(**self.get_config_dict() | how | {"width": width})
        block.load_state_dict(self.state_dict(), strict=False)
        assert block.reader is not None
        block.reader.load_state_dict(reader.state_dict())
        if isinstance(cut, tuple):
            block.tokenizers = cut
        else:
            block.tokens.copy_(cut)
        return block.eval()

    def seen(self, features: dict[str, Any]) -> dict[str, Any]:
        """Return what the block reads: the features of the model itself, or those of its own reader."""
        if self.reader is None:
            return features
        longest = self.reader.config.max_position_embeddings
        ids = features["input_ids"]
        mask = features["attention_mask"]
        if self.tokenizers:
            ids, mask = self._tokenised_again(ids, mask)
        else:
            ids = self.tokens[ids]
        # The other model may read longer texts than the reader.
        ids = ids[:, :longest]
        mask = mask[:, :longest]
        with torch.no_grad():
            states = self.reader(ids, attention_mask=mask, output_hidden_states=True).hidden_states
        vector = average(states[-1], mask)
        return {
            "attention_mask": mask,
            "all_layer_embeddings": states,
            "sentence_embedding": vector,
        }

    def _tokenised_again(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the reader's tokens of the texts of which the model's tokens are given, and their mask."""
        assert self.tokenizers is not None
        own, reader = self.tokenizers
        rows = []
        for row, real in zip(ids.cpu(), mask.cpu().bool(), strict=True):
            rows.append(row[real].tolist())
        texts = own.decode_batch(rows)
        for prompt in self.config["prompts"]:
            texts = [text.removeprefix(prompt) for text in texts]
        cut = reader.encode_batch(texts)
        found = torch.tensor([text.ids for text in cut], device=ids.device)
        real = torch.tensor([text.attention_mask for text in cut], device=ids.device)
        return found, real

    def read(self, features: dict[str, Any]) -> tuple[Tensor, Tensor]:
        """Return e (n, d) and the averages of the untouched transformer (n, averages x width)."""
        mask = features["attention_mask"]
        states = features["all_layer_embeddings"]
        e = F.normalize(features["sentence_embedding"].float(), dim=-1)
        averages = [average(states[layer], mask) for layer in self.averages]
        return e, torch.cat(averages, dim=-1)

    def copied(self, features: dict[str, Any]) -> Tensor:
        """Return the average and the pooled tokens of the copy's last layer, (n, 2 width)."""
        mask = features["attention_mask"]
        if self.first is None:
            inputs = {name: features[name] for name in _INPUTS if name in features}
            output = self.copy(**inputs)
            return self._pooled(output.last_hidden_state, mask)
        state = features["all_layer_embeddings"][self.first].to(next(self.copy.parameters()).dtype)
        # Added to the scores of attention: 0 for a token, the smallest number for padding.
        unseen = (1.0 - mask[:, None, None, :].to(state.dtype)) * torch.finfo(state.dtype).min
        output = self.copy(state, attention_mask=unseen, return_dict=True)
        return self._pooled(output.last_hidden_state, mask)

    def _pooled(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return the average of states (n, tokens, width) and their sum by learned weights, (n, 2 width)."""
        states = states.to(self.score.weight.dtype)
        # A weight for each token and head, (n, tokens, heads). -1e4 also fits into half precision.
        scores = self.score(states)
        weights = scores.masked_fill(mask[:, :, None] == 0, -1e4).softmax(dim=1)
        # Each head has its part of the values, (n, tokens, heads, width / heads).
        values = self.value(states).unflatten(-1, (weights.shape[-1], -1))
        weighted = (weights[..., None] * values).sum(1)
        pooled = F.normalize(weighted.flatten(1), dim=-1)
        return torch.cat([average(states, mask), pooled], dim=-1)

    def meaning(self, e: Tensor, frozen: Tensor, copied: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the code (n, code), φ (n, inner) and z (n, d - 1), each row of length 1."""
        # The small parts are as fast in single precision, in which small differences of averages
        # are not lost.
        single: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if self.training:
            single = torch.autocast(e.device.type, enabled=False)
        with single:
            # Half precision, if somebody made the model so.
            dtype = self.score.weight.dtype
            averages = torch.cat([copied, frozen], dim=-1)
            read = self.drop((averages - self.center) / self.scale).to(dtype)
            code = F.normalize(self.code(read), dim=-1)
            # The numbers of e become about as large as those of the averages.
            large = e * e.shape[-1] ** 0.5
            topic = self.sharpen(torch.cat([large, read], dim=-1).to(dtype))
            topic = F.normalize(topic, dim=-1)
            products = code[:, :, None] * topic[:, None, :]
            z = F.normalize(self.project(products.flatten(1)), dim=-1)
        return code, topic, z

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Replace `sentence_embedding` (n, d) by v; add e, z, code and φ, each with zeros behind, (n, 4 d)."""
        e = F.normalize(features["sentence_embedding"].float(), dim=-1)
        seen = self.seen(features)
        read_e, averages = self.read(seen)
        code, topic, z = self.meaning(read_e, averages, self.copied(seen))
        # The last place is that of β in an upgraded vector, and 0 in these.
        last = torch.zeros_like(e[:, :1])
        v = torch.cat([e, self.strength * z, last], dim=-1) / (1 + self.strength**2) ** 0.5
        # Other modules pass on one tensor, so all parts get the same width.
        padded = [F.pad(part, (0, e.shape[1] - part.shape[1])) for part in (e, z, code, topic)]
        return {
            **features,
            "sentence_embedding": v,
            "training_embedding": torch.cat(padded, dim=-1),
        }

    def code_and_topic(self, parts: Tensor) -> tuple[Tensor, Tensor]:
        """Return the code (n, code) and φ (n, inner) from `training_embedding`, which `forward` adds."""
        _, _, code, topic = parts.chunk(4, dim=-1)
        return code[..., : self.config["code"]], topic[..., : self.config["inner"]]

    def upgrade(self, vectors: Any) -> Any:
        """Return stored vectors of the model without the block in the new index, NumPy (…, length of v).

        Raises:
            ValueError: They don't have the model's own dimension, or not length 1.
        """
        self._check_width(vectors)
        return upgrade(vectors, self.strength, self.get_embedding_dimension())

    def as_query(self, vectors: Any) -> Any:
        """Return query vectors of the model without the block in the new index; as `upgrade`."""
        self._check_width(vectors)
        return as_query(vectors, self.get_embedding_dimension())

    def _check_width(self, vectors: Any) -> None:
        width = int(self.config["width"])
        if vectors.shape[-1] != width:
            raise ValueError(
                f"the vectors have {vectors.shape[-1]} numbers, those of this model {width}: they "
                "are of another model, or they are upgraded already"
            )

    def standardise(self, copied: Tensor, frozen: Tensor) -> None:
        """Set the mean and the deviation by which code and φ read their input, from some thousand texts.

        Opposites differ little in these averages, so without this the code is slow to tell them
        apart.

        Args:
            copied: What `copied` returns of the texts, (n, 2 width).
            frozen: The averages of the untouched transformer that `read` returns.
        """
        read = torch.cat([copied, frozen], dim=-1)
        self.center.copy_(read.mean(dim=0))
        self.scale.copy_(read.std(dim=0) + 2e-3)

    @torch.no_grad()
    def round_to_half(self) -> MeaningBlock:
        """Round all numbers to half precision, as `save` writes them: the saved block is then this one."""
        for tensor in (*self.parameters(), *self.buffers()):
            if tensor.is_floating_point():
                tensor.copy_(tensor.half())
        return self

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings, the strength among them."""
        return {**self.config, "strength": self.strength}

    def get_embedding_dimension(self) -> int:
        """Return the length of v."""
        return int(self.config["width"]) + self.project.out_features + 1

    get_sentence_embedding_dimension = get_embedding_dimension

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write the settings, the weights in half precision, and this file into the model's folder above.

        `payload.py` goes there as well: it compares stored texts with NumPy alone.
        """
        folder = Path(output_path)
        for file in (Path(__file__), Path(__file__).with_name("payload.py")):
            if file.is_file():
                shutil.copyfile(file, folder.parent / file.name)
        (folder / _CONFIG).write_text(
            json.dumps(self.get_config_dict(), indent=2, default=str), encoding="utf-8"
        )
        for name, tokenizer in zip(_TOKENIZERS, self.tokenizers or (), strict=False):
            tokenizer.save(str(folder / name))
        half = {
            name: part.half() if part.is_floating_point() else part
            for name, part in self.state_dict().items()
        }
        save_file({name: part.contiguous().cpu() for name, part in half.items()}, folder / _WEIGHTS)

    @classmethod
    def load(cls, input_path: str) -> MeaningBlock:
        """Load a folder that `save` wrote."""
        folder = Path(input_path)
        block = cls(**json.loads((folder / _CONFIG).read_text(encoding="utf-8")))
        block.load_state_dict(load_file(folder / _WEIGHTS))  # into single precision
        if block.config["prompts"] is not None:
            own, reader = (Tokenizer.from_file(str(folder / name)) for name in _TOKENIZERS)
            block.tokenizers = own, reader
        return block.eval()


def block_of(model: nn.Module) -> MeaningBlock | None:
    """Return the meaning block of a model; None if it has none."""
    return next((module for module in model.children() if isinstance(module, MeaningBlock)), None)


def upgrade(vectors: Any, strength: float, length: int | None = None) -> Any:
    r"""Return old document vectors, one or n, in the new index: [e ; 0 … 0 ; β] / √(1 + β²), NumPy (…, length).

    A query [e ; 0 ; 0] (`as_query`) ranks these and new vectors together as the old model ranked
    all of them, by dot product and by cosine: both have length 1 and the same share of e.

    Args:
        vectors: The old model's unit vectors, NumPy (…, d).
        strength: β of the new vectors.
        length: Their length; by default 2 d.

    Raises:
        ValueError: A vector does not have length 1, or `length` does not fit their dimension.
    """
    new = as_query(vectors, length)
    new[..., -1] = strength
    return new / (1 + strength**2) ** 0.5


_UNIT = 1e-2  # by which the length of a vector in half precision may differ from 1


def as_query(vectors: Any, length: int | None = None) -> Any:
    """Return old query vectors, one or n, in the new index: [e ; 0 ; 0], NumPy (…, length), by default 2 d.

    Raises:
        ValueError: As `upgrade`.
    """
    import numpy as np

    d = vectors.shape[-1]
    length = length or 2 * d
    if not d < length <= 2 * d:
        raise ValueError(
            f"vectors of {d} numbers don't become vectors of {length}: they are of another model, or "
            "they are upgraded already"
        )
    norms = np.linalg.norm(np.asarray(vectors, dtype=np.float32), axis=-1)
    if not np.all(np.abs(norms - 1) <= _UNIT):
        raise ValueError(
            "old vectors need length 1: divide each by its length. If your index ranks by the inner "
            "product of longer vectors, its order is another one, so embed the documents again"
        )
    padding = [(0, 0)] * (vectors.ndim - 1) + [(0, length - d)]
    return np.pad(vectors, padding)


def rescale(vectors: Any, strength: float, new: float, width: int) -> Any:
    """Return vectors of one strength (above 0) with another: an index changes without being rebuilt.

    Args:
        vectors: The vectors, NumPy (n, length).
        strength: β of them.
        new: β of those that are returned.
        width: d, the length of the old vectors.
    """
    import numpy as np

    e, rest = np.split(vectors, [width], axis=1)
    return (
        np.concatenate([e, rest * (new / strength)], axis=1)
        * ((1 + strength**2) / (1 + new**2)) ** 0.5
    )


def average(states: Tensor, mask: Tensor) -> Tensor:
    """Return the average over tokens, scaled to length 1, (n, width)."""
    weights = mask.unsqueeze(-1).float()
    return F.normalize((states.float() * weights).sum(1) / weights.sum(1).clamp(min=1), dim=-1)
