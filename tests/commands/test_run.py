from __future__ import annotations

import json
import threading
from collections import Counter
from copy import deepcopy
from dataclasses import asdict

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from huggingface_hub import ModelCard, ModelCardData, metadata_load
from huggingface_hub.repocard_data import model_index_to_eval_results
from huggingface_hub.utils import validate_repo_id
from sentence_transformers import SentenceTransformer

import opencse
from opencse.commands.options import RunOptions
from opencse.commands.train import resolve_recipe
from opencse.debias import shipped as shipped_module
from opencse.debias.meaning_block import MeaningBlock, block_of
from opencse.debias.shipped import append_block, trained_block
from opencse.debias.strength import StrengthCurve
from opencse.debias.training import read_strength
from opencse.encoder import backbone as backbone_module
from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.backbone import Backbone, weights_hash
from opencse.foundation.errors import OpencseError
from opencse.recipes.load import RecipeFile
from opencse.text.views.builder import read_header
from tests.tiny import WORDS, tiny_bert, tiny_roberta

SENTENCES = """The old bridge is safe because it was repaired.
The boy gave the girl a red apple.
When the rain stopped, the team won the last match.
The soup is hot and the bread is fresh.
Anna sold the small house in 1990.
The train from Lisbon to Porto is late.
The doctor accepted the offer.
A new road was built near the river.
"""
TABLE = "text\tparaphrase\nThe shop is open.\tOne can shop now.\nHe likes tea.\tTea is what he is fond of.\n"
SMALL = [
    "training.max_steps=2",
    "training.batch_size=4",
    "training.precision=fp32",
    "selection.every=1",
]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    """A model in use: a sentence-transformers folder."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    save_encoder(
        load_encoder(tiny_bert(tmp_path_factory.mktemp("bert")), pooling="mean"), folder, ""
    )
    return folder


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(SENTENCES)
    return path


def test_debias_from_raw_text_alone(tmp_path, backbone, corpus) -> None:
    """Views, training, both reports: everything but the time it takes to learn something."""
    out = tmp_path / "out"
    result = opencse.run(
        "debias", corpus, backbone=backbone, out=out, pairs="demo", overrides=SMALL, progress=False
    )
    assert (
        sorted(pq.read_table(sorted((out / "views").glob("*.parquet")))["text"].to_pylist()) != []
    )
    trained = f"{backbone.name} + debias"
    assert list(result.scores) == [backbone.name, trained, f"{trained}, reranked"]
    reranked = result.scores[f"{trained}, reranked"]
    assert reranked.transformations != result.scores[trained].transformations
    assert result.after["pairs"].results == result.scores[trained].sts, (
        "the cosine's are the model's scores"
    )
    assert "penalty=CACHING" in " ".join(result.comparison.remarks)
    assert (out / "report.html").read_text().count("debias")
    card = (out / "model" / "README.md").read_text()
    assert "## Limits" in card
    assert "| Paraphrase above negation |" in card
    scores = json.loads((out / "results.json").read_text())
    assert {"evaluation", "report"} <= set(scores["timings"]), (
        "two steps may take less than is shown"
    )
    assert (
        scores["before"]["pairs"]["tasks"][0]["rows"]
        == scores["after"]["pairs"]["tasks"][0]["rows"]
        == 240
    )
    again = opencse.run(
        "debias",
        corpus,
        backbone=backbone,
        out=out,
        pairs="demo",
        overrides=SMALL,
        progress=False,
        resume=True,
    )
    assert again.run.outcome == result.run.outcome
    assert (out / "model" / "README.md").read_text() == card, "once, however often it is evaluated"


@pytest.mark.slow
def test_documents_are_checked_before_and_after(tmp_path, backbone) -> None:
    document = tmp_path / "notes.md"
    more = "The key is on the table. The window is open. The parcel is heavy. The lamp is new. "
    document.write_text(f"# Notes\n\n{SENTENCES.replace(chr(10), ' ')}\n\n{more}\n")
    out = tmp_path / "out"
    opencse.run(
        "simcse", document, backbone=backbone, out=out, dev="demo", overrides=SMALL, progress=False
    )
    lines = json.loads((out / "probe.json").read_text())["own texts"]
    assert [line.partition(": ")[0] for line in lines] == [
        backbone.name,
        f"{backbone.name} + simcse",
    ]
    assert "On your own texts" in (out / "report.html").read_text()


@pytest.mark.slow
def test_a_table_of_paraphrases_joins_the_corpus(tmp_path, backbone, corpus) -> None:
    table = tmp_path / "table.tsv"
    table.write_text(TABLE)
    settings = [*SMALL, "build.paraphrase.window=[0.0, 1.0]"]
    out = tmp_path / "out"
    opencse.run(
        "debias",
        corpus,
        backbone=backbone,
        out=out,
        paraphrases=table,
        overrides=settings,
        progress=False,
    )
    views = pq.read_table(sorted((out / "views").glob("part-*.parquet"))).to_pydict()
    found = dict(zip(views["text"], views["paraphrase"], strict=True))
    assert found["He likes tea."] == "Tea is what he is fond of."
    assert sum(each is not None for each in found.values()) == 2
    assert "The road was new." in found
    assert len(found) == 12, (
        "eight sentences, two of the table, two that say outright what one says in passing"
    )

    built, again = out / "views", tmp_path / "again"
    opencse.run("debias", built, backbone=backbone, out=again, overrides=SMALL, progress=False)
    assert '"negated_paraphrase"' in (again / "recipe.toml").read_text()
    third = tmp_path / "third"
    opencse.run(
        "debias",
        built,
        backbone=backbone,
        out=third,
        paraphrases=table,
        overrides=settings,
        progress=False,
    )
    assert not (third / "views").exists(), (
        "with the table that they were built from, they are complete all the same"
    )

    for rows, mixed in ((built, False), (out / "mixture.parquet", True)):
        fourth, notes = tmp_path / f"train-{mixed}", []
        options = {"overrides": SMALL, "progress": False, "notify": notes.append}
        opencse.train("debias", rows, backbone=backbone, out=fourth, **options)
        assert '"negated_paraphrase"' in (fourth / "recipe.toml").read_text()
        assert any("mixture" in note for note in notes) != mixed

    # Only what built views lack is built.
    second = tmp_path / "second"
    more = ["build.passive={kind='passive'}", "losses.meaning.same={add=['passive']}"]
    more += ["corpus.parts.reordered.keeps=['swapped', 'passive']"]
    opencse.run(
        "debias", built, backbone=backbone, out=second, overrides=[*SMALL, *more], progress=False
    )
    before = pq.read_table(sorted(built.glob("part-*.parquet"))).to_pylist()
    after = pq.read_table(second / "joined.parquet").to_pylist()
    assert "passive" in after[0]
    read = [name for name in before[0] if name in after[0]]
    assert {"text", "paraphrase", "related_1", "negation"} <= set(read)
    assert [[row[name] for name in read] for row in after] == [
        [row[name] for name in read] for row in before
    ]


def test_mining_with_a_model_that_the_run_trains_first(tmp_path, corpus) -> None:
    """DebCSE: an unsupervised SimCSE model of the run's own backbone, for negatives and positives."""
    plain, out, notes = tiny_bert(tmp_path / "bert"), tmp_path / "out", []
    (tmp_path / "candidates.tsv").write_text(
        "text\tcandidate\n"
        "The doctor accepted the offer.\tThe offer was one that the doctor took.\n"
        "The doctor accepted the offer.\tIt was accepted by the doctor.\n"
    )
    source = (
        f"build.positive.source={{kind='candidate_table', path='{tmp_path / 'candidates.tsv'}'}}"
    )
    wide = ["build.negative.window=[-1.0, 1.0]", source]
    arguments = {
        "backbone": plain,
        "out": out,
        "overrides": [*SMALL, *wide],
        "progress": False,
        "notify": notes.append,
    }
    result = opencse.run("debcse", corpus, **arguments)
    miner = load_encoder(out / "first_stages" / "simcse" / "model")
    columns = read_header(sorted((out / "views").glob("part-*.parquet"))[0])["columns"]
    assert columns["negative"]["weights_sha256"] == weights_hash(miner)
    assert (
        columns["positive"]["model"]
        == columns["negative"]["model"]
        == str(out / "first_stages" / "simcse" / "model")
    )
    assert any("training simcse first" in note for note in notes)
    assert result.run.outcome.steps == 2
    begun = (out / "first_stages" / "simcse" / "run.json").stat().st_mtime_ns
    opencse.run("debcse", corpus, **arguments, resume=True)
    assert (out / "first_stages" / "simcse" / "run.json").stat().st_mtime_ns == begun


@pytest.mark.slow
def test_guards_of_ones_own_beside_those_of_the_package(tmp_path, backbone, corpus) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "answers.tsv").write_text(
        "question\tpassage\nIs soup sold?\tSoup is sold.\n\tTea is sold.\n"
    )
    (own / "searches.txt").write_text("is soup sold\nwho sells tea\n")
    (own / "documents.txt").write_text(
        "".join(f"Shop {number} sells soup and tea.\n" for number in range(12))
    )
    options = {"backbone": backbone, "out": tmp_path / "out", "overrides": SMALL, "progress": False}
    result = opencse.run("debias", corpus, guard=own, **options)
    curve = read_strength(result.run.folder)
    guards = curve.before_and_after(curve.guards)
    names = [f"guard-{name}" for name in ("questions", "answers", "topics", "long")]
    assert list(guards) == [*names, "own-answers", "own-searches"]
    assert guards["own-searches"][0] == 100
    assert all(round(before - after, 1) <= 0.3 for before, after in guards.values())
    report = (tmp_path / "out" / "report.html").read_text()
    assert "Scores by strength of the meaning block" in report
    assert "No guard:" not in report
    assert (
        opencse.run("debias", corpus, guard=own, resume=True, **options).run.outcome
        == result.run.outcome
    )


RECIPE = """
extends = "simcse"
[views.near]
text = "near_1"
optional = true
[build.near]
kind = "hard_negatives"
model = "backbone"
count = 1
pooling = "mean"
ranks = [0, 5]
[teachers.same]
model = "backbone"
pooling = "mean"
[[losses]]
kind = "info_nce"
anchor = "anchor"
positive = "twin"
negatives = ["near"]
[[losses]]
kind = "list_net"
teachers = ["same"]
"""


@pytest.fixture
def read(monkeypatch) -> Counter[str]:
    """How often each recipe and each model of a `Backbone` was read."""
    counts: Counter[str] = Counter()
    open_model, read_recipe = backbone_module.open_model, RecipeFile.read.__func__

    def counted(name, *args, **options):
        counts[str(name)] += 1
        return open_model(name, *args, **options)

    def counted_recipe(cls, name):
        counts[str(name)] += 1
        return read_recipe(cls, name)

    monkeypatch.setattr(backbone_module, "open_model", counted)
    monkeypatch.setattr(RecipeFile, "read", classmethod(counted_recipe))
    return counts


def test_a_run_reads_recipe_and_backbone_once(tmp_path, corpus, read) -> None:
    backbone, recipe = str(tiny_bert(tmp_path / "bert")), tmp_path / "mine.toml"
    recipe.write_text(RECIPE)
    settings = ["training.max_steps=1", "training.batch_size=4", "encoder.pooling='mean'"]
    opencse.run(
        recipe, corpus, backbone=backbone, out=tmp_path / "out", overrides=settings, progress=False
    )
    assert read == {str(recipe): 1, backbone: 1}


def test_a_view_of_another_column_set_by_the_user_keeps_a_table_whole(tmp_path) -> None:
    """The columns that a table must have are those of the recipe with the user's settings."""
    backbone, table = tiny_bert(tmp_path / "bert"), tmp_path / "table.csv"
    long = ". ".join(["The cat sits in the house"] * 12)
    rows = "".join(f'"{long} {a}.","the {b}"\n' for a, b in zip(WORDS, WORDS[3:], strict=False))
    table.write_text(f"text,summary\n{rows}")
    settings = ["training.max_steps=1", "training.batch_size=4", "views.twin.text='summary'"]
    result = opencse.run(
        "simcse", table, backbone=backbone, out=tmp_path / "out", overrides=settings, progress=False
    )
    assert result.run.outcome.steps == 1


def test_a_run_on_a_list_and_a_model_in_another_thread(tmp_path) -> None:
    model, found = load_encoder(tiny_bert(tmp_path / "bert"), pooling="mean"), []

    def work() -> None:
        texts = SENTENCES.splitlines()
        found.append(
            opencse.run(
                "simcse",
                texts,
                backbone=model,
                out=tmp_path / "out",
                overrides=SMALL,
                progress=False,
            )
        )

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    (result,) = found
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["corpus"] == "texts in memory (list)"
    assert record["rows"] == 8
    card = ModelCard.load(tmp_path / "out" / "model" / "README.md")
    assert card.data.language == "en"
    assert "/tmp" not in card.text.split("## Before")[0].replace(str(record["backbone"]), "")
    assert len(repr(result)) < 500


def test_a_model_without_pooling_is_refused_before_anything_is_built(tmp_path, corpus) -> None:
    heard: list[str] = []
    with pytest.raises(OpencseError, match="defines no pooling"):
        opencse.run(
            "debias",
            corpus,
            backbone=tiny_bert(tmp_path),
            out=tmp_path / "out",
            notify=heard.append,
        )
    assert not any("building" in line for line in heard)


def test_build_says_what_it_wrote(tmp_path) -> None:
    notes = []
    french = [
        "La maison n'est pas très vieille et nous ne l'avons pas.",
        "Le retour est possible dans les dix jours.",
    ]
    out = opencse.build(
        "debias", french, tmp_path / "out", only=["entity"], progress=False, notify=notes.append
    )
    assert len(pq.read_table(sorted(out.glob("part-*.parquet")))) == 2
    assert any("2 sentences in" in note for note in notes)
    assert any("the texts look French, for which there are no rules" in note for note in notes)
    assert "warning: no sentence has entity" in notes


CURVE = StrengthCurve(
    chosen=0.3,
    tolerance=0.3,
    strengths=(0.0, 0.3),
    guards={"guard-long": (80.0, 79.8)},
    meaning={"dev-meaning": (40.0, 60.0)},
)
TWO_TEXTS = ["the cat runs", "a big red dog sits in the garden"]


@pytest.fixture
def known_model(tmp_path):
    save_encoder(load_encoder(tiny_bert(tmp_path / "bert"), pooling="mean"), tmp_path / "tiny", "")
    return tmp_path / "tiny"


@pytest.fixture
def shipped(tmp_path, known_model, monkeypatch):
    """A package with a block for the backbone."""
    model = load_encoder(known_model, device="cpu")
    folder = tmp_path / "blocks" / "tiny"
    folder.mkdir(parents=True)
    key = shipped_module.block_key(model)
    torch.manual_seed(0)
    MeaningBlock.beside(model, code=3, inner=5, hidden=7, code_hidden=4).save(str(folder))
    measured = {
        "model": str(known_model),
        "beside": key,
        "settings": shipped_module.encoding_settings(model),
        "text": "made for a test",
        "rows": 7,
        "curve": asdict(CURVE),
    }
    (folder / shipped_module.MEASURED).write_text(json.dumps(measured))
    monkeypatch.setattr(shipped_module, "BLOCKS", tmp_path / "blocks")


@pytest.mark.usefixtures("shipped")
def test_the_block_is_appended_with_its_measured_strength(tmp_path, known_model) -> None:
    out = tmp_path / "out"
    result = opencse.run("debias", backbone=known_model, out=out)
    model, untouched = (
        load_encoder(out / "model", device="cpu"),
        load_encoder(known_model, device="cpu"),
    )
    block = block_of(model)
    assert block is not None
    assert block.strength == 0.3
    e = untouched.encode(TWO_TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(model.encode(TWO_TEXTS)[:, :32] * np.sqrt(1 + 0.3**2), e, atol=1e-5)
    assert read_strength(result.run.folder) == CURVE
    assert "0.3" in (out / "report.html").read_text()
    assert {change.measure for change in result.comparison.changes} == {"guard long", "meaning"}
    assert "trust_remote_code=True" in (out / "model" / "README.md").read_text()
    with pytest.raises(OpencseError, match="already holds a run"):
        opencse.run("debias", backbone=known_model, out=out)
    again = opencse.run("debias", backbone=known_model, out=out, overwrite=True, strength=0.6)
    chosen = read_strength(again.run.folder)
    assert chosen is not None
    assert chosen.chosen == 0.6
    opened = block_of(load_encoder(out / "model", device="cpu"))
    assert opened is not None
    assert opened.strength == 0.6
    remarks = " ".join(again.comparison.remarks)
    assert "don't have length 1" in remarks, "the tiny model has no Normalize"
    assert "Your existing vectors stay valid" not in remarks


@pytest.mark.slow
@pytest.mark.usefixtures("shipped")
def test_a_block_stands_beside_a_model_that_reads_the_same_tokens(tmp_path, known_model) -> None:
    load_encoder(tiny_bert(tmp_path / "wide", width=48, seed=1), pooling="mean").save(
        str(tmp_path / "other")
    )
    result = opencse.run("debias", backbone=tmp_path / "other", out=tmp_path / "out")
    model, reader = (
        load_encoder(path, device="cpu") for path in (tmp_path / "out" / "model", known_model)
    )
    curve, block = read_strength(result.run.folder), block_of(model)
    assert curve is not None
    assert block is not None
    assert (block.strength, set(curve.guards)) == (
        curve.chosen,
        {"guard-answers", "guard-long", "guard-questions", "guard-topics"},
    )
    block.strength = 1.0
    vectors = model.encode(TWO_TEXTS)
    assert vectors.shape == (2, 48 + 32)
    append_block(reader, MeaningBlock.load(str(shipped_module.BLOCKS / "tiny")))
    reader[-1].strength = 1.0
    np.testing.assert_allclose(vectors[:, 48:], reader.encode(TWO_TEXTS)[:, 32:], atol=1e-3)
    small = ["training.max_steps=2", "training.batch_size=4", "training.precision=fp32"]
    sentences = [*SENTENCES.splitlines(), "The door is open."]
    learned = opencse.run(
        "debias", sentences, backbone=tmp_path / "other", out=tmp_path / "learned", overrides=small
    )
    after = block_of(load_encoder(learned.run.model, device="cpu"))
    assert after is not None
    changed = {
        name.split(".")[0]
        for name, part in after.state_dict().items()
        if not part.equal(block.state_dict()[name])
    }
    assert changed >= {"code", "project"}
    assert not changed & {"copy", "reader", "tokens"}, "what reads stays"
    with pytest.raises(OpencseError, match="no meaning block for"):
        opencse.run("debias", backbone=tmp_path / "learned", out=tmp_path / "twice")


@pytest.mark.usefixtures("shipped")
def test_a_block_reads_the_english_text_of_a_model_with_other_tokens(tmp_path, known_model) -> None:
    load_encoder(tiny_roberta(tmp_path / "roberta"), pooling="mean").save(str(tmp_path / "other"))
    opencse.run("debias", backbone=tmp_path / "other", out=tmp_path / "out")
    assert "The block only understands English" in (tmp_path / "out" / "report.html").read_text()
    model, reader = (
        load_encoder(path, device="cpu") for path in (tmp_path / "out" / "model", known_model)
    )
    append_block(reader, MeaningBlock.load(str(shipped_module.BLOCKS / "tiny")))
    reader[-1].strength = model[-1].strength = 1.0
    np.testing.assert_allclose(
        model.encode(TWO_TEXTS)[:, 32:], reader.encode(TWO_TEXTS)[:, 32:], atol=1e-3
    )
    options = RunOptions(
        recipe="debias", backbone=str(tmp_path / "other"), out=tmp_path / "learned"
    )
    for language, comes in (("en", True), ("de", False)):
        backbone = Backbone(options.backbone)
        recipe = resolve_recipe(options, backbone, ["text"], language)
        block = trained_block(backbone, english=comes)
        assert (block is not None, recipe.block.copy_lr == 0) == (comes, comes)


@pytest.mark.usefixtures("shipped")
def test_the_card_passes_the_checks_of_a_model_hub(tmp_path, known_model) -> None:
    (known_model / "README.md").write_text(
        "---\nbase_model: me/tiny\nlicense: apache-2.0\n---\n# Tiny\n"
    )
    opencse.run("debias", backbone=known_model, out=tmp_path / "out")
    written = metadata_load(tmp_path / "out" / "model" / "README.md")
    card = ModelCardData(**deepcopy(written))
    assert card.to_dict() == written
    assert (card.base_model, card.license, card.language) == ("me/tiny", "apache-2.0", "en")
    assert (card.library_name, card.pipeline_tag) == (
        "sentence-transformers",
        "sentence-similarity",
    )
    assert len(set(card.tags)) == len(card.tags)
    validate_repo_id(card.base_model)
    name, (result,) = model_index_to_eval_results(written["model-index"])
    assert name == "opencse debias"
    assert (result.task_type, result.dataset_name) == ("triplet", "opencse dev-meaning")
    assert (result.metric_type, result.metric_value) == ("cosine_accuracy", 0.6)


def test_a_model_without_a_block_is_told_to_train_one(tmp_path, known_model) -> None:
    with pytest.raises(
        OpencseError, match=r"no meaning block for .*tiny.*Train one on your own text"
    ):
        opencse.run("debias", backbone=known_model, out=tmp_path / "out")
    assert not (tmp_path / "out" / "model").exists()


@pytest.mark.usefixtures("shipped")
def test_what_needs_text_is_refused_without(tmp_path, known_model) -> None:
    with pytest.raises(OpencseError, match="simcse needs text"):
        opencse.run("simcse", backbone=known_model, out=tmp_path / "out")
    with pytest.raises(OpencseError, match="--guard needs text"):
        opencse.run("debias", backbone=known_model, out=tmp_path / "out", guard=tmp_path)
    with pytest.raises(OpencseError, match="--same-width needs text"):
        opencse.run("debias", backbone=known_model, out=tmp_path / "out", same_width=True)


@pytest.mark.slow
@pytest.mark.usefixtures("shipped")
def test_training_goes_on_from_the_block(tmp_path, known_model) -> None:
    sentences = [
        "The old bridge is safe.",
        "The soup is hot.",
        "Anna sold the house in 1990.",
        "The door is open.",
    ]
    more = [f"{text[:-1]} and the road is new." for text in sentences]
    small = ["training.max_steps=2", "training.batch_size=4", "training.precision=fp32"]
    result = opencse.run(
        "debias", [*sentences, *more], backbone=known_model, out=tmp_path / "out", overrides=small
    )
    block = block_of(load_encoder(result.run.model, device="cpu"))
    assert block is not None
    assert block.config["inner"] == 5
    assert result.run.recipe.optimizer.lr == pytest.approx(4e-5), (
        "that for a block that was trained before"
    )
    before = MeaningBlock.load(str(shipped_module.BLOCKS / "tiny")).state_dict()
    changed = {
        name.split(".")[0]
        for name, tensor in block.state_dict().items()
        if not tensor.equal(before[name])
    }
    assert changed >= {"code", "project"}, "the small parts learn"
    assert "copy" not in changed, "the copied layers stay"
    again = opencse.run(
        "debias",
        backbone=result.run.model,
        corpus=[*sentences, *more],
        out=tmp_path / "again",
        overrides=small,
    )
    assert len(load_encoder(again.run.model, device="cpu")) == len(
        load_encoder(result.run.model, device="cpu")
    )


@pytest.mark.slow
def test_vectors_as_long_as_before(tmp_path, backbone, corpus) -> None:
    out = tmp_path / "out"
    result = opencse.run(
        "debias",
        corpus,
        backbone=backbone,
        out=out,
        overrides=SMALL,
        same_width=True,
        progress=False,
    )
    model = SentenceTransformer(str(result.run.model), trust_remote_code=True, device="cpu")
    untouched = load_encoder(backbone, device="cpu")
    texts = SENTENCES.splitlines()
    vectors = model.encode(texts)
    assert vectors.shape == untouched.encode(texts).shape
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(
        load_encoder(result.run.model, device="cpu").encode(texts), vectors, atol=1e-5
    )
    card = (result.run.model / "README.md").read_text()
    assert "as many numbers as those of the backbone" in card
    assert "truncate_dim" not in card
    assert "embed your documents again" in (out / "report.html").read_text()
    with pytest.raises(OpencseError, match="cut to the old length"):
        opencse.run(
            "debias",
            corpus,
            backbone=result.run.model,
            out=tmp_path / "again",
            overrides=SMALL,
            progress=False,
        )
    with pytest.raises(OpencseError, match=r"simcse.* 'meaning'"):
        opencse.run(
            "simcse",
            corpus,
            backbone=backbone,
            out=tmp_path / "simcse",
            same_width=True,
            progress=False,
        )
