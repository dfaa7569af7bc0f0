"""Every system from one backbone, on the same sentences, over seeds: STS scores, surface bias, cost, papers' numbers.

    python benchmarks/systems/systems.py CORPUS DATA -o OUT --backbone mini-mlm --sentences 100000 --seeds 1,2,3
    python benchmarks/systems/systems.py CORPUS DATA -o OUT --paraphrases TABLE --longest 10 --jobs 2
    python benchmarks/systems/systems.py CORPUS DATA -o OUT --systems simcse sncse osscse --ablations
    python benchmarks/systems/systems.py CORPUS DATA -o OUT --ablations --only simcse 'osscse*' --seeds 1
    python benchmarks/systems/systems.py CORPUS DATA -o OUT --published bert-base --systems simcse osscse diffcse
    python benchmarks/systems/systems.py CORPUS DATA -o OUT --cost     # seconds per sentence, no evaluation
    python benchmarks/systems/systems.py CORPUS DATA -o OUT --backbone minilm --train-only    # for ideas.py
    python benchmarks/systems/systems.py CORPUS DATA -o OUT --table    # only write the table from what is there

CORPUS is text, or a table with columns that recipes read (paraphrase, positive_1, …); DATA the
folder of the STS files. The first --sentences rows are taken, of at most --longest words; the
sentences of a table of --paraphrases are among them, of at most --longest-paraphrased words. What
columns the systems can build are built once, into OUT/corpus. Each run is a process of its own, so
that its peak memory is its own, in OUT/runs/LABEL/seed-N; a finished one is skipped, a killed one
goes on where it stopped. The step that is kept is chosen on STS-B dev. A run that fails leaves its
message in OUT/runs/LABEL/seed-N.log, and a hole in the table (OUT/systems.md); OUT/systems.jsonl
has what each run scored. `--set` is for all systems; what benchmarks/systems/systems.toml sets for
one of them comes after it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock

from systems_table import TABLES, folder_of, peak, write_table

from opencse.foundation.errors import OpencseError
from opencse.recipes import dump_recipe, load_recipe, recipe_names
from opencse.recipes.load import stand_ins

COST_STEPS, COST_WARM = 30, 10
AS_PUBLISHED = ", as published"


def variants(options: argparse.Namespace) -> dict[str, tuple[str, list[str]]]:
    """Label to recipe and settings."""
    trained_alike = (
        "simcse",
        "debias",
        "transformations",
    )  # debias starts from a trained model, the last is SimCSE
    others = [name for name in recipe_names() if name not in trained_alike]
    every = ["simcse", *others]
    names = every if options.systems == ["all"] else options.systems
    found = {name: (name, []) for name in names}
    if options.ablations:
        ablations = {label: a for label, a in TABLES["ablations"].items() if a["recipe"] in names}
        found |= {
            label: (a["recipe"], _filled(options, a["set"])) for label, a in ablations.items()
        }
    first = {name: [*options.set, *_own_settings(options, name)] for name in names}
    wanted = {
        label: (recipe, [*first[recipe], *settings]) for label, (recipe, settings) in found.items()
    }
    if options.published:
        for name in names:
            settings = [*options.set, *_own_settings(options, name, AS_PUBLISHED)]
            wanted[f"{name}{AS_PUBLISHED}"] = (_published(options, name), settings)
    return wanted


def _published(options: argparse.Namespace, name: str) -> str:
    """A recipe as it was published for a family, written to a file; the backbone replaces the paper's other models."""
    asked = {"family": options.published, "variant": "faithful"}
    models = stand_ins(load_recipe(name, **asked), options.backbone)
    file = options.out / "recipes" / f"{name}-as-published.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dump_recipe(load_recipe(name, **asked, overrides=models)), encoding="utf-8")
    return str(file)


def _filled(options: argparse.Namespace, settings: Sequence[str], variant: str = "") -> list[str]:
    seed = options.seeds[0]
    simcse = folder_of(options, "runs", f"simcse{variant}").resolve() / f"seed-{seed}"
    return [
        each.format(runs=options.out.resolve() / "runs", simcse=simcse, seed=seed)
        for each in settings
    ]


def _own_settings(options: argparse.Namespace, recipe: str, variant: str = "") -> list[str]:
    """What a recipe is given here: paraphrases from the table, teachers from this benchmark's own runs."""
    table = options.paraphrases
    found = _filled(options, TABLES["settings"].get(recipe, []), variant)
    found += [] if options.published else TABLES["mixed"].get(recipe, [])
    if table is not None:
        from opencse.recipes.rows.sentence_sample import paraphrase_columns

        text, candidate = paraphrase_columns(table)
        columns = {"text_column": text, "candidate_column": candidate}
        source = {"kind": "candidate_table", "path": table.resolve(), **columns}
        if place := TABLES["paraphrases"].get(recipe):
            found += [f"{place}.{key}={value}" for key, value in source.items()]
    return found


def prepare(
    options: argparse.Namespace, wanted: dict[str, tuple[str, list[str]]]
) -> dict[str, Path]:
    """For each label the first sentences as a table, with what columns its recipe reads and can build.

    Each adds its columns to the table before it that holds most of them, and none that is built
    otherwise.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from opencse.encoder.backbone import Backbone
    from opencse.recipes.rows.prepare import add_columns, missing_specs
    from opencse.text.corpus import Corpus
    from opencse.text.views.registry import build_views

    base = options.out / "corpus" / "corpus.parquet"
    if not base.is_file():
        given = Corpus(options.corpus).columns
        at = given.index("text")
        base.parent.mkdir(parents=True, exist_ok=True)
        kept = _paraphrased(options, given) if options.paraphrases else []
        rows = (
            row
            for row in Corpus(options.corpus).rows(given)
            if 0 < len((row[at] or "").split()) <= options.longest
        )
        kept += [row for row, _ in zip(rows, range(options.sentences - len(kept)), strict=False)]
        random.Random(0).shuffle(kept)
        pq.write_table(
            pa.table(dict(zip(given, map(list, zip(*kept, strict=True)), strict=True))), base
        )
    family = Backbone(options.backbone).family
    recipes = {}
    for label, (name, settings) in wanted.items():
        try:
            recipes[label] = load_recipe(name, family=family, overrides=settings)
        except OpencseError as error:
            print(f"{label}: {error}", file=sys.stderr)
    columns = [*dict.fromkeys(column for recipe in recipes.values() for column in recipe.columns)]
    made: list[tuple[dict[str, object], Path]] = [({}, base)]
    tables = {}
    for label, recipe in recipes.items():
        every = missing_specs(recipe.build, recipe.columns, Corpus(base).columns)
        holds, start = max(made, key=lambda one: _shared(one[0], every))
        specs = missing_specs(recipe.build, recipe.columns, Corpus(start).columns)
        tables[label] = start
        try:
            if specs:
                folder = folder_of(options, "corpus", label) / "views"
                built = build_views(Corpus(start), specs, folder)
                tables[label] = add_columns(Corpus(start), built, columns).path
                made.insert(0, (holds | specs, tables[label]))
        except OpencseError as error:  # no translation model, say: the others can go on
            print(f"{label}: {', '.join(specs)} cannot be built ({error})", file=sys.stderr)
    return tables


def _shared(holds: Mapping[str, object], wanted: Mapping[str, object]) -> int:
    """How many of the wanted columns a table holds; -1 if it holds one that was built otherwise."""
    same = [holds[column] == spec for column, spec in wanted.items() if column in holds]
    return sum(same) if all(same) else -1


def _paraphrased(
    options: argparse.Namespace, columns: Sequence[str]
) -> list[tuple[str | None, ...]]:
    """The sentences of the table of paraphrases, as rows of the corpus that have nothing else."""
    from opencse.recipes.rows.sentence_sample import paraphrase_columns
    from opencse.text.corpus import Corpus

    column, _ = paraphrase_columns(options.paraphrases)
    every = dict.fromkeys(
        text for (text,) in Corpus(options.paraphrases).rows((column,)) if text and text.strip()
    )
    texts = [text for text in every if len(text.split()) <= options.longest_paraphrased]
    return [tuple(text if name == "text" else None for name in columns) for text in texts][
        : options.sentences
    ]


def one(options: argparse.Namespace) -> None:
    """A single run, in this process."""
    import opencse

    recipe, settings = options.one[0], options.one[1:]
    out = Path(options.out)
    shared = {"backbone": options.backbone, "out": out, "overrides": settings}
    if options.cost or options.train_only:
        opencse.train(
            recipe, options.corpus, dev="none", overwrite=out.exists(), progress=False, **shared
        )
    else:
        resume = (out / "run.json").is_file()
        opencse.run(
            recipe,
            options.corpus,
            data=options.data,
            resume=resume,
            overwrite=not resume,
            notify=print,
            **shared,
        )
    import torch

    cost = {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    if torch.cuda.is_available():
        cost["gpu_peak_mib"] = torch.cuda.max_memory_allocated() / 2**20
    (out / "cost.json").write_text(json.dumps(cost), encoding="utf-8")


def launch(
    options: argparse.Namespace, corpus: Path, recipe: str, settings: list[str], out: Path
) -> bool:
    """Run `one` as a process of its own; whether it came to its end."""
    out.parent.mkdir(parents=True, exist_ok=True)
    command = [
        sys.executable,
        __file__,
        str(corpus),
        str(options.data),
        "-o",
        str(out),
        "--backbone",
        options.backbone,
    ]
    command += [
        f"--{name.replace('_', '-')}" for name in ("cost", "train_only") if getattr(options, name)
    ]
    command += ["--one", recipe, *settings]
    log = out.with_suffix(".log")
    threads = (
        {}
        if options.jobs == 1
        else {"OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // options.jobs))}
    )
    with log.open("w", encoding="utf-8") as file:
        done = subprocess.run(
            command,
            stdout=file,
            stderr=subprocess.STDOUT,
            check=False,
            env={**os.environ, **threads},
        )
    if done.returncode:
        last = [line for line in log.read_text(encoding="utf-8").splitlines() if line.strip()][-1:]
        print(f"{out}: failed ({''.join(last)[:200]})", file=sys.stderr)
    return done.returncode == 0


def run_all(
    options: argparse.Namespace, tables: dict[str, Path], wanted: dict[str, tuple[str, list[str]]]
) -> None:
    """Seed by seed, so that an early look at the table has all systems."""
    lock = Lock()

    def work(job: tuple[int, str]) -> None:
        seed, label = job
        recipe, settings = wanted[label]
        out = folder_of(options, "runs", label) / f"seed-{seed}"
        finished = ["cost.json"] if options.train_only else ["results.json", "cost.json"]
        if label not in tables or all((out / name).is_file() for name in finished):
            return
        print(f"{label}, seed {seed}", file=sys.stderr, flush=True)
        launch(options, tables[label], recipe, [*settings, f"training.seed={seed}"], out)
        with lock:
            if not options.train_only:
                write_table(options, wanted)

    first, *others = [(seed, label) for seed in options.seeds for label in wanted]
    work(first)  # SimCSE: others take it as their teacher
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, others))


def measure_cost(
    options: argparse.Namespace, tables: dict[str, Path], wanted: dict[str, tuple[str, list[str]]]
) -> None:
    """Seconds per sentence of every system and of SimCSE, in turns, and memory; the ratio is the median over rounds."""
    names = [
        "simcse",
        *(name for name in wanted if name in tables and name == wanted[name][0] != "simcse"),
    ]
    rounds: dict[str, list[float]] = {name: [] for name in names}
    memory: dict[str, float] = {}
    # A small corpus is read again until there are enough steps.
    settings = [f"training.max_steps={COST_STEPS}", "training.batch_size=64"]
    settings += [f"training.epochs={COST_STEPS}"]
    settings += [f"training.log_every={COST_WARM}", "training.checkpoint_every=0"]
    for number in range(options.rounds):
        for name in names:
            out = folder_of(options, "cost", name) / f"round-{number}"
            recipe, own = wanted.get(name, (name, options.set))
            table = tables.get(name, next(iter(tables.values())))
            if launch(options, table, recipe, [*own, *settings], out):
                lines = [
                    json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()
                ]
                seconds = {line["step"]: line["seconds"] for line in lines if "seconds" in line}
                if COST_STEPS not in seconds:
                    sys.exit("--cost needs 64 sentences")
                spent = seconds[COST_STEPS] - seconds[COST_WARM]
                rounds[name].append(spent / (COST_STEPS - COST_WARM) / 64)
                memory[name] = max(memory.get(name, 0.0), peak(out))
                shutil.rmtree(out / "model", ignore_errors=True)
    ratios = {
        name: statistics.median(a / b for a, b in zip(found, rounds["simcse"], strict=True))
        for name, found in rounds.items()
        if len(found) == len(rounds["simcse"])
    }
    measured = {"seconds": rounds, "ratio": ratios, "peak_mib": memory}
    (options.out / "cost.json").write_text(json.dumps(measured, indent=1), encoding="utf-8")
    for name, ratio in ratios.items():
        published = TABLES["published_cost"].get(name)
        print(
            f"{name}: × {ratio:.2f}"
            + ("" if published is None else f" (published × {published:.2f})")
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument(
        "--systems", nargs="+", default=["all"], help="names of recipes; the first is the baseline"
    )
    parser.add_argument("--backbone", default="mini-mlm")
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument(
        "--longest", type=int, default=10_000, metavar="WORDS", help="of the corpus's sentences"
    )
    parser.add_argument(
        "--longest-paraphrased", type=int, default=10_000, metavar="WORDS", help="of --paraphrases"
    )
    parser.add_argument(
        "--paraphrases",
        type=Path,
        metavar="TABLE",
        help="sentences with candidates for a paraphrase",
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, which share the cores")
    parser.add_argument(
        "--seeds", type=lambda text: [int(s) for s in text.split(",")], default=[1, 2, 3]
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument(
        "--ablations",
        action="store_true",
        help="and the variants of benchmarks/systems/systems.toml",
    )
    parser.add_argument(
        "--published", metavar="FAMILY", help="and each system as published for this family"
    )
    parser.add_argument(
        "--only", nargs="+", default=["*"], metavar="LABEL", help="run these of them; * is anything"
    )
    parser.add_argument("--cost", action="store_true", help="measure the cost of a step instead")
    parser.add_argument(
        "--train-only",
        action="store_true",
        help="without evaluation: for benchmarks/debias/ideas.py",
    )
    parser.add_argument("--rounds", type=int, default=3, help="of --cost")
    parser.add_argument("--table", action="store_true", help="only write the table")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        return one(options)
    wanted = variants(options)
    chosen = {
        label: wanted[label]
        for label in wanted
        if any(fnmatchcase(label, each) for each in options.only)
    }
    if not options.table:
        tables = prepare(
            options, wanted
        )  # for all, whichever are to be run: one's table may stand on another's
        (measure_cost if options.cost else run_all)(options, tables, chosen)
    if options.train_only:
        return None
    write_table(options, chosen)
    if (options.out / "systems.md").is_file():
        print((options.out / "systems.md").read_text(encoding="utf-8"))
    return None


if __name__ == "__main__":
    main()
