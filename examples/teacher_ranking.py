"""RankCSE: rank the batch like a teacher: python examples/teacher_ranking.py [OUT] [STEPS]

The teacher's vectors are computed once, before training. Any sentence-transformers model can be the
teacher.
"""

import sys
from pathlib import Path

import opencse
from opencse.text.corpus import demo_path

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "teacher-ranking-out")), int(arguments.get(2, 30))
    run = opencse.train(
        "rankcse-listmle",
        "demo",
        backbone="mini-mlm",
        out=out,
        dev=demo_path("demo", "pairs.tsv"),
        overwrite=True,
        overrides=[f"training.max_steps={steps}", "teachers.a.model=minilm"],
    )
    print("Spearman before:", run.outcome.first_score, "after:", run.outcome.best_score)
