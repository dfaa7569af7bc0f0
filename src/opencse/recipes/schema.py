"""The typed recipe: one frozen dataclass per table of the TOML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import check_least, check_range
from opencse.recipes.settings import (
    Block,
    CorpusSettings,
    MixturePart,
    Optimizer,
    Schedule,
    Selection,
    Training,
)

if TYPE_CHECKING:
    from opencse.losses import Loss
else:
    # Losses are decoded by their kinds before the rest of a recipe, and they need torch.
    Loss = Any


@dataclass(frozen=True, kw_only=True)
class ViewSettings:
    """A named version of each training sentence.

    Attributes:
        text: The text column that the view reads.
        prompt: What is put around the text. With `{mask}` it is a template for mask pooling, such
            as `'This sentence of "{}" means {mask}.'`; without, it is a plain prefix such as
            `"query: {}"`.
        dropout: A dropout rate of the view's own (HiNCE's p2); the model's where absent.
        repetition: Tokens of the text are repeated, from none up to this share of them and at most
            nine, drawn afresh at each step (ESimCSE's dup_rate). Repetition comes after the cut to
            the maximum length.
        edit: Edit the tokens of the text, differently at each step: `shuffle`, `reverse`, `delete` or
            `repeat` some of them (PCL), or `shuffle_all`, special tokens included (ConSERT).
            `delete_first` draws tokens like `delete`, and removes the first of equal ones (PCL's
            code).
        edit_share: Share of the tokens that are deleted or repeated.
        cutoff: What is set to zero after the embedding layer, differently at each step: whole tokens
            (`token`), the same features of all tokens of a sentence (`feature`), or single numbers
            (`cell`), as in ConSERT.
        cutoff_share: Share of the tokens, features or numbers that are cut off.
        final_mark: Put the encoder's `final_mark` after the text.
        optional: Rows may lack the text (null); the losses then leave those rows out.
        window: Minimum and maximum match error rate with the column `text`, whatever the text comes
            from; a row outside counts as lacking it (OssCSE Appendix A: 0.15 and 0.6).
    """

    text: str = "text"
    prompt: str | None = None
    dropout: float | None = None
    repetition: float = 0.0
    edit: Literal[
        "none", "shuffle", "shuffle_all", "reverse", "delete", "delete_first", "repeat"
    ] = "none"
    edit_share: float = 0.2
    cutoff: Literal["none", "token", "feature", "cell"] = "none"
    cutoff_share: float = 0.2
    final_mark: bool = True
    optional: bool = False
    window: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        check_range(self, "[0, 1]", "repetition")
        check_range(self, "[0, 1)", "dropout", "edit_share", "cutoff_share")
        if self.window is not None and not (
            self.optional and 0 <= self.window[0] <= self.window[1] <= 1
        ):
            raise ValueError("window must be a range within [0, 1], of an optional view")
        if self.prompt is not None and self.prompt.count("{}") != 1:
            raise ValueError("prompt must hold {} exactly once, where the sentence goes")


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """Another sentence encoder, whose vectors of the training text some losses read.

    It is run once over the text, before training and without dropout, and may have a tokenizer and
    its own width.

    Attributes:
        model: A folder, a hub id or a bundled name; or `backbone`, the model that the run begins
            with, untouched.
        pooling: As in `Encoder`; by default that of the teacher's own folder, and the run's own
            for `backbone`.
        max_length: Tokens that the teacher reads of each text, special ones included; all that it
            takes by default.
    """

    model: str
    pooling: Literal["backbone", "cls", "mean", "lasttoken", "first_last", "last_two"] | None = None
    max_length: int | None = None

    def __post_init__(self) -> None:
        if not self.model:
            raise ValueError("model must name a folder, a hub id or 'backbone'")
        check_least(self, 3, "max_length")


@dataclass(frozen=True, kw_only=True)
class FirstStage:
    """A model that is trained before any text is built, from the same backbone and on the same sentences.

    A view names it as its `model`, and mines with it (DebCSE mines with an unsupervised
    SimCSE model).

    Attributes:
        recipe: What it is trained by: a name or a TOML file.
        set: Settings of that recipe, as after `--set`. Its seed is the run's.
    """

    recipe: str
    set: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lora:
    """Low-rank adapters of all linear layers (LoRA, Hu et al., 2022): only they are trained, then merged.

    Attributes:
        rank: Their rank r.
        alpha: α; what they add is scaled by α / r. By default twice the rank.
        dropout: Dropout rate of their input: the only dropout of most decoders.
    """

    rank: int
    alpha: int | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        check_least(self, 1, "rank")
        check_range(self, "(0, inf)", "alpha")
        check_range(self, "[0, 1)", "dropout")


@dataclass(frozen=True, kw_only=True)
class Encoder:
    """How a sentence becomes a vector.

    Attributes:
        pooling: `backbone` keeps what a sentence-transformers model already does; `cls`, `mean`,
            `lasttoken` (of decoders), `first_last` (mean over tokens of the first and the last
            layer), `last_two` (the same of the last two layers), `mask` (the vector at the prompt's
            mask) and `ngrams` (mean over tokens of new convolutions, IS-BERT) replace it.
        projector: Head used in training only: `simcse` (Linear + Tanh, SimCSE §3), `diffcse` (two
            layers with BatchNorm, DiffCSE §3), `pooler` (the backbone's own pooler) or
            `pooler_simcse` (that pooler, then `simcse`; DCLR's code); not exported.
        keep_projector: Train the `simcse` projector as a part of the encoder, which is exported
            with it as a Dense module: supervised SimCSE's pooler.
        max_length: Longest training input in tokens; longer ones are cut.
        length_counts: Whether `max_length` counts the `total` (special tokens and prompt included,
            as SimCSE and SNCSE do) or only the `content` (as PromptBERT does).
        attend_padding: Let tokens attend to padding, in training and on the development pairs, whose
            vectors then are those of the backbone's pooler (DCLR's code). Scoring and export have
            the usual attention mask, and no pooler.
        dropout: Dropout rate to set in the complete model; its own where absent.
        lora: See `Lora`; where absent, all weights are trained.
        final_mark: With pooling `mask`, text added after every sentence that ends in no punctuation
            mark, in training, scoring and export; SNCSE's is `" ."`.
        denoising: PromptBERT's template denoising, with pooling `mask`: `train` takes the
            template's own vector away in training only, `train_and_dev` on the development pairs
            too. The exported model never does.
        denoising_positions: Whether the template's positions count as the `model` does, or from
            `zero` (PromptBERT's code, which for RoBERTa means other positions); or `padding`, which
            puts padding tokens in the place of the sentence (CoT-BERT).
    """

    pooling: Literal[
        "backbone", "cls", "mean", "lasttoken", "first_last", "last_two", "mask", "ngrams"
    ] = "cls"
    projector: Literal["none", "simcse", "diffcse", "pooler", "pooler_simcse"] = "simcse"
    keep_projector: bool = False
    max_length: int = 32
    length_counts: Literal["total", "content"] = "total"
    attend_padding: bool = False
    dropout: float | None = None
    lora: Lora | None = None
    final_mark: str = ""
    denoising: Literal["none", "train", "train_and_dev"] = "none"
    denoising_positions: Literal["model", "zero", "padding"] = "model"

    def __post_init__(self) -> None:
        check_least(self, 3, "max_length")
        if self.keep_projector and self.projector != "simcse":
            raise ValueError("keep_projector is for the projector 'simcse'")
        check_range(self, "[0, 1)", "dropout")
        if self.attend_padding and (
            self.pooling != "cls" or self.projector not in ("pooler", "pooler_simcse")
        ):
            raise ValueError("attend_padding needs pooling 'cls' and a projector with a pooler")
        if self.denoising != "none" and self.pooling != "mask":
            raise ValueError("denoising is for templates: it needs pooling 'mask'")
        if self.final_mark and self.pooling != "mask":
            raise ValueError("final_mark is for templates: it needs pooling 'mask'")


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training system: views, losses, and how they are optimised.

    Attributes:
        name: The name of the recipe's file.
        title: One line for listings.
        paper: Authors, title, venue and year of the source.
        differs: How the default differs from the system as published (its `faithful` variant), and
            why.
        variant: `sound` (the default) or `faithful`.
        family: The backbone family whose published settings were applied.
        views: The versions of each sentence, by name. A loss may also read the column `text` and
            those of `build` under their own names; rows may lack these.
        losses: The summands of the objective.
        dimensions: Numbers of dimensions at which the losses that compare embeddings act, the
            largest first, so that the trained vectors can be cut to any of them (Matryoshka
            representation learning, Kusupati et al., 2022); by default the full vectors. Vectors
            that were cut have length 1 again, and a projector sees zeros in place of the rest. The
            other losses act once, on full vectors.
        teachers: Models whose vectors the losses may read, by name.
        first_stages: Models that are trained before the `build`, by name.
        corpus: See `CorpusSettings`.
        build: How missing text columns are made, by column.
        encoder: See `Encoder`.
        block: See `Block`; where absent, the encoder itself is trained.
        optimizer: See `Optimizer`.
        schedule: See `Schedule`.
        training: See `Training`.
        selection: See `Selection`.
        published: The paper's average over the seven STS tasks, by backbone family.
    """

    name: str
    title: str = ""
    paper: str = ""
    differs: str = ""
    variant: Literal["sound", "faithful"] = "sound"
    family: str = "other"
    views: dict[str, ViewSettings] = field(default_factory=dict)
    losses: tuple[Loss, ...]
    dimensions: tuple[int, ...] | None = None
    teachers: dict[str, Teacher] = field(default_factory=dict)
    first_stages: dict[str, FirstStage] = field(default_factory=dict)
    corpus: CorpusSettings = field(default_factory=CorpusSettings)
    build: dict[str, Any] = field(default_factory=dict)
    encoder: Encoder = field(default_factory=Encoder)
    block: Block | None = None
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    training: Training = field(default_factory=Training)
    selection: Selection = field(default_factory=Selection)
    published: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check_names()
        self._declare_built_views()
        self._check_needs_of_losses()
        self._check_columns_of_parts()
        self._check_dimensions()
        self._check_block()
        self._check_masks()

    def _check_names(self) -> None:
        if not self.losses:
            raise ValueError("at least one loss is needed")
        names = [loss.name for loss in self.losses]
        if len(set(names)) != len(names):
            raise ValueError(
                f"two losses share a name ({', '.join(names)}): give each its own `name`"
            )
        # Each name becomes that of a folder.
        for stage in self.first_stages:
            if not re.fullmatch(r"\w[\w-]{0,99}", stage):
                raise ValueError(
                    f"first_stages: {stage!r} is not a plain name, such as 'negatives'"
                )

    def _declare_built_views(self) -> None:
        """Add views that losses name after a column: `text`, or one that the recipe builds."""
        built = {"text"}
        for name, spec in self.build.items():
            built.update(spec.columns(name))
        views = dict(self.views)
        for loss in self.losses:
            for view in loss.views:
                if view not in views and view in built:
                    views[view] = ViewSettings(text=view, optional=view != "text")
        # The class is frozen, but only here all that the value depends on is known.
        object.__setattr__(self, "views", views)

    def _check_needs_of_losses(self) -> None:
        for number, loss in enumerate(self.losses):
            for view in loss.views:
                if view not in self.views:
                    raise _undefined(loss, "view", view, self.views)
            for teacher in loss.teachers:
                if teacher not in self.teachers:
                    raise _undefined(loss, "teacher", teacher, self.teachers)
            source = loss.weights_from
            if not source:
                continue
            earlier = self.losses[:number]
            if not any(
                other.name == source and other.teachers == loss.teachers for other in earlier
            ):
                raise ValueError(
                    f"loss '{loss.name}' takes the weights of '{source}', which is no earlier loss with its teachers"
                )

    def _check_columns_of_parts(self) -> None:
        read = {view.text for view in self.views.values()}
        mixed = {"text"}
        for name, part in self.corpus.parts.items():
            for column in (*part.needs, *part.keeps):
                if column not in read:
                    raise ValueError(f"corpus.parts.{name}: no view reads the column '{column}'")
                if part.rows:
                    mixed.add(column)
        if not self.used_views:
            raise ValueError("no loss reads a view: the encoder would have nothing to encode")
        for place, used in self.used_views.items():
            if self.corpus.parts and used.text not in mixed:
                raise ValueError(
                    f"view '{place}' reads the column '{used.text}', which no part of the corpus has: "
                    "add it to the `keeps` of one of corpus.parts"
                )

    def _check_dimensions(self) -> None:
        if self.dimensions is None:
            return
        sizes = list(self.dimensions)
        descending = sorted(set(sizes), reverse=True) == sizes
        if not sizes or not descending or sizes[-1] < 1:
            raise ValueError(
                f"dimensions must be one or more numbers from 1, the largest first, not {sizes}"
            )
        compared = any(loss.compares_embeddings for loss in self.losses)
        if self.block is not None or not compared:
            raise ValueError(
                "no loss acts at these dimensions (a meaning block has its own): leave them out"
            )

    def _check_block(self) -> None:
        if self.block is None:
            return
        if self.encoder.lora is not None:
            raise ValueError(
                "lora is for an encoder that is trained, not for a meaning block: leave it out"
            )
        if all(loss.kind != "meaning" for loss in self.losses):
            raise ValueError("a recipe with a [block] needs a loss of the kind 'meaning'")
        if self.encoder.projector != "none":
            raise ValueError("a meaning block needs encoder.projector 'none'")

    def _check_masks(self) -> None:
        masks = {}
        for name, view in self.used_views.items():
            masks[name] = (view.prompt or "").count("{mask}")
        masked = [name for name, count in masks.items() if count]
        if self.encoder.pooling != "mask":
            if masked:
                raise ValueError(
                    f"the prompt of view '{masked[0]}' has a {{mask}}: set encoder.pooling to 'mask'"
                )
            return
        if len(masked) != len(masks):
            raise ValueError("pooling 'mask' needs a prompt with {mask} in every view")
        single = [name for name in masked if masks[name] == 1]
        if single and len(single) != len(masked):
            raise ValueError(
                f"the prompt of view '{single[0]}' has one {{mask}}, those of others have several"
            )

    def dimensions_within(self, width: int) -> tuple[int, ...]:
        """Return the numbers of dimensions at which the objective acts, for an encoder whose vectors have `width`.

        Raises:
            OpencseError: A number of dimensions is larger.
        """
        sizes = self.dimensions or ()
        if sizes and sizes[0] > width:
            raise OpencseError(
                f"{self.name}: dimensions has {sizes[0]}, but the vectors of the encoder have {width}",
                f"Give {width} at most, such as --set dimensions=[{width},{width // 2}].",
            )
        return sizes

    @property
    def used_views(self) -> dict[str, ViewSettings]:
        """The views that some loss reads, in the order of definition; only these are encoded."""
        needed = {name for loss in self.losses for name in loss.views}
        return {name: view for name, view in self.views.items() if name in needed}

    @property
    def pooling(self) -> dict[str, Any]:
        """Arguments with which `load_encoder` pools as the exported model does."""
        if self.encoder.pooling != "mask":
            return {"pooling": self.encoder.pooling}
        prompt = next(iter(self.used_views.values())).prompt
        return {"pooling": "mask", "prompt": prompt, "final_mark": self.encoder.final_mark}

    @property
    def used_teachers(self) -> dict[str, tuple[str, ...]]:
        """For each teacher that some loss reads, the views it is read for; only these are computed."""
        used: dict[str, tuple[str, ...]] = {}
        for name in self.teachers:
            views = {view for loss in self.losses if name in loss.teachers for view in loss.views}
            if views:
                used[name] = tuple(view for view in self.views if view in views)
        return used

    @property
    def columns(self) -> dict[str, bool]:
        """The text columns that the losses read, and whether rows may lack them."""
        columns: dict[str, bool] = {}
        for view in self.used_views.values():
            columns[view.text] = columns.get(view.text, True) and view.optional
        return columns

    @property
    def used_parts(self) -> dict[str, MixturePart]:
        """The parts of the mixture, without the columns that no loss reads."""
        columns = self.columns
        parts = {}
        for name, part in self.corpus.parts.items():
            needs = tuple(column for column in part.needs if column in columns)
            keeps = tuple(column for column in part.keeps if column in columns)
            parts[name] = replace(part, needs=needs, keeps=keeps)
        return parts


def _undefined(loss: Loss, kind: str, name: str, defined: Mapping[str, Any]) -> ValueError:
    """Return the error for a view or a teacher that a loss needs, and that the recipe lacks."""
    return ValueError(
        f"loss '{loss.name}' needs the {kind} '{name}', which is not defined "
        f"({kind}s: {', '.join(defined) or 'none'}): add [{kind}s.{name}]"
    )
