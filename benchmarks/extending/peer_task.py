"""A custom task before and after training, with sentence-transformers: python benchmarks/extending/peer_task.py OUT STEPS

The same job as examples/custom_task.py.
"""

import json
import sys
from pathlib import Path

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from opencse.encoder.names import resolve
from opencse.text.corpus import demo_path

QUESTIONS = {
    "How do I open the valve?": ("Turn the valve to the left.", "The valve is made of brass."),
    "When does the shop close?": ("The shop shuts at six.", "The shop sells shoes."),
    "Who wrote the report?": ("Anna is its author.", "The report has ten pages."),
}


class Answers(SentenceEvaluator):
    """How many questions are nearer to their answer than to another sentence on the same thing."""

    def __init__(self):
        super().__init__()
        self.primary_metric = "answers_accuracy"

    def __call__(self, model, output_path=None, epoch=-1, steps=-1):
        right = 0
        for question, pair in QUESTIONS.items():
            near, far = model.similarity(model.encode([question]), model.encode(list(pair)))[0]
            right += bool(near > far)
        metrics = {self.primary_metric: 100 * right / len(QUESTIONS)}
        self.store_metrics_in_model_card_data(model, metrics, epoch, steps)
        return metrics


if __name__ == "__main__":
    out, steps = Path(sys.argv[1]), int(sys.argv[2])
    sentences = demo_path("demo", "sentences.txt").read_text(encoding="utf-8").splitlines()
    model = SentenceTransformer(resolve("minilm"), device="cpu")
    evaluator = Answers()
    before = evaluator(model)
    settings = SentenceTransformerTrainingArguments(
        str(out),
        per_device_train_batch_size=64,
        max_steps=steps,
        learning_rate=1e-5,
        save_strategy="no",
        report_to="none",
    )
    data = Dataset.from_dict({"anchor": sentences, "positive": sentences})
    loss = MultipleNegativesRankingLoss(model)
    SentenceTransformerTrainer(model, settings, data, loss=loss, evaluator=evaluator).train()
    after = evaluator(model)
    model.save_pretrained(str(out))
    (out / "results.json").write_text(json.dumps({"before": before, "after": after}))
    print("before", before, "after", after)
