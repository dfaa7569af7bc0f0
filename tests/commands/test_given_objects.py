"""Python users hand over what they have in memory, in whichever thread they are."""

from __future__ import annotations

import json
import threading

import pandas as pd
import pyarrow.parquet as pq
import pytest
from huggingface_hub import ModelCard
from sentence_transformers import SentenceTransformer

import opencse
from opencse.encoder import load_encoder
from tests.tiny import tiny_bert

TEXTS = [
    f"the {a} {b} in the {c}" for a in ("cat", "dog", "bird") for b in ("sits", "runs") for c in ("house", "river")
]
SMALL = ["training.batch_size=4", "training.precision=fp32", "training.max_steps=2"]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> SentenceTransformer:
    return load_encoder(tiny_bert(tmp_path_factory.mktemp("bert")), pooling="mean")


def test_a_run_on_a_frame_and_a_model_in_another_thread(tmp_path, model) -> None:
    found = []

    def work() -> None:
        frame = pd.DataFrame({"body": TEXTS, "number": range(len(TEXTS))})
        found.append(
            opencse.run("simcse", frame, backbone=model, out=tmp_path / "out", overrides=SMALL, progress=False)
        )

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    (result,) = found
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["corpus"] == "texts in memory (DataFrame)"
    assert record["rows"] == len(TEXTS)
    card = ModelCard.load(tmp_path / "out" / "model" / "README.md")
    assert card.data.language == "en"
    assert "/tmp" not in card.text.split("## Before")[0].replace(str(record["backbone"]), "")
    assert len(repr(result)) < 500


def test_build_says_what_it_wrote(tmp_path) -> None:
    notes = []
    french = ["La maison n'est pas très vieille et nous ne l'avons pas.", "Le retour est possible dans les dix jours."]
    out = opencse.build("debias", french, tmp_path / "out", only=["entity"], progress=False, notify=notes.append)
    assert len(pq.read_table(sorted(out.glob("part-*.parquet")))) == 2
    assert any("2 sentences in" in note for note in notes)
    assert any("the texts look French, for which there are no rules" in note for note in notes)
    assert "warning: no sentence has entity" in notes
