"""A loss outside the library, with sentence-transformers: python benchmarks/extending/peer_loss.py OUT STEPS

The same job as examples/new_loss.py: SimCSE, plus 0.1 times the uniformity of Wang and Isola.
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
from torch.nn.functional import normalize

from opencse.encoder.names import resolve
from opencse.text.corpus import demo_path


class UniformLoss(torch.nn.Module):
    """InfoNCE and the uniformity of the anchors, on one encoding."""

    def __init__(self, model, weight=0.1, sharpness=2.0):
        super().__init__()
        self.model = model
        self.weight = weight
        self.sharpness = sharpness
        self.contrastive = MultipleNegativesRankingLoss(model)
        self.log = {}

    def forward(self, sentence_features, labels=None):
        vectors = [self.model(columns)["sentence_embedding"] for columns in sentence_features]
        contrastive = self.contrastive.compute_loss_from_embeddings(vectors, labels)
        distances = torch.pdist(normalize(vectors[0], dim=-1)).square()
        uniformity = distances.mul(-self.sharpness).exp().mean().log()
        self.log = {"contrastive": contrastive.item(), "uniformity": uniformity.item()}
        return contrastive + self.weight * uniformity


if __name__ == "__main__":
    out, steps = sys.argv[1], int(sys.argv[2])
    sentences = demo_path("demo", "sentences.txt").read_text(encoding="utf-8").splitlines()
    model = SentenceTransformer(resolve("minilm"), device="cpu")
    loss = UniformLoss(model)
    settings = SentenceTransformerTrainingArguments(
        out,
        per_device_train_batch_size=64,
        max_steps=steps,
        learning_rate=1e-5,
        save_strategy="no",
        report_to="none",
    )
    data = Dataset.from_dict({"anchor": sentences, "positive": sentences})
    SentenceTransformerTrainer(model, settings, data, loss=loss).train()
    model.save_pretrained(out)
    print(loss.log)
