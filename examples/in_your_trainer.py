"""Use a recipe as the loss in sentence-transformers' trainer: python examples/in_your_trainer.py [OUT] [STEPS]"""

import sys
from pathlib import Path

from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)

import opencse
from opencse.encoder.names import resolve
from opencse.text.corpus import demo_path

if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "in-your-trainer-out")), int(arguments.get(2, 30))
    model = SentenceTransformer(resolve("minilm"))
    loss = opencse.sentence_transformers_loss("simcse", model)
    sentences = demo_path("demo", "sentences.txt").read_text(encoding="utf-8").splitlines()
    settings = SentenceTransformerTrainingArguments(
        str(out),
        per_device_train_batch_size=16,
        max_steps=steps,
        learning_rate=1e-5,
        save_strategy="no",
        report_to="none",
    )
    data = Dataset.from_dict({"text": sentences}).select_columns(loss.columns)
    trainer = SentenceTransformerTrainer(
        model, settings, data, loss=loss, callbacks=[loss.callback()]
    )
    trainer.train()
    model.save_pretrained(str(out / "model"))
    print({name: round(float(value), 3) for name, value in loss.reports.items()})
