"""`opencse.compare_search`: which searches change when a model is replaced."""

from __future__ import annotations

import numpy as np

from opencse.commands.comparison.search_page import write_search_comparison
from opencse.commands.comparison.top_hits import SearchComparison, compare_searches
from opencse.commands.measuring_options import SearchOptions
from opencse.commands.option_fields import takes
from opencse.commands.reports.templates import output_folder
from opencse.encoder.embedder import Embedder
from opencse.encoder.given import model_source
from opencse.encoder.loading import load_encoder
from opencse.evaluation.probes.probe_models import short_names
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import check_seed
from opencse.text.user_text import collect_passages, collect_queries

_SENTENCES = 100  # used as queries if none are given


@takes(SearchOptions)
def compare_search(options: SearchOptions) -> SearchComparison:
    """Compare the searches of two models.

    Returns:
        Overlap of the lists, whether stored vectors stay usable, and the lists; it displays itself in a notebook.

    Raises:
        OpencseError: A file cannot be read, or there is no such model.
    """
    check_seed(options.seed)
    if options.documents < 1:
        raise OpencseError(f"{options.documents} documents are too few to search", "Give at least 1, or leave it out.")
    if options.out is not None:
        output_folder(options.out)
    found = collect_passages(options.texts, column=options.column, words=options.words)
    rng = np.random.default_rng(options.seed)
    searched = [found[i] for i in sorted(rng.permutation(len(found))[: options.documents].tolist())]
    if options.queries is not None:
        asked = collect_queries(options.queries)
    else:
        sentences = list(dict.fromkeys(text for passage in searched for text in passage.sentences))
        asked = [sentences[i] for i in sorted(rng.permutation(len(sentences))[:_SENTENCES].tolist())]
    sources = [model_source(options.old), model_source(options.new)]
    encoders = [Embedder(load_encoder(each), precision=options.precision, progress="encoding") for each in sources]
    labels = short_names(sources)
    result = compare_searches(
        encoders[0],
        encoders[1],
        [passage.text for passage in searched],
        asked,
        names=(labels[0], labels[1]),
        own_queries=options.queries is not None,
    )
    if options.out is not None:
        write_search_comparison(result, options.out)
    return result
