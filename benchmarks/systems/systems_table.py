"""The table of `systems.py`, from the runs that are finished."""

from __future__ import annotations

import argparse
import json
import statistics
import tomllib
from pathlib import Path

from opencse.commands.compare import spread
from opencse.recipes import load_recipe
from opencse.training.run_groups import FinishedRun, read_run

TABLES = tomllib.loads(Path(__file__).with_name("systems.toml").read_text(encoding="utf-8"))


def folder_of(options: argparse.Namespace, kind: str, label: str) -> Path:
    return options.out / kind / "".join(c if c.isalnum() or c in "-+" else "_" for c in label)


def write_table(options: argparse.Namespace, wanted: dict[str, tuple[str, list[str]]]) -> None:
    """`OUT/systems.md` and the single runs, `OUT/systems.jsonl`, from the runs that are finished."""
    groups, notes, memory, bias, lines = {}, [], {}, {}, []
    for label in wanted:
        folders = sorted(folder_of(options, "runs", label).glob("seed-*/cost.json"))
        runs = sorted((read_run(file.parent) for file in folders), key=lambda run: run.seed)
        if runs:
            groups[label] = runs
            memory[label] = max(peak(file.parent) for file in folders)
            each = [_bias(run.folder, -1) for run in runs]
            bias[label], untouched = _means(each), _means([_bias(runs[0].folder, 0)])
            lines += [_line(label, run, found) for run, found in zip(runs, each, strict=True)]
        if 0 < len(runs) < len(options.seeds):
            notes.append(f"{label}: {len(runs)} of {len(options.seeds)} seeds")
    if not groups:
        return
    cost_file = options.out / "cost.json"
    cost = (
        json.loads(cost_file.read_text()) if cost_file.is_file() else {"ratio": {}, "peak_mib": {}}
    )
    memory |= cost["peak_mib"]  # of training alone; a run's own peak may be its evaluation's
    first = next(iter(groups))
    tasks = list(groups[first][0].scores["sts"])
    scores = [["system", *tasks, "average", f"over {first}", "published (bert-base)"]]
    costs = [["system", "Cont.", "Oppn.", "paraphrase > negation"]]
    costs[0] += ["steps", "seconds", f"× {first}", "published ×", "peak MiB"]
    before = json.loads((groups[first][0].folder / "results.json").read_text(encoding="utf-8"))[
        "before"
    ]["sts"]
    scores.append(["untouched backbone", *[""] * len(tasks), f"{before['average']:.2f}", "", ""])
    costs.append(["untouched backbone", *untouched, *[""] * 5])
    averages = {
        label: [statistics.mean(run.scores["sts"].values()) for run in runs]
        for label, runs in groups.items()
    }
    for label, runs in groups.items():
        recipe = wanted[label][0]
        own = recipe == label
        published = load_recipe(recipe).published.get("bert-base") if own else None
        test = "" if label == first else _difference(averages[label], averages[first])
        columns = [_spread([run.scores["sts"][task] for run in runs]) for task in tasks]
        scores.append([label, *columns, _spread(averages[label]), test, _number(published, 2)])
        ratio, memory_peak = cost["ratio"].get(label), memory[label]
        published_cost = TABLES["published_cost"].get(recipe) if own else None
        seconds = statistics.mean(run.seconds for run in runs)
        spent = [str(runs[0].steps), _number(seconds, 0), _number(ratio, 2)]
        costs.append(
            [label, *bias[label], *spent, _number(published_cost, 2), _number(memory_peak, 0)]
        )
    if missing := [label for label in wanted if label not in groups]:
        notes.append(f"not run: {', '.join(missing)}")
    blocks = [*_lines(scores), "", *_lines(costs), "", *(f"- {note}" for note in notes)]
    (options.out / "systems.md").write_text("\n".join(blocks) + "\n", encoding="utf-8")
    (options.out / "systems.jsonl").write_text(
        "".join(f"{line}\n" for line in lines), encoding="utf-8"
    )


def _lines(table: list[list[str]]) -> list[str]:
    """A table in Markdown, from its rows, the head first."""
    rule = "|---" + "|---:" * (len(table[0]) - 1) + "|"
    head, *rows = ["| " + " | ".join(row) + " |" for row in table]
    return [head, rule, *rows]


def peak(run: Path) -> float:
    """MiB of a run's process, or of the GPU where it used one."""
    cost = json.loads((run / "cost.json").read_text(encoding="utf-8"))
    return cost.get("gpu_peak_mib", cost["peak_mib"])


def _bias(run: Path, which: int) -> dict[str, float]:
    """Agreement on consistent and on opposed pairs (OssCSE), and the share of paraphrases above negations."""
    models = json.loads((run / "probe.json").read_text(encoding="utf-8"))["models"]
    model = list(models.values())[which]["scores"]
    split = model["splits"][-1]
    rate = model["transformations"]["paraphrase_above_negation"]["value"]
    return {
        "cont": split["consistent"]["value"],
        "oppn": split["opposed"]["value"],
        "above": 100 * rate,
    }


def _means(found: list[dict[str, float]]) -> list[str]:
    digits = {"cont": 3, "oppn": 3, "above": 1}
    return [
        f"{statistics.mean(each[key] for each in found):.{count}f}" for key, count in digits.items()
    ]


def _line(label: str, run: FinishedRun, bias: dict[str, float]) -> str:
    """What a run scored, on a line."""
    found = {"system": label, "seed": run.seed, "steps": run.steps, "seconds": round(run.seconds)}
    found |= {"sts": {task: round(score, 2) for task, score in run.scores["sts"].items()}}
    found |= {key: round(value, 3) for key, value in bias.items()}
    return json.dumps(found, ensure_ascii=False)


def _spread(scores: list[float | None]) -> str:
    found = spread(scores)
    return "–" if found.value is None else found.figure


def _difference(averages: list[float], first: list[float]) -> str:
    """A difference of means; with few seeds and many systems, a test would claim too much."""
    value = statistics.mean(averages) - statistics.mean(first)
    return f"{value:+.2f}"


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
