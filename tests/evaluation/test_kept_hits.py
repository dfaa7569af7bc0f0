"""The guard without labels: first hits of one model that another still finds."""

import numpy as np
import pytest

from opencse.evaluation import evaluate_tasks
from opencse.evaluation.kept_hits import KeptHitsTask
from opencse.foundation.errors import OpencseError

DOCUMENTS = [f"document {place}" for place in range(12)]


def model(nearness):
    """Documents on the axes; a search lies nearest to the document of the greatest number."""
    vectors = dict(zip(DOCUMENTS, np.eye(12), strict=True)) | nearness
    return lambda texts: np.array([vectors[text] for text in texts])


def test_the_first_model_sets_what_others_must_find():
    task = KeptHitsTask("own-searches", ["a", "b"], DOCUMENTS)
    untouched = model({"a": np.arange(12.0), "b": np.arange(12.0)[::-1]})  # first hits: documents 11 and 0
    assert evaluate_tasks(untouched, [task])["own-searches"].score == 100
    # "a" finds document 11 second; for "b", ten documents are nearer than document 0.
    changed = model({"a": np.array([*range(10), 12.0, 11.0]), "b": np.array([1.5, *range(1, 12)])})
    result = evaluate_tasks(changed, [task])["own-searches"]
    assert result.metrics == {"kept@10": 50, "kept@1": 0}
    assert (result.main, result.rows) == ("kept@10", 2)
    assert evaluate_tasks(untouched, [task])["own-searches"].metrics == {"kept@10": 100, "kept@1": 100}


@pytest.mark.parametrize(("queries", "documents"), [([], DOCUMENTS), (["a"], DOCUMENTS[:10])])
def test_too_little_is_refused(queries, documents):
    with pytest.raises(OpencseError, match="own-searches"):
        KeptHitsTask("own-searches", queries, documents)
