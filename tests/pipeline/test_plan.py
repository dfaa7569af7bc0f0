from __future__ import annotations

import pytest

from opencse.errors import OpencseError
from opencse.pipeline.plan import plan
from tests.tiny import tiny_bert


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return str(tiny_bert(tmp_path_factory.mktemp("bert")))


def test_a_plan_has_the_sizes_of_the_run(backbone) -> None:
    found = plan("debias", "demo", backbone=backbone)
    assert found.sentences > 500
    assert found.sampled == found.sentences, "fewer than the recipe would take"
    assert {"negation", "swapped", "related"} <= set(found.build)
    assert found.task_vectors == ("simcse",)
    short = plan("debias", "demo", backbone=backbone, quick=True)
    assert short.steps == 20
    assert short.rows < found.rows
    assert any("for up to 20 steps" in line for line in short.lines())


def test_a_plan_names_another_language(backbone) -> None:
    german = ["Das Haus ist nicht sehr alt und wir haben es.", "Die Rückgabe ist nach dem Ende nicht mehr möglich."]
    found = plan("simcse", german, backbone=backbone)
    assert "they look German" in found.lines()[0]
    assert found.build == ()
    assert found.rows is None


def test_a_mistake_is_found_without_a_run(backbone) -> None:
    with pytest.raises(OpencseError, match="unknown key"):
        plan("simcse", "demo", backbone=backbone, overrides=["optimizer.rate=1"])
