"""The encoder that a run trains, and the network around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from accelerate.utils import set_seed
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from opencse.encoder.backbone import Backbone
from opencse.encoder.dropout import dropout_rates
from opencse.encoder.invariant import token_limit
from opencse.encoder.loading import (
    add_lora,
    attending_padding,
    build_projector,
    exported_projector,
    keep_inputs_only,
    replace_modules,
)
from opencse.encoder.model_folder import has_pooling
from opencse.encoder.packing import prepare_for_training
from opencse.encoder.prompts import (
    TemplateDenoising,
    encoder_frame,
    left_out_by_pooling,
    template_frame,
)
from opencse.foundation.errors import OpencseError
from opencse.losses import Objective
from opencse.recipes import Recipe
from opencse.recipes.rows.token_store import TokenSource
from opencse.recipes.schema import ViewSettings
from opencse.training.batches import ViewTokens
from opencse.training.callbacks import TrainingCallback
from opencse.training.loss_head import LossHead, loss_modules
from opencse.training.network import Network

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class TrainedModel:
    """The encoder, and the network that is trained around it.

    Args:
        recipe: The resolved recipe.
        backbone: The model, of which a copy is trained.
        device: The device of the training steps.
        callbacks: They may change the encoder.

    Attributes:
        encoder: The encoder that is exported.
        scored: The encoder whose vectors are scored while it trains.
        network: The network.
        packed: Whether the encoder computes texts without padding.
        padded_transformer: Whether it does not because its transformer cannot.
        sources: The texts to tokenise.
        views: The source of the tokens of each view.
        unmarked: The tokenizer of views without a final mark; None if all have one.

    Raises:
        OpencseError: Recipe and backbone do not fit.
    """

    def __init__(
        self,
        recipe: Recipe,
        backbone: Backbone,
        device: torch.device,
        callbacks: Sequence[TrainingCallback] = (),
    ) -> None:
        self._recipe = recipe
        self._backbone = backbone
        seed = recipe.training.seed
        set_seed(seed)
        self._build_encoder(callbacks)
        self._read_views()
        denoisers = self._denoisers()
        self.scored = self.encoder
        if recipe.encoder.denoising == "train_and_dev":
            # Development scores see the denoising of the first view.
            modules = [*self.encoder, next(iter(denoisers.values()))]
            self.scored = replace_modules(self.encoder, modules)
        # Every process starts from the same new weights.
        torch.manual_seed(seed)
        head = self._build_head(device)
        self.network = Network(
            self.encoder, head, denoisers, encode_twice=recipe.training.micro_batch is not None
        )
        if recipe.training.accumulation_steps > 1:
            check_accumulation(self.network, recipe)

    def compile(self) -> None:
        """Compile the transformer as `training.compile` asks; what is saved stays the same.

        Raises:
            OpencseError: The encoder has no transformer.
        """
        kind = self._recipe.training.compile
        if kind == "none":
            return
        transformer = getattr(self.encoder[0], "auto_model", None)
        if transformer is None:
            raise OpencseError("training.compile: the encoder has no transformer", "Leave it out.")
        compile_layers(transformer, kind)

    def merge_adapter(self) -> None:
        """Merge low-rank updates into the weights, if the recipe has them."""
        if self._adapter is not None:
            self._adapter.merge_and_unload()

    def _build_encoder(self, callbacks: Sequence[TrainingCallback]) -> None:
        recipe = self._recipe
        settings = recipe.encoder
        self.encoder = load_start(recipe, self._backbone)
        transformer: Any = self.encoder[0]
        self._adapter: Any = None
        if settings.lora is not None:
            self._adapter = add_lora(transformer.auto_model, **vars(settings.lora))
        check_dropout(recipe.used_views, self.encoder, self._backbone)
        for callback in callbacks:
            callback.prepare_encoder(self.encoder, self._backbone)
        if settings.keep_projector:
            with self.encoder.truncate_embeddings(None):
                full = self.encoder.get_embedding_dimension() or 0
            self.encoder.append(exported_projector(full).to(self.encoder.device))
        # A module that is not one of sentence-transformers' own may read padded states.
        known = all(
            type(module).__module__.startswith("sentence_transformers.") for module in self.encoder
        )
        possible = known and not settings.attend_padding
        # A packed batch has shapes of its own, for which it would be compiled again.
        compiled = recipe.training.compile != "none"
        self.packed = possible and prepare_for_training(self.encoder, packed=not compiled)
        self.padded_transformer = possible and not compiled and not self.packed
        if recipe.training.gradient_checkpointing:
            keep_inputs_only(transformer.auto_model, self.encoder, self._backbone.name)

    def _read_views(self) -> None:
        """Find what each view is tokenised from, and check that the longest one fits the model."""
        self.sources: list[TokenSource] = []
        self.views: dict[str, ViewTokens] = {}
        self.unmarked: Any = None
        for name, view in self._recipe.used_views.items():
            self._add_view(name, view)
        limit = token_limit(self.encoder)
        longest = max(view.longest for view in self.views.values())
        if limit is not None and longest > limit:
            raise OpencseError(
                f"encoder.max_length is {self._recipe.encoder.max_length}, but the backbone takes at "
                f"most {limit} tokens",
                "Lower it with --set encoder.max_length=…",
            )

    def _add_view(self, name: str, view: ViewSettings) -> None:
        settings = self._recipe.encoder
        prompt = view.prompt
        if settings.pooling == "mask" and prompt:
            # The encoder's tokenizer lost the mask token, so templates are read with the
            # original one.
            transformer: Any = self.encoder[0]
            # If templates have several masks, the last token is for all but the last of them.
            earlier = transformer.auto_model.config.vocab_size - 1
            frame = template_frame(self._backbone.tokenizer, prompt, earlier)
            prompt = None
        else:
            # The prompt is tokenised together with the text.
            frame = encoder_frame(self.encoder)
            default = self.encoder.prompts.get(self.encoder.default_prompt_name or "")
            if prompt is None and default:
                prompt = f"{default}{{}}"
        budget = settings.max_length
        if settings.length_counts == "total":
            budget -= len(frame)
        if budget < 1:
            raise OpencseError(
                f"encoder.max_length is {settings.max_length}, but view '{name}' needs {len(frame)} "
                "tokens for its prompt alone",
                "Raise --set encoder.max_length, or count the content only: --set "
                "encoder.length_counts=content.",
            )
        optional = self._recipe.columns[view.text]
        source = TokenSource(view.text, prompt, optional, view.window, view.final_mark)
        if not view.final_mark and self.unmarked is None:
            pooling = self._recipe.pooling | {"final_mark": ""}
            self.unmarked = self._backbone.encoder(**pooling).tokenizer
        if source not in self.sources:
            self.sources.append(source)
        self.views[name] = ViewTokens(
            source=self.sources.index(source),
            frame=frame,
            budget=budget,
            dropout=view.dropout,
            repetition=view.repetition,
            edit=(view.edit, view.edit_share),
            cutoff=(view.cutoff, view.cutoff_share),
            read=any(name in loss.tokens for loss in self._recipe.losses),
            cut_left=self.encoder.tokenizer.truncation_side == "left",
            prompt_length=left_out_by_pooling(self.encoder, prompt),
        )

    def _denoisers(self) -> dict[str, TemplateDenoising]:
        settings = self._recipe.encoder
        if settings.denoising == "none":
            return {}
        transformer: Any = self.encoder[0]
        return {
            name: TemplateDenoising(
                transformer.auto_model,
                tokens.frame,
                settings.denoising_positions,
                tokens.dropout,
                padding=self.encoder.tokenizer.pad_token_id,
            )
            for name, tokens in self.views.items()
        }

    def _build_head(self, device: torch.device) -> LossHead:
        recipe = self._recipe
        width = self.encoder.get_embedding_dimension() or 0
        # A projector that is kept is a module of the encoder already.
        kind = "none" if recipe.encoder.keep_projector else recipe.encoder.projector
        transformer: Any = self.encoder[0]
        pooler = getattr(transformer.auto_model, "pooler", None)
        projector = build_projector(kind, width, pooler)
        if recipe.encoder.attend_padding:
            self.scored = attending_padding(self.encoder, projector)
        built = loss_modules(
            recipe.losses,
            self.encoder,
            projector,
            self._backbone.tokenizer,
            self._backbone.name,
            recipe.training.seed,
            device,
        )
        return LossHead(projector, Objective(recipe.losses), built, recipe.dimensions_within(width))


def compile_layers(transformer: nn.Module, kind: str) -> None:
    """Compile the parts of a transformer, in place.

    Not the transformer itself, because sentence-transformers calls its forward method directly,
    which `Module.compile` does not replace.

    Args:
        transformer: A transformers encoder.
        kind: As in `training.compile`, except for `none`.
    """
    settings: dict[str, Any] = {"backend": kind}
    if kind == "reduce-overhead":
        settings = {"mode": kind}
    for part in transformer.children():
        layers = part if isinstance(part, nn.ModuleList) else [part]
        for layer in layers:
            # Batches differ in their number of tokens: each new size would be compiled again.
            layer.compile(dynamic=True, **settings)


def check_accumulation(network: Network, recipe: Recipe) -> None:
    """Check that the gradient of several batches may be averaged.

    Raises:
        OpencseError: A loss, or batch normalisation, needs all rows of a step at once.
    """
    reason = ""
    for loss in recipe.losses:
        if loss.needs_complete_batch:
            reason = f"the loss '{loss.name}'"
    if any(isinstance(module, _BatchNorm) for module in network.modules()):
        reason = "the batch normalisation of the projector"
    if reason:
        raise OpencseError(
            f"training.accumulation_steps: {reason} needs all rows of a step at once",
            "Use a larger training.batch_size with training.micro_batch instead, which gives the "
            "gradient of the complete batch in little memory.",
        )


def load_start(recipe: Recipe, backbone: Backbone) -> SentenceTransformer:
    """Load the encoder that a run begins with.

    Raises:
        OpencseError: The backbone cannot be used. If it lacks a pooling as well as dropout, as
            ModernBERT does, one message has both settings.
    """
    settings = recipe.encoder
    try:
        return backbone.encoder(**recipe.pooling, dropout=settings.dropout)
    except OpencseError as error:
        adapter = 0.0 if settings.lora is None else settings.lora.dropout
        if settings.pooling != "backbone" or has_pooling(backbone.source) or adapter > 0:
            raise
        lacks_pooling = error
    encoder = backbone.encoder(pooling="mean", dropout=settings.dropout)
    try:
        check_dropout(recipe.used_views, encoder, backbone)
    except OpencseError as error:
        raise OpencseError(
            f"{lacks_pooling.problem}, and its dropout is 0",
            "Set both: --set encoder.pooling=mean --set encoder.dropout=0.1.",
        ) from error
    raise lacks_pooling


def check_dropout(
    views: Mapping[str, ViewSettings], encoder: SentenceTransformer, backbone: Backbone
) -> None:
    """Check that no two views are identical: the same text and prompt, without dropout.

    Raises:
        OpencseError: Two views are identical.
    """
    rates = dropout_rates(encoder)
    model_rate = max(rates, default=0.0)
    highest: dict[tuple[object, ...], float] = {}
    for view in views.values():
        rate = model_rate
        if view.dropout is not None:
            # A model without dropout layers has no rate.
            rate = view.dropout if rates else 0.0
        seen = (view.text, view.prompt, view.edit, view.cutoff)
        # Random edits and cut-offs differ from view to view; reversing does not.
        drawn = view.edit not in ("none", "reverse") or view.cutoff != "none"
        if seen in highest and not drawn and max(rate, highest[seen]) == 0:
            raise OpencseError(
                f"{backbone}: its dropout is 0, so two views of a sentence would be identical",
                "Set a rate with --set encoder.dropout=0.1.",
            )
        highest[seen] = max(rate, highest.get(seen, 0.0))
