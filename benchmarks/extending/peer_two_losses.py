"""Two losses in a loop and in the trainer, with sentence-transformers alone.

    python benchmarks/extending/peer_two_losses.py OUT STEPS

The same job as examples/two_losses.py. The trainer takes one loss for each data set, so their sum is
a module.
"""

import sys

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

from opencse.encoder.names import resolve
from opencse.text.corpus import demo_path


class SumOfLosses(torch.nn.Module):
    """The weighted sum of losses, on one encoding."""

    def __init__(self, model, losses, weights):
        super().__init__()
        self.model = model
        self.losses = torch.nn.ModuleList(losses)
        self.weights = weights
        self.log = {}

    def forward(self, sentence_features, labels=None):
        vectors = [self.model(columns)["sentence_embedding"] for columns in sentence_features]
        return self.compute_loss_from_embeddings(vectors, labels)

    def compute_loss_from_embeddings(self, vectors, labels=None):
        values = [loss.compute_loss_from_embeddings(vectors, labels) for loss in self.losses]
        self.log = {i: value.item() for i, value in enumerate(values)}
        return sum(weight * value for weight, value in zip(self.weights, values, strict=True))


def train_in_a_loop(model, loss, sentences, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    model.train()
    for step in range(steps):
        batch = sentences[step * 16 % 160 :][:16]
        vectors = [model(model.preprocess(batch))["sentence_embedding"] for _ in range(2)]
        total = loss.compute_loss_from_embeddings(vectors)
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    return total.item()


if __name__ == "__main__":
    out, steps = sys.argv[1], int(sys.argv[2])
    sentences = demo_path("demo", "sentences.txt").read_text(encoding="utf-8").splitlines()
    model = SentenceTransformer(resolve("minilm"), device="cpu")
    losses = [
        MultipleNegativesRankingLoss(model, scale=20),
        MultipleNegativesRankingLoss(model, scale=10),
    ]
    loss = SumOfLosses(model, losses, [1.0, 0.5])
    print("loop", train_in_a_loop(model, loss, sentences, steps))
    settings = SentenceTransformerTrainingArguments(
        out, max_steps=steps, learning_rate=1e-5, save_strategy="no", report_to="none"
    )
    data = Dataset.from_dict({"anchor": sentences, "positive": sentences})
    SentenceTransformerTrainer(model, settings, data, loss=loss).train()
    print("trainer", loss.log)
