"""The text of a run: the corpus as tokens, and as vectors of the teachers."""

from __future__ import annotations

from collections.abc import Iterator

from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import cut_note
from opencse.foundation.cache import key_hash
from opencse.foundation.progress import timed
from opencse.recipes import Recipe
from opencse.recipes.rows.token_store import TokenStore, UsableRows, open_token_store
from opencse.text.corpus import Corpus
from opencse.training.batches import Collator, few_widths
from opencse.training.session import TrainingSession
from opencse.training.teachers import load_teachers, teacher_vectors
from opencse.training.trained_model import TrainedModel

# Tokens of a forward pass of padded texts: few on a CPU, many on a GPU, where launching kernels
# takes time.
_CPU_TOKENS = 2048
_GPU_TOKENS = 32768


class TrainingText:
    """The corpus as tokens and as vectors of the teachers.

    Attributes:
        store: The tokens.
        vectors: The vectors of the teachers.
        teacher_digests: Hash of each teacher.
        warnings: Warnings for the user.
    """

    def __init__(
        self,
        recipe: Recipe,
        corpus: Corpus,
        backbone: Backbone,
        model: TrainedModel,
        session: TrainingSession,
    ) -> None:
        self._recipe = recipe
        self._model = model
        # The main process first: the others find in the cache what it loads and computes.
        with session.accelerator.main_process_first(), timed("teachers"):
            teachers = load_teachers(recipe, backbone)
        with timed("tokenising"):
            self.store: TokenStore = open_token_store(
                corpus,
                model.sources,
                model.encoder.tokenizer,
                recipe.encoder.max_length,
                # If the corpus has parts, they define which views are required.
                allow_empty=bool(recipe.corpus.parts),
                unmarked=model.unmarked,
                progress=session.progress,
                together=session.together(),
            )
        with timed("teachers"):
            self.vectors = teacher_vectors(
                recipe,
                teachers,
                UsableRows(corpus, model.sources),
                progress=session.progress,
                together=session.together(),
            )
        self.teacher_digests = {name: key_hash(teacher.key()) for name, teacher in teachers.items()}
        self.warnings: list[str] = []
        empty = [name for name, view in model.views.items() if not self.store.present(view.source)]
        if empty:
            views = ", ".join(empty)
            self.warnings.append(f"no sentence has the views {views}: they have no effect")

    def notes(self) -> Iterator[str]:
        """Yield what a user should know of the rows."""
        if self.store.skipped:
            yield f"{self.store.skipped} blank rows were left out; {self.store.rows} are used"
        limit = self._recipe.encoder.max_length
        cut = cut_note(self.store.count_long(0, limit), self.store.rows, limit)
        if cut:
            yield cut
        for name, view in self._recipe.used_views.items():
            if view.window is not None:
                passed = self.store.present(self._model.views[name].source)
                low, high = view.window
                yield (
                    f"{passed} of {self.store.rows} rows have a {name} with a match error rate of "
                    f"{low} to {high}"
                )

    def collator(self, on_cpu: bool) -> Collator:
        """Return what makes batches."""
        attend_padding = self._recipe.encoder.attend_padding
        budget: int | None = _CPU_TOKENS if on_cpu else _GPU_TOKENS
        if self._model.packed or attend_padding:
            # What is padding depends on the rest of the group.
            budget = None
        widths: tuple[int, ...] = ()
        if self._recipe.training.compile != "none" and not attend_padding:
            # One group of one of a few shapes, which are compiled once.
            budget = None
            widths = few_widths(max(view.longest for view in self._model.views.values()))
        return Collator(
            self.store,
            self._model.views,
            self._model.encoder.tokenizer.pad_token_id or 0,
            budget=budget,
            teachers=self.vectors,
            # On a CPU the packed layout is computed from the mask; elsewhere that would wait for
            # the device.
            packed=self._model.packed and not on_cpu,
            micro_batch=self._recipe.training.micro_batch,
            seed=self._recipe.training.seed,
            attend_padding=attend_padding,
            widths=widths,
        )
