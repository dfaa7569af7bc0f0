from __future__ import annotations

import numpy as np
import pytest

from opencse.commands.integrations.mteb import VectorEncoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import PairsTask, distinct_texts, evaluate_tasks, load_sts

mteb = pytest.importorskip("mteb", reason="the extra `mteb` is not installed")


@pytest.mark.parametrize("real", [False, True])
def test_sts_equals_mteb_on_the_same_rows(tiny_model, some_pairs, request, real):
    from datasets import Dataset, DatasetDict

    pairs = load_sts(request.getfixturevalue("data_folder"), tasks=["STS-B"], text="raw")[0] if real else some_pairs
    texts = distinct_texts([PairsTask(pairs=pairs)])
    kept = dict(zip(texts, Embedder(tiny_model)(texts), strict=True))  # whatever a text is encoded with

    def encode(wanted):
        return np.stack([kept[text] for text in wanted])

    task = mteb.get_task("STSBenchmark")
    columns = {"sentence1": list(pairs.sentence1), "sentence2": list(pairs.sentence2), "score": list(pairs.scores)}
    task.dataset, task.data_loaded = DatasetDict({"test": Dataset.from_dict(columns)}), True
    found = mteb.evaluate(VectorEncoder(encode), task, cache=None, show_progress_bar=False)
    (theirs,) = found.task_results[0].scores["test"]
    ours = evaluate_tasks(encode, [PairsTask(pairs=pairs)])[pairs.name].metrics
    assert ours["spearman"] == pytest.approx(100 * theirs["spearman"], abs=1e-6)
    assert ours["pearson"] == pytest.approx(100 * theirs["pearson"], abs=1e-4)  # float32 inside mteb
    # Its main score is by another formula of the cosine, which sets near ties in another order.
    assert ours["spearman"] == pytest.approx(100 * theirs["cosine_spearman"], abs=2e-3)
