"""Every figure on text views in docs/measurements, measured again in one run; run it on an idle machine.

    python benchmarks/views/all_figures.py --data FOLDER [--table TABLE.parquet] [--small]

FOLDER is the folder that the scripts below ask for. With `--table`, a table of back-translations
with the columns `text` and `back_translation`, the views of `benchmarks/views/views.toml` are built
from 4,000 of its sentences first, for the overlap of built pairs. `--small` tries everything on a
fraction, to see that it runs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent


def run(title: str, *command: str, cwd: Path | None = None) -> bool:
    print(f"\n## {title}\n", flush=True)
    done = subprocess.run([sys.executable, *command], cwd=cwd, check=False)
    if done.returncode:
        print(f"failed: {' '.join(command)}", flush=True)
    return done.returncode == 0


def build(table: Path, folder: Path, rows: int) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pq.read_table(table)
    texts = list(dict.fromkeys(text for text in found["text"].to_pylist() if text))[:rows]
    pq.write_table(pa.table({"text": texts}), folder / "corpus.parquet")
    recipe = (HERE / "views.toml").read_text(encoding="utf-8")
    recipe = recipe.replace('"back_translations.parquet"', f'"{table.resolve().as_posix()}"')
    (folder / "views.toml").write_text(recipe, encoding="utf-8")
    command = (
        "-m",
        "opencse.commands.main",
        "build",
        "views.toml",
        "corpus.parquet",
        "-o",
        "views",
        "--stats",
    )
    return run("Built pairs", *command, cwd=folder)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--small", action="store_true")
    args = parser.parse_args()
    data, small = str(args.data.resolve()), args.small
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        views: tuple[str, ...] = ()
        if args.table is not None and build(args.table, folder, 200 if small else 4000):
            views = ("--views", str(folder / "views"))
        done = [
            run(
                "Speed and memory",
                str(HERE / "views.py"),
                "--data",
                data,
                *(("--rounds", "1", "--few") * small),
            ),
            run("Surface similarity", str(HERE / "surface_tables.py"), "--data", data, *views),
            run(
                "Rewriting",
                str(HERE / "grammar.py"),
                "--data",
                data,
                *(("--sentences", "200") * small),
            ),
            run("Negation: judged sample", str(HERE / "negation_sample.py"), "--data", data),
        ]
        if not small:
            done.append(run("Negation: CANNOT", str(HERE / "negation_cannot.py"), "--data", data))
    sys.exit(not all(done))


if __name__ == "__main__":
    main()
