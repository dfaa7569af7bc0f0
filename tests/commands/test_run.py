from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

import opencse
from opencse.encoder import load_encoder, save_encoder
from opencse.encoder.backbone import weights_hash
from opencse.text.views.storage import read_header
from tests.tiny import tiny_bert

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
SMALL = ["training.max_steps=2", "training.batch_size=4", "training.precision=fp32", "selection.every=1"]
BLOCK = [*SMALL, "block.fit_steps=4", "block.inner=8", "block.hidden=8", "block.code_hidden=8", "block.code=4"]


@pytest.fixture(scope="module")
def backbone(tmp_path_factory):
    """A model in use: a sentence-transformers folder."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    save_encoder(load_encoder(tiny_bert(tmp_path_factory.mktemp("bert")), pooling="mean"), folder, "")
    return folder


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text(SENTENCES)
    return path


def test_debias_from_raw_text_alone(tmp_path, backbone, corpus) -> None:
    """Views, training, both reports: everything but the time it takes to learn something."""
    out = tmp_path / "out"
    result = opencse.run("debias", corpus, backbone=backbone, out=out, pairs="demo", overrides=BLOCK, progress=False)
    assert sorted(pq.read_table(sorted((out / "views").glob("*.parquet")))["text"].to_pylist()) != []
    assert list(result.scores) == [backbone.name, f"{backbone.name} + debias"]
    assert (out / "report.html").read_text().count("debias")
    card = (out / "model" / "README.md").read_text()
    assert "## Limits" in card
    assert "| Paraphrase above negation |" in card
    scores = json.loads((out / "results.json").read_text())
    assert {"evaluation", "report"} <= set(scores["timings"]), "two steps may take less than is shown"
    assert scores["before"]["pairs"]["tasks"][0]["rows"] == scores["after"]["pairs"]["tasks"][0]["rows"] == 240
    again = opencse.run(
        "debias", corpus, backbone=backbone, out=out, pairs="demo", overrides=BLOCK, progress=False, resume=True
    )
    assert again.run.outcome == result.run.outcome
    assert (out / "model" / "README.md").read_text() == card, "once, however often it is evaluated"


@pytest.mark.slow
def test_a_table_of_paraphrases_joins_the_corpus(tmp_path, backbone, corpus) -> None:
    table = tmp_path / "table.tsv"
    table.write_text(TABLE)
    settings = [*BLOCK, "build.paraphrase.window=[0.0, 1.0]"]
    out = tmp_path / "out"
    opencse.run("debias", corpus, backbone=backbone, out=out, paraphrases=table, overrides=settings, progress=False)
    views = pq.read_table(sorted((out / "views").glob("part-*.parquet"))).to_pydict()
    found = dict(zip(views["text"], views["paraphrase"], strict=True))
    assert found["He likes tea."] == "Tea is what he is fond of."
    assert sum(each is not None for each in found.values()) == 2
    assert "The road was new." in found
    assert len(found) == 12, "eight sentences, two of the table, two that say outright what one says in passing"

    built, again = out / "views", tmp_path / "again"
    opencse.run("debias", built, backbone=backbone, out=again, overrides=BLOCK, progress=False)
    assert '"negated_paraphrase"' in (again / "recipe.toml").read_text()
    third = tmp_path / "third"
    opencse.run("debias", built, backbone=backbone, out=third, paraphrases=table, overrides=settings, progress=False)
    assert not (third / "views").exists(), "with the table that they were built from, they are complete all the same"

    for rows, mixed in ((built, False), (out / "mixture.parquet", True)):
        fourth, notes = tmp_path / f"train-{mixed}", []
        options = {"overrides": BLOCK, "progress": False, "notify": notes.append}
        opencse.train("debias", rows, backbone=backbone, out=fourth, **options)
        assert '"negated_paraphrase"' in (fourth / "recipe.toml").read_text()
        assert any("mixture" in note for note in notes) != mixed


@pytest.mark.slow
def test_only_what_built_views_lack_is_built(tmp_path, backbone, corpus) -> None:
    table = tmp_path / "table.tsv"
    table.write_text(TABLE)
    settings = [*BLOCK, "build.paraphrase.window=[0.0, 1.0]"]
    first, second = tmp_path / "first", tmp_path / "second"
    opencse.run("debias", corpus, backbone=backbone, out=first, paraphrases=table, overrides=settings, progress=False)
    more = ["build.passive={kind='passive'}", "terms.meaning.same={add=['passive']}"]
    more += ["corpus.parts.reordered.keeps=['swapped', 'passive']"]
    views = first / "views"
    opencse.run("debias", views, backbone=backbone, out=second, overrides=[*BLOCK, *more], progress=False)
    before = pq.read_table(sorted(views.glob("part-*.parquet"))).to_pylist()
    after = pq.read_table(second / "views" / "joined.parquet").to_pylist()
    assert "passive" in after[0]
    read = [name for name in before[0] if name in after[0]]
    assert {"text", "paraphrase", "related_1", "negation"} <= set(read)
    assert [[row[name] for name in read] for row in after] == [[row[name] for name in read] for row in before]


def test_mining_with_a_model_that_the_run_trains_first(tmp_path, corpus) -> None:
    """DebCSE: an unsupervised SimCSE model of the run's own backbone, for negatives and positives."""
    plain, out, notes = tiny_bert(tmp_path / "bert"), tmp_path / "out", []
    (tmp_path / "candidates.tsv").write_text(
        "text\tcandidate\n"
        "The doctor accepted the offer.\tThe offer was one that the doctor took.\n"
        "The doctor accepted the offer.\tIt was accepted by the doctor.\n"
    )
    source = f"build.positive.source={{kind='candidate_table', path='{tmp_path / 'candidates.tsv'}'}}"
    wide = ["build.negative.window=[-1.0, 1.0]", source]
    arguments = {"backbone": plain, "out": out, "overrides": [*SMALL, *wide], "progress": False, "notify": notes.append}
    result = opencse.run("debcse", corpus, **arguments)
    miner = load_encoder(out / "first_stages" / "simcse" / "model")
    columns = read_header(sorted((out / "views").glob("part-*.parquet"))[0])["columns"]
    assert columns["negative"]["weights_sha256"] == weights_hash(miner)
    assert (
        columns["positive"]["model"] == columns["negative"]["model"] == str(out / "first_stages" / "simcse" / "model")
    )
    assert any("training simcse first" in note for note in notes)
    assert result.run.outcome.steps == 2
    begun = (out / "first_stages" / "simcse" / "run.json").stat().st_mtime_ns
    opencse.run("debcse", corpus, **arguments, resume=True)
    assert (out / "first_stages" / "simcse" / "run.json").stat().st_mtime_ns == begun


def test_guards_of_ones_own_beside_those_of_the_package(tmp_path, backbone, corpus) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "answers.tsv").write_text("question\tpassage\nIs soup sold?\tSoup is sold.\n\tTea is sold.\n")
    (own / "searches.txt").write_text("is soup sold\nwho sells tea\n")
    (own / "documents.txt").write_text("".join(f"Shop {number} sells soup and tea.\n" for number in range(12)))
    options = {"backbone": backbone, "out": tmp_path / "out", "overrides": BLOCK, "progress": False}
    result = opencse.run("debias", corpus, guard=own, **options)
    curve = result.run.outcome.curve
    guards = curve.before_and_after(curve.guards)
    names = [f"guard-{name}" for name in ("questions", "answers", "topics", "long")]
    assert list(guards) == [*names, "own-answers", "own-searches"]
    assert guards["own-searches"][0] == 100
    assert all(round(before - after, 1) <= 0.3 for before, after in guards.values())
    report = (tmp_path / "out" / "report.html").read_text()
    assert "Scores by strength of the meaning block" in report
    assert "No guard:" not in report
    assert opencse.run("debias", corpus, guard=own, resume=True, **options).run.outcome == result.run.outcome
