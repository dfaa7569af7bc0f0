"""Recipes as the `loss` of a `SentenceTransformerTrainer`, for existing training scripts.

The trainer has columns of text instead of views, and its checkpoints do not contain the weights of
a loss. The consequences are listed in docs/guides/sentence-transformers.md.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from opencse.encoder.loading import build_projector, load_encoder
from opencse.encoder.names import family_of
from opencse.foundation.errors import OpencseError
from opencse.foundation.toml_tables import unknown_name_error
from opencse.losses import Loss, Objective
from opencse.losses.base import check_is_loss
from opencse.recipes import Recipe, load_recipe
from opencse.recipes.load import adapt_recipe
from opencse.recipes.schema import Encoder as EncoderSettings
from opencse.recipes.schema import Teacher, ViewSettings
from opencse.training.batches import NO_CUTOFF, Batch, EncoderPass
from opencse.training.checkpoint import load_weights, save_weights
from opencse.training.encoding import encode_batch
from opencse.training.loss_head import LossHead, loss_modules

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import TrainerCallback

_FILE = "opencse_loss.safetensors"


def sentence_transformers_loss(
    recipe: str | Path | Recipe | None = None,
    model: SentenceTransformer | None = None,
    *,
    losses: Sequence[Loss] = (),
    columns: Mapping[str, str] | None = None,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    backbone: str | Path = "",
) -> RecipeLoss:
    """Return the objective of a recipe, or the sum of some losses, as a loss for `SentenceTransformerTrainer`.

    Only the views, losses, teachers and projector of the recipe are used; optimiser, schedule, batch
    size and maximum length are the trainer's. Example:

    ```python
    loss = opencse.sentence_transformers_loss("hince", model)
    data = Dataset.from_dict({"text": sentences, "negative": negatives})  # "" for none
    trainer = SentenceTransformerTrainer(
        model, args, data.select_columns(loss.columns), loss=loss, callbacks=[loss.callback()]
    )
    ```

    Args:
        recipe: A name, a TOML file, or a `Recipe`; leave it out if you give `losses`.
        model: The encoder to train; its own pooling is kept.
        losses: Losses without a recipe, such as `[InfoNCELoss(temperature=0.05)]`; they are weighted
            and summed.
        columns: With `losses`: the column of the dataset that each view reads, by view; by default
            the column with the view's name. Two views of one column differ by their dropout.
        variant: `sound` or `faithful`.
        overrides: `key=value` settings.
        backbone: Path or name of the model, for losses that load it again (a generator called
            `backbone`).

    Raises:
        OpencseError: The recipe is invalid, or needs something that the trainer does not have.
    """
    if model is None:
        raise OpencseError(
            "there is no model to train", "Give it: sentence_transformers_loss(…, model=model)."
        )
    if losses:
        if recipe is not None or overrides or variant != "sound":
            raise OpencseError(
                "losses were given as well as a recipe or its settings",
                "Give either a recipe or losses.",
            )
        return RecipeLoss(_recipe_of(losses, columns or {}), model, backbone)
    if recipe is None or columns is not None:
        raise OpencseError(
            "there are no losses", "Give a recipe, or losses=[InfoNCELoss(temperature=0.05)]."
        )
    transformer: Any = model[0]
    family = family_of(transformer.auto_model.config.to_dict())
    if isinstance(recipe, Recipe):
        recipe = adapt_recipe(recipe, family=family, variant=variant, overrides=overrides)
    else:
        recipe = load_recipe(recipe, family=family, variant=variant, overrides=overrides)
    return RecipeLoss(recipe, model, backbone)


def _recipe_of(losses: Sequence[Loss], columns: Mapping[str, str]) -> Recipe:
    """Return a recipe with some losses, for an encoder as it is.

    Raises:
        OpencseError: A view in `columns` is read by no loss, or two losses share a name.
    """
    for loss in losses:
        check_is_loss(type(loss))
    names = list(dict.fromkeys(view for loss in losses for view in loss.views))
    for view in columns:
        if view not in names:
            raise unknown_name_error("view", view, names, "columns")
    views = {}
    for view in names:
        column = columns.get(view, view)
        # Every row has the first text; the others may be "" for none.
        first = column == columns.get(names[0], names[0])
        views[view] = ViewSettings(text=column, optional=not first)
    encoder = EncoderSettings(pooling="backbone", projector="none")
    try:
        return Recipe(name="losses", losses=tuple(losses), views=views, encoder=encoder)
    except ValueError as error:
        raise OpencseError(str(error), "Give each loss a name, or leave one out.") from error


class RecipeLoss(nn.Module):
    """The objective of a recipe as a loss module, from `sentence_transformers_loss`.

    Attributes:
        model: The encoder, which the trainer replaces by its wrapper.
        recipe: The resolved recipe.
        columns: Text columns that the dataset must have, in this order: the trainer passes them on
            without names.
        reports: Values that the losses reported in the last step.
    """

    def __init__(self, recipe: Recipe, model: SentenceTransformer, backbone: str | Path) -> None:
        super().__init__()
        self.model: nn.Module = model
        self.recipe = recipe
        self.columns = list(recipe.columns)
        self.reports: dict[str, Tensor] = {}
        _check(recipe)
        pooler = getattr(model[0].auto_model, "pooler", None)
        # It is not used, so several processes would wait for its gradients.
        if isinstance(pooler, nn.Module):
            pooler.requires_grad_(False)
        self._step = 0
        # Number of tokens of a view without a text: a row with no more has no such view.
        self._bare = {}
        for view in recipe.used_views.values():
            empty = (view.prompt or "{}").replace("{}", "")
            self._bare[view] = len(model.tokenizer(empty)["input_ids"])
        self._teachers = {}
        for name in recipe.used_teachers:
            self._teachers[name] = _Teacher(recipe.teachers[name], model)
        self.head = self._new_head(model, str(backbone)).to(model.device)
        if self.head.objective.token_outputs and model.tokenizer.padding_side == "left":
            raise OpencseError(
                f"the recipe '{recipe.name}' reads the outputs of tokens, and the model pads on the left",
                "Train with `opencse train`.",
            )

    def _new_head(self, model: SentenceTransformer, backbone: str) -> LossHead:
        """Return projector, objective and the modules of the losses, with new weights."""
        recipe = self.recipe
        width = model.get_embedding_dimension() or 0
        with torch.random.fork_rng(devices=[]):
            # Every process starts from the same new weights.
            torch.manual_seed(recipe.training.seed)
            projector = build_projector(recipe.encoder.projector, width)
            modules = loss_modules(
                recipe.losses,
                model,
                projector,
                model.tokenizer,
                backbone,
                recipe.training.seed,
                model.device,
            )
        objective = Objective(recipe.losses)
        return LossHead(projector, objective, modules, recipe.dimensions_within(width))

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> Tensor:
        """Return the weighted sum of the recipe's losses over the global batch.

        Args:
            sentence_features: Token ids and attention mask of each column, in the order of
                `columns`.
            labels: Not used.
        """
        columns = list(sentence_features)
        if len(columns) != len(self.columns):
            raise OpencseError(
                f"the dataset has {len(columns)} text columns, the recipe '{self.recipe.name}' reads "
                f"{len(self.columns)} ({', '.join(self.columns)})",
                "Pass dataset.select_columns(loss.columns).",
            )
        # The trainer leaves the loss in training mode while it evaluates.
        self.head.train(self.model.training)
        batch = self._batch(dict(zip(self.columns, columns, strict=True)))
        read = self.head.objective.token_outputs
        encoded = encode_batch(self.model, batch, token_views=read)
        loss, values, reports = self.head(encoded.vectors, batch, self._step, encoded.tokens)
        self._step += self.model.training
        self.reports = {name: value.detach() for name, value in values.items()} | reports
        return cast(Tensor, loss)

    def callback(self) -> TrainerCallback:
        """Return a callback that saves the weights of the loss in checkpoints, and synchronises their gradients."""
        import torch.distributed as dist
        from transformers import TrainerCallback

        loss = self

        class _KeepLoss(TrainerCallback):
            def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.is_world_process_zero:
                    save_weights(loss.head, _checkpoint(args, state) / _FILE)

            def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                loss._step = state.global_step
                if not state.global_step:
                    return
                file = _checkpoint(args, state) / _FILE
                if not file.is_file():
                    raise OpencseError(
                        f"{file} does not exist, so that the weights of the loss would start again",
                        "Train with loss.callback() from the start, in one output folder.",
                    )
                load_weights(loss.head, file)

            def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                # The trainer wraps the model, and so averages the gradients of the model only.
                if dist.is_available() and dist.is_initialized():
                    for parameter in loss.head.parameters():
                        if parameter.grad is not None:
                            dist.all_reduce(parameter.grad)
                            parameter.grad /= dist.get_world_size()

        return _KeepLoss()

    def _batch(self, columns: Mapping[str, Mapping[str, Tensor]]) -> Batch:
        """Return the features of the columns as a batch, with one encoder pass for each view."""
        views = self.recipe.used_views
        read = {name for loss in self.recipe.losses for name in loss.tokens}
        rows = len(next(iter(columns.values()))["input_ids"])
        present = {}
        passes = []
        tokens = {}
        for number, (name, view) in enumerate(views.items()):
            ids = columns[view.text]["input_ids"]
            mask = columns[view.text]["attention_mask"]
            lengths = mask.sum(1).cpu()
            valid = torch.ones(rows, dtype=torch.bool)
            if view.optional:
                valid = lengths > self._bare[view]
            present[name] = valid
            at = valid.nonzero().squeeze(1)
            if len(at):
                chosen = at.to(ids.device)
                group = (ids[chosen], mask[chosen], None)
                slots = at + number * rows
                passes.append(EncoderPass(view.dropout, NO_CUTOFF, [group], slots, lengths[at]))
            if name in read:
                tokens[name] = (ids.cpu(), mask.cpu() * valid[:, None])
        teachers: dict[str, dict[str, Tensor]] = {}
        for name, taught in self.recipe.used_teachers.items():
            teachers[name] = {}
            for view_name in taught:
                features = columns[views[view_name].text]
                teachers[name][view_name] = self._teachers[name](features, present[view_name])
        masks = torch.stack(list(present.values()))
        return Batch(tuple(views), rows, passes, masks, teachers, tokens)


class _Teacher:
    """A frozen model that reads the student's token ids; not a module, so that the trainer ignores its weights."""

    def __init__(self, teacher: Teacher, student: SentenceTransformer) -> None:
        if teacher.model == "backbone" and teacher.pooling is None:
            self._model = copy.deepcopy(student)
        else:
            self._model = load_encoder(teacher.model, pooling=teacher.pooling or "backbone")
        if student.tokenizer.get_vocab() != self._model.tokenizer.get_vocab():
            raise OpencseError(
                f"the teacher {teacher.model} has another vocabulary, but the trainer passes on token ids only",
                "Use a teacher with the model's own tokenizer, or train with `opencse train`.",
            )
        self._model.eval().requires_grad_(False)

    def __call__(self, features: Mapping[str, Tensor], present: Tensor) -> Tensor:
        device = features["input_ids"].device
        with torch.no_grad():
            named = {key: features[key] for key in ("input_ids", "attention_mask")}
            vectors = cast(Tensor, self._model.to(device)(named)["sentence_embedding"]).float()
        return vectors * present.to(device)[:, None]


def _check(recipe: Recipe) -> None:
    if recipe.block is not None:
        raise OpencseError(
            f"the recipe '{recipe.name}' trains a meaning block next to the model, not the model itself",
            f"Train with `opencse run {recipe.name}`.",
        )
    prompts: dict[str, set[str | None]] = {}
    for view in recipe.used_views.values():
        prompts.setdefault(view.text, set()).add(view.prompt)
    if recipe.encoder.pooling == "mask" or any(len(of) > 1 for of in prompts.values()):
        raise OpencseError(
            f"the recipe '{recipe.name}' puts templates around its texts, which the trainer cannot do",
            "Train with `opencse train`, or remove the templates: --set views.NAME.prompt={} for each view, and "
            "--set encoder.pooling=cls.",
        )
    for name, view in recipe.used_views.items():
        if view.repetition:
            raise OpencseError(
                f"the recipe '{recipe.name}' repeats other tokens at each step, which the trainer cannot do",
                f"Train with `opencse train`, or leave it out: --set views.{name}.repetition=0.",
            )
        if view.edit != "none" or view.cutoff != "none":
            raise OpencseError(
                f"the recipe '{recipe.name}' edits the view '{name}' at each step, which the trainer cannot do",
                f"Train with `opencse train`, or leave it out: --set views.{name}.edit=none "
                f"--set views.{name}.cutoff=none.",
            )
    if recipe.encoder.denoising != "none":
        raise OpencseError("template denoising needs templates", "Train with `opencse train`.")


def _checkpoint(args: Any, state: Any) -> Path:
    return Path(args.output_dir) / f"checkpoint-{state.global_step}"
