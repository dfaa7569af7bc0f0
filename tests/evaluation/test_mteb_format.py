from __future__ import annotations

import json

import numpy as np
import pytest

from opencse.evaluation import PairsTask, ScoredPairs, evaluate_tasks
from opencse.evaluation.results_table import write_mteb
from opencse.foundation.errors import OpencseError


def results(scores=(1, 2, 3, 5)):
    pairs = ScoredPairs(name="STS-B", sentence1=list("abcd"), sentence2=list("efgh"), scores=scores, text="raw")
    rng = np.random.default_rng(0)
    return evaluate_tasks(lambda texts: rng.normal(size=(len(texts), 4)), [PairsTask(pairs=pairs)])


def test_layout(tmp_path):
    outcome = results()
    folder = write_mteb([outcome], tmp_path, model="runs/my model", revision="f00d", dimension=4)
    assert folder == tmp_path / "results" / "local__my-model" / "f00d"
    assert sorted(path.name for path in folder.iterdir()) == ["STSBenchmark.json", "model_meta.json"]
    task = json.loads((folder / "STSBenchmark.json").read_text())
    assert task["task_name"] == "STSBenchmark"
    assert task["dataset_revision"].startswith("raw-sha256-")
    (scores,) = task["scores"]["test"]
    found = outcome["STS-B"]
    assert scores["main_score"] == scores["cosine_spearman"] == round(found.details["mteb_cosine_spearman"] / 100, 6)
    assert scores["spearman"] == round(found.metrics["spearman"] / 100, 6)
    assert scores["cosine_pearson"] == round(outcome["STS-B"].metrics["pearson"] / 100, 6)
    assert (scores["hf_subset"], scores["languages"]) == ("default", ["eng-Latn"])
    meta = json.loads((folder / "model_meta.json").read_text())
    assert (meta["name"], meta["revision"], meta["embed_dim"]) == ("local/my-model", "f00d", 4)


def test_models_of_one_name_do_not_collide(tmp_path):
    first, second = (write_mteb([results()], tmp_path, model="org/m", revision=r) for r in ("r1", "r2"))
    assert first != second
    assert first.parent.name == "org__m"


def test_undefined_scores_write_nothing(tmp_path):
    with pytest.raises(OpencseError, match="undefined"):
        write_mteb([results(scores=(2, 2, 2, 2))], tmp_path, model="m", revision="r")
    assert not list(tmp_path.iterdir())
