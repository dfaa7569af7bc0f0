"""The texts to tokenise for the views of a recipe, and the tokens around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencse.encoder import special_frame, template_frame
from opencse.encoder.backbone import Backbone
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe, ViewSettings
from opencse.recipes.rows.token_store import TokenSource
from opencse.training.batches import ViewTokens

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def sources_and_views(
    recipe: Recipe, encoder: SentenceTransformer, backbone: Backbone
) -> tuple[list[TokenSource], dict[str, ViewTokens]]:
    """Return the texts to tokenise, and for each view its text and its frame of tokens.

    Args:
        recipe: Recipe with the views.
        encoder: The encoder to be trained.
        backbone: The model that it was loaded from.

    Raises:
        OpencseError: `encoder.max_length` is too short for the prompt of a view, or longer than the backbone takes.
    """
    settings = recipe.encoder
    masked = settings.pooling == "mask"
    plain = None if masked else special_frame(encoder.tokenizer)
    # The modified tokenizer no longer has the mask token, so templates are read with the original one.
    original = backbone.tokenizer if masked else None
    sources: list[TokenSource] = []
    views: dict[str, ViewTokens] = {}
    for name, view in recipe.used_views.items():
        frame = template_frame(original, view.prompt) if plain is None and view.prompt else plain
        assert frame is not None
        budget = settings.max_length - (len(frame) if settings.length_counts == "total" else 0)
        if budget < 1:
            raise OpencseError(
                f"encoder.max_length is {settings.max_length}, but view '{name}' needs {len(frame)} tokens for its "
                "prompt alone",
                "Raise --set encoder.max_length, or count the content only: --set encoder.length_counts=content.",
            )
        source = TokenSource(view.text, _text_prompt(view, encoder, masked), recipe.columns[view.text], view.window)
        if source not in sources:
            sources.append(source)
        views[name] = ViewTokens(sources.index(source), frame, budget, view.dropout, view.repetition)
    limit = encoder.max_seq_length
    longest = max(len(v.frame) + v.budget + v.max_repeated for v in views.values())
    if limit is not None and longest > limit:
        raise OpencseError(
            f"encoder.max_length is {settings.max_length}, but the backbone takes at most {limit} tokens",
            "Lower it with --set encoder.max_length=…",
        )
    return sources, views


def _text_prompt(view: ViewSettings, encoder: SentenceTransformer, masked: bool) -> str | None:
    """Return a prompt that is tokenised together with the text; by default the model's own default prompt."""
    if masked:
        return None
    if view.prompt is not None:
        return view.prompt
    default = encoder.prompts.get(encoder.default_prompt_name or "")
    return default + "{}" if default else None
