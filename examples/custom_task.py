"""Score your own task before and after training: python examples/custom_task.py [OUT] [STEPS]"""

import sys
from pathlib import Path

import opencse
from opencse.evaluation.task import TaskResult

QUESTIONS = {
    "How do I open the valve?": ("Turn the valve to the left.", "The valve is made of brass."),
    "When does the shop close?": ("The shop shuts at six.", "The shop sells shoes."),
    "Who wrote the report?": ("Anna is its author.", "The report has ten pages."),
}


class Answers:
    """How many questions are nearer to their answer than to another sentence on the same thing."""

    name = "answers"

    def texts(self):
        for question, pair in QUESTIONS.items():
            yield from (question, *pair)

    def score(self, embeddings):
        right = 0
        for question, (answer, other) in QUESTIONS.items():
            near, far = embeddings.compared([question], [answer, other])[0]
            right += bool(near > far)
        metrics = {"accuracy": 100 * right / len(QUESTIONS)}
        return TaskResult(task=self.name, main="accuracy", metrics=metrics, rows=len(QUESTIONS))


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "custom-task-out")), int(arguments.get(2, 30))
    result = opencse.run(
        "simcse",
        "demo",
        backbone="minilm",
        out=out,
        tasks=[Answers()],
        overwrite=True,
        overrides=[f"training.max_steps={steps}"],
    )
    print("before", result.before["tasks"].average, "after", result.after["tasks"].average)
