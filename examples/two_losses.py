"""Add up two losses, in a loop and in sentence-transformers' trainer: python examples/two_losses.py [OUT] [STEPS]"""

import sys
from pathlib import Path

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)

import opencse
from opencse.encoder.names import resolve
from opencse.losses import InfoNCELoss, Objective
from opencse.text.corpus import demo_path

LOSSES = [InfoNCELoss(temperature=0.05), InfoNCELoss(name="soft", temperature=0.1, weight=0.5)]


def train_in_a_loop(model: SentenceTransformer, sentences: list[str], steps: int) -> float:
    """Return the value of the last step."""
    objective = Objective(LOSSES)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    model.train()
    for step in range(steps):
        batch = sentences[step * 16 % 160 :][:16]
        vectors = {
            view: model(model.preprocess(batch))["sentence_embedding"]
            for view in ("anchor", "twin")
        }
        total, _, _ = objective(vectors)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return total.item()


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "two-losses-out")), int(arguments.get(2, 30))
    sentences = demo_path("demo", "sentences.txt").read_text(encoding="utf-8").splitlines()
    model = SentenceTransformer(resolve("minilm"), device="cpu")
    print("loop", train_in_a_loop(model, sentences, steps))

    columns = {"anchor": "text", "twin": "text"}
    loss = opencse.sentence_transformers_loss(model=model, losses=LOSSES, columns=columns)
    settings = SentenceTransformerTrainingArguments(
        str(out), max_steps=steps, learning_rate=1e-5, save_strategy="no", report_to="none"
    )
    data = Dataset.from_dict({"text": sentences})
    SentenceTransformerTrainer(
        model, settings, data, loss=loss, callbacks=[loss.callback()]
    ).train()
    print("trainer", {name: round(float(value), 3) for name, value in loss.reports.items()})
