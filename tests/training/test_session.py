"""A run settles its precision once and keeps it; its card says where its model comes from."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from accelerate.state import AcceleratorState

from opencse.encoder import device
from opencse.encoder.backbone import Backbone
from opencse.foundation.errors import OpencseError
from opencse.foundation.evaluator import NO_EVALUATORS
from opencse.recipes import load_recipe
from opencse.recipes.settings import Training
from opencse.text.corpus import Corpus
from opencse.training import first_stages
from opencse.training import session as session_module
from opencse.training.model_card import base_model
from opencse.training.session import RunControl, TrainingSession
from opencse.training.train import TrainingRun, train_encoder
from tests.tiny import WORDS, tiny_bert
from tests.training.helpers import crash_at, run, write_corpus


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))


def machine(monkeypatch, chosen):
    monkeypatch.setattr(device, "_LEAST_WIDTH", {"bf16": 1, "fp32": 10**9}[chosen])
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": chosen == "bf16"})


@pytest.mark.parametrize(
    ("asked", "begun", "faster", "expected"),
    [
        ("auto", None, "bf16", "bf16"),
        ("auto", None, "fp32", "fp32"),
        ("fp32", None, "bf16", "fp32"),
        ("fp16", None, "bf16", "fp32"),
        ("auto", "fp32", "bf16", "fp32"),
    ],
)
def test_the_precision_of_a_run(tmp_path, monkeypatch, asked, begun, faster, expected):
    """The faster one, what was asked for, or that of the run that goes on."""
    machine(monkeypatch, faster)
    if begun is not None:
        (tmp_path / "run.json").write_text(json.dumps({"precision": begun, "fingerprint": {}}))
    session = TrainingSession(RunControl(folder=tmp_path, resume=begun is not None))
    backbone = Backbone(tiny_bert(tmp_path / "first_stages"))
    assert session.settle(Training(precision=asked), backbone).precision == expected


@pytest.mark.parametrize(("first", "then"), [("bf16", "fp32"), ("fp32", "bf16")])
def test_a_run_resumed_on_another_kind_of_machine_is_the_uninterrupted_one(
    tmp_path, monkeypatch, first, then
):
    backbone = Backbone(tiny_bert(tmp_path / "bert"))
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(
        "\n".join(
            f"the {a} {b} is {c}" for a, b, c in zip(WORDS, WORDS[3:], WORDS[7:], strict=False)
        )
    )
    recipe = load_recipe(
        "simcse",
        overrides=["training.batch_size=4", "training.max_steps=4", "training.checkpoint_every=2"],
    )

    def train(folder, **options):
        control = RunControl(folder=folder, progress=False, **options)
        return train_encoder(recipe, Corpus(corpus), backbone, NO_EVALUATORS, control)

    machine(monkeypatch, first)
    whole = train(tmp_path / "whole")
    record = json.loads((whole.folder / "run.json").read_text())
    assert (record["precision"], record["device"]) == (first, "cpu")
    assert whole.recipe.training.precision == first

    interrupted = tmp_path / "interrupted"

    with monkeypatch.context() as patch:
        crash_at(3, patch)
        with pytest.raises(KeyboardInterrupt):
            train(interrupted)
    machine(monkeypatch, then)
    resumed = train(interrupted, resume=True)
    weights = [run.model / "model.safetensors" for run in (whole, resumed)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_the_first_stages_of_a_run_share_its_precision(tmp_path, monkeypatch):
    recipe = load_recipe("debcse", overrides=["training.precision=fp32"])
    assert load_recipe("simcse").training.precision == "auto"
    seen = []

    def trained(other, *_):
        seen.append(other.training.precision)
        return TrainingRun(tmp_path, other, None)

    monkeypatch.setattr(first_stages, "train_encoder", trained)
    first_stages.train_first_stages(
        recipe, recipe.build, "corpus", None, NO_EVALUATORS, RunControl(folder=tmp_path)
    )
    assert seen == ["fp32"]


CARD = "---\nlicense: mit\nbase_model:\n- someone/something\n---\n# Title\n"


@pytest.mark.parametrize(
    ("card", "found"),
    [
        (CARD, ("someone/something", "mit")),
        ("# No head\n", (None, None)),
        ("---\n: not [yaml\n---\n", (None, None)),
        (None, (None, None)),
    ],
)
def test_a_folder_says_where_it_comes_from(tmp_path, card, found) -> None:
    if card is not None:
        (tmp_path / "README.md").write_text(card)
    assert base_model(tmp_path) == found


def test_names() -> None:
    assert base_model("minilm") == ("sentence-transformers/all-MiniLM-L6-v2", "apache-2.0")
    assert base_model("bert-base-uncased") == ("bert-base-uncased", None)
    assert base_model("./none") == (None, None)


@pytest.fixture
def corpus(tmp_path) -> Path:
    return write_corpus(tmp_path, 16)


def refused(match: str, *args, **kwargs) -> None:
    with pytest.raises(OpencseError, match=match):
        run(*args, **kwargs)


@pytest.mark.parametrize(("text", "count"), [("", 0), ("\n \n\n", 0), ("one sentence\n\n", 1)])
def test_a_corpus_with_too_little(tmp_path, backbone, text, count) -> None:
    (tmp_path / "c.txt").write_text(text)
    refused(f"holds {count} usable sentences", tmp_path / "c.txt", backbone, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_blank_lines_are_skipped_and_counted(tmp_path, backbone) -> None:
    (tmp_path / "c.txt").write_text(
        "\n".join(["the cat sits", "", "a dog runs", "  ", "a bird sings"])
    )
    notes: list[str] = []
    run(tmp_path / "c.txt", backbone, tmp_path / "out", notify=notes.append)
    assert any("2 blank rows were left out; 3 are used" in n for n in notes)


def test_what_cannot_be_opened_is_refused(tmp_path, backbone, corpus) -> None:
    (tmp_path / "c.tsv").write_text("text\tnegative\nthe cat\t\nthe dog\t\n")
    refused(
        "'negative' is null in every row",
        tmp_path / "c.tsv",
        backbone,
        tmp_path / "out",
        recipe="hince",
    )
    refused("no such model folder", corpus, tmp_path / "none", tmp_path / "out")


def test_a_folder_that_holds_something(tmp_path, corpus, backbone) -> None:
    out = tmp_path / "out"
    refused("holds no run to resume", corpus, backbone, out, resume=True)
    out.mkdir()
    (out / "mine.txt").write_text("precious")
    refused("already holds files", corpus, backbone, out)
    refused("holds files, but no run", corpus, backbone, out, overwrite=True)
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    new = tmp_path / "new"
    run(corpus, backbone, new)
    (new / "mine.txt").write_text("precious")
    refused("already holds a run", corpus, backbone, new)
    run(corpus, backbone, new, overwrite=True)
    assert (new / "mine.txt").read_text() == "precious"


def test_a_finished_run_is_not_run_again(tmp_path, corpus, backbone) -> None:
    first = run(corpus, backbone, tmp_path / "out")
    notes: list[str] = []
    again = run(corpus, backbone, tmp_path / "out", resume=True, notify=notes.append)
    assert again.outcome == first.outcome
    assert any("finished" in n for n in notes)
    refused(
        "begun with another recipe",
        corpus,
        backbone,
        tmp_path / "out",
        "optimizer.lr=1",
        resume=True,
    )


@pytest.mark.parametrize(
    "record", ["[]", "{", "[" * 100_000, '{"precision": "auto"}', '{"step_limit": 2.5}']
)
def test_a_damaged_record(tmp_path, corpus, backbone, record) -> None:
    (tmp_path / "out").mkdir()
    written = {"fingerprint": {}, "precision": "fp32"}
    if record.endswith("}"):
        record = json.dumps(written | json.loads(record))
    (tmp_path / "out" / "run.json").write_text(record)
    refused(r"run\.json: (not|was not)", corpus, backbone, tmp_path / "out", resume=True)


@pytest.mark.parametrize(
    ("setting", "match"),
    [
        ("encoder.max_length=100", "takes at most 64 tokens"),
        ("encoder.pooling=mask", "needs a prompt"),
        ("encoder.pooling=backbone", "defines no pooling"),
        ("training.batch_size=1", "at least 2"),
    ],
)
def test_settings_that_do_not_fit(tmp_path, corpus, backbone, setting, match) -> None:
    refused(match, corpus, backbone, tmp_path / "out", setting)


def test_a_prompt_longer_than_the_input(tmp_path, corpus, backbone) -> None:
    prompts = [
        f"views.{v}.prompt='This sentence : \"{{}}\" means {{mask}}'" for v in ("anchor", "twin")
    ]
    settings = ["encoder.pooling=mask", "encoder.max_length=4", *prompts]
    refused(
        r"for its prompt alone.*length_counts=content",
        corpus,
        backbone,
        tmp_path / "out",
        *settings,
    )


def two_processes(tmp_path, monkeypatch, others: dict[str, str], resume: bool = False) -> Any:
    """A session of the first of two processes, whose other one has other facts."""
    session = TrainingSession(RunControl(folder=tmp_path / "run", resume=resume, progress=False))
    session.accelerator = SimpleNamespace(num_processes=2)
    monkeypatch.setattr(session_module, "gather_object", lambda mine: [*mine, others])
    return session


@pytest.mark.parametrize("name", ["corpus", "recipe", "version of torch", "number of rows"])
def test_processes_with_other_input_are_refused_by_name(tmp_path, monkeypatch, name: str) -> None:
    facts = {
        "recipe": "lr = 1\nseed = 1\n",
        "corpus": "a",
        "version of torch": "2",
        "number of rows": "3",
    }
    two_processes(tmp_path, monkeypatch, facts).compare_processes(facts)
    other = facts | {name: "lr = 2\nseed = 1\n" if name == "recipe" else "9"}
    with pytest.raises(OpencseError, match=f"process 1 has another {name} than process 0") as error:
        two_processes(tmp_path, monkeypatch, other).compare_processes(facts)
    assert ("(lr = 2 in place of lr = 1)" in str(error.value)) == (name == "recipe")


def test_a_run_is_resumed_by_as_many_processes_as_began_it(tmp_path, monkeypatch) -> None:
    record = {"fingerprint": {"corpus": "a"}, "precision": "fp32", "processes": 2}
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps(record))
    session = two_processes(tmp_path, monkeypatch, {}, resume=True)
    assert session.finished({"corpus": "a"}) is None
    session.accelerator = SimpleNamespace(num_processes=1)
    with pytest.raises(OpencseError, match="was begun with 2 processes, and would continue with 1"):
        session.finished({"corpus": "a"})


def test_a_machine_without_a_copy_of_the_run_says_what_to_do(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RANK", "1")
    with pytest.raises(OpencseError, match="has no copy of the run") as error:
        TrainingSession(RunControl(folder=tmp_path / "out", resume=True))
    assert "from the first machine" in error.value.remedy


def test_what_a_killed_process_was_writing_is_removed(tmp_path) -> None:
    control = RunControl(folder=tmp_path / "run", resume=True, progress=False)
    checkpoints = tmp_path / "run" / "checkpoints"
    (checkpoints / f".step-00000003.{'a' * 32}.tmp").mkdir(parents=True)
    (tmp_path / "run" / f".model.{'b' * 32}.tmp").mkdir()
    (tmp_path / "run" / ".mine.tmp").mkdir()
    record = {"fingerprint": {"recipe": ""}, "precision": "fp32"}
    (tmp_path / "run" / "run.json").write_text(json.dumps(record))
    TrainingSession(control).begin({"fingerprint": {"recipe": ""}})
    left = [path.name for path in (tmp_path / "run").rglob("*.tmp")]
    assert left == [".mine.tmp"]


def test_a_variable_does_not_choose_the_precision(tmp_path, monkeypatch) -> None:
    """With several processes, accelerate would run the network in the precision of its variable."""
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    try:
        AcceleratorState._reset_state()
        session = TrainingSession(RunControl(folder=tmp_path / "out"))
        assert session.accelerator.mixed_precision == "no"
    finally:
        AcceleratorState._reset_state()
