from tests.evaluation.conftest import some_pairs as some_pairs
