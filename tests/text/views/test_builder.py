from __future__ import annotations

import hashlib
import json
import multiprocessing
import random
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.workers import Local
from opencse.text.corpus import Corpus
from opencse.text.generated import paraphrases
from opencse.text.views import builder
from opencse.text.views.builder import UNIT, build_order, read_header
from opencse.text.views.registry import (
    VIEWS,
    AntonymSwap,
    BackTranslation,
    CandidateTable,
    Deletion,
    HardNegatives,
    Insertion,
    Negation,
    RandomSentence,
    Substitution,
    WordSubstitution,
    build_views,
)

SPECS = {"shorter": Deletion(), "less": Deletion(share=0.2), "other": RandomSentence()}


def hashes(folder: Path) -> dict[str, str]:
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.iterdir())
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    chance = random.Random(0)
    words = [f"word{k}" for k in range(200)]
    lines = [" ".join(chance.choices(words, k=chance.randint(1, 30))) for _ in range(7 * UNIT + 5)]
    lines[3] = ""
    lines[100] = " \t"
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def build(
    corpus: Path,
    out: Path,
    *,
    processes: int = 1,
    rows: int = 2 * UNIT,
    specs: dict = SPECS,
    **options,
) -> Path:
    """Build in files of so many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "PART_ROWS", rows)
        patch.setattr(builder, "_PARTS", 1)
        return build_views(
            Corpus(corpus), specs, out, engine=Local(processes=processes), **options
        ).path


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory) -> Path:
    return build(corpus, tmp_path_factory.mktemp("whole"))


def test_rows_columns_and_header(corpus, whole):
    texts = [line for line in corpus.read_text().split("\n") if line.strip()]
    table = pq.read_table(whole)
    assert table["text"].to_pylist() == texts
    assert table["id"].to_pylist() == list(range(len(texts)))
    assert table.column_names == ["id", "text"] + [
        f"{c}{s}" for c in SPECS for s in ("", ".rule", ".mer")
    ]
    assert [file.name for file in sorted(whole.iterdir())] == [
        f"part-{i:05d}-of-00004.parquet" for i in range(4)
    ]
    head = read_header(whole / "part-00000-of-00004.parquet")
    assert head["rows"] == len(texts)
    assert head["columns"]["less"] == {
        "kind": "deletion",
        "of": "text",
        "share": 0.2,
        "weights_sha256": "",
    }
    one = [text for text in texts if len(text.split()) == 1]
    nulls = table.filter(table["shorter.rule"].to_numpy() == "too short")
    assert nulls["text"].to_pylist() == one
    assert nulls["shorter"].null_count == len(one)


def test_two_processes_give_the_same_bytes(corpus, whole, tmp_path):
    build(corpus, tmp_path / "two", processes=2)
    assert hashes(tmp_path / "two") == hashes(whole)


def _build(corpus: Path, out: Path, started: object) -> None:
    started.set()  # type: ignore[attr-defined]
    build(corpus, out, rows=UNIT)


@pytest.mark.slow
def test_killed_at_twenty_points(corpus, tmp_path):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["opencse.text.views.builder", "opencse.text.corpus", "tqdm"])
    expected = hashes(build(corpus, tmp_path / "expected", rows=UNIT))
    chance, cut = random.Random(1), 0
    for point in range(20):
        out = tmp_path / str(point)
        started = context.Event()
        process = context.Process(target=_build, args=(corpus, out, started))
        process.start()
        started.wait()
        time.sleep(chance.random() * 0.5)
        process.kill()
        process.join()
        left = set(hashes(out)) if out.exists() else set()
        cut += left != set(expected)
        finished = {
            name: (out / name).stat().st_mtime_ns for name in left if not name.startswith(".")
        }
        build(corpus, out, rows=UNIT)
        assert hashes(out) == expected
        assert all(
            (out / name).stat().st_mtime_ns == time_then for name, time_then in finished.items()
        )
    assert cut >= 5  # or else the kills came too late to mean anything


def test_other_views_are_not_mixed_in(corpus, whole, tmp_path):
    out = tmp_path / "views"
    build(corpus, out)
    with pytest.raises(OpencseError, match="seed differ"):
        build(corpus, out, seed=1)
    with pytest.raises(OpencseError, match="columns differ"):
        build(corpus, out, specs={"shorter": Deletion(share=0.2)})
    assert hashes(out) == hashes(whole)
    build(corpus, out, specs={"shorter": Deletion(share=0.2)}, resume=False)
    assert pq.read_schema(next(out.iterdir())).names == [
        "id",
        "text",
        "shorter",
        "shorter.rule",
        "shorter.mer",
    ]


def test_columns_come_after_what_they_need():
    specs = {"san": Substitution(model="m"), "negation": Negation()}
    assert build_order(specs) == ["negation", "san"]
    with pytest.raises(OpencseError, match="needs the column 'negation'"):
        build_order({"san": Substitution(model="m")})
    for name in ("text", "id", "a.b", ""):
        with pytest.raises(OpencseError, match="not a valid name"):
            build_order({name: Deletion()})


def test_a_column_sees_those_before_it(bert, tmp_path, monkeypatch):
    monkeypatch.setattr("opencse.text.generated.likely_words.passes_filter", lambda text: False)
    path = tmp_path / "corpus.txt"
    path.write_text("The old dog sits in the garden.\nThe drug is safe.\n")
    specs = {"san": Substitution(model=bert), "negation": Negation()}
    rows = pq.read_table(build_views(Corpus(path), specs, tmp_path / "views").path).to_pylist()
    assert rows[1]["san.rule"] == "rejected, negation"
    assert rows[1]["san"] == rows[1]["negation"] == "The drug is not safe."
    head = read_header(next((tmp_path / "views").iterdir()))
    assert len(head["columns"]["san"]["weights_sha256"]) == 64


def test_a_column_of_another_column(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("The soup is hot.\nIt rains.\n")
    specs = {"denied": Negation(of="opposite"), "opposite": AntonymSwap()}
    table = pq.read_table(build_views(Corpus(path), specs, tmp_path / "views").path).to_pydict()
    assert table["opposite"] == ["The soup is cold.", None]
    assert table["denied"] == ["The soup is not cold.", None]
    assert table["denied.rule"][1] == "no opposite"
    assert table["denied.mer"][1] is None
    with pytest.raises(OpencseError, match="needs the column 'opposite'"):
        build_order({"denied": Negation(of="opposite")})
    with pytest.raises(OpencseError, match="searches the corpus itself"):
        build_order({"mined": HardNegatives(of="x", model="minilm"), "x": Negation()})


def test_empty_corpus(tmp_path):
    (tmp_path / "corpus.txt").write_text("\n \n")
    with pytest.raises(OpencseError, match="no sentence"):
        build_views(Corpus(tmp_path / "corpus.txt"), SPECS, tmp_path / "views")


BY_RULES = [
    name for name, kind in VIEWS.items() if kind.__module__.startswith("opencse.text.english")
]

HOSTILE = [
    "word", "", " ", ".", "not", "'s n't", "Is?", "do do do does did not", "🙂🙃 👩‍👩‍👧 is 🇫🇷",
    "هذا الدواء ليس آمنا.", "זה לא בטוח", "the\x00drug \x07is\x1b[0m safe\x7f.", "a\u2028b\u0085c\xa0d",
    "\ufeff\u200bis\u202e not", "((((is) not]", "e\u0301" * 50,
    "[MASK] is [SEP] </s> <mask> not", "the old dog sits in the garden . " * 715, "x" * 5000, "IS IT NOT?",
    "!" * 300,
]  # fmt: skip


@pytest.fixture
def specs(bert, roberta, marian, tmp_path, monkeypatch):
    monkeypatch.setattr(paraphrases, "_MAX_NEW_TOKENS", 4)
    path = tmp_path / "candidates.parquet"
    pq.write_table(pa.table({"text": ["word", None, ""], "candidate": ["other", "x", None]}), path)
    return {name: VIEWS[name]() for name in BY_RULES} | {
        "antonym": Negation(by="not-antonym"),
        "faithful": Negation(mode="faithful"),
        "table": CandidateTable(path=str(path), window=(0.0, 1.0)),
        "translation": BackTranslation(
            models=((marian, marian),), beams=1, noise="mask", window=(0.0, 1.0)
        ),
        "san": Substitution(model=bert, iterations=2),
        "substituted": Substitution(model=roberta, iterations=1),
        "insertion": Insertion(model=bert),
        "replaced": WordSubstitution(model=roberta),
        "deletion": Deletion(),
        "random": RandomSentence(),
    }


def test_a_valid_row_or_a_null(specs, rows):
    for name, spec in specs.items():
        for text, built in zip(HOSTILE, spec.open()(rows(*HOSTILE)), strict=True):
            views = built if isinstance(built, list) else [built]
            assert len(views) == len(spec.columns(name))
            for view in views:
                assert view.text is None or isinstance(view.text, str)
                assert view.rule
                assert set(view.scores) == set(spec.scores)
                if not text.strip() and name not in ("random", "table"):
                    assert not view.text


def test_they_survive_a_build(tmp_path):
    path = tmp_path / "corpus.jsonl"
    texts = [text for text in HOSTILE if "\0" not in text]  # a corpus with a NUL is refused
    path.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    views = build_views(
        Corpus(path), {"negation": Negation(), "deletion": Deletion()}, tmp_path / "views"
    )
    table = pq.read_table(views.path)
    assert table.num_rows == sum(bool(text.strip()) for text in texts)
    assert table["text"].null_count == 0
