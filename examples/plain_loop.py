"""SimCSE in a plain training loop, in a second: python examples/plain_loop.py [OUT] [STEPS]"""

import sys
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device

from opencse.encoder import load_encoder
from opencse.losses import InfoNCELoss
from opencse.text.corpus import demo_path


def train(
    model: SentenceTransformer, sentences: list[str], steps: int, batch: int = 16
) -> dict[str, float]:
    """Train a model on sentences; return the loss and the reports of the last step."""
    loss = InfoNCELoss(temperature=0.05)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-5)
    model.train()  # two dropout masks of one sentence are a positive pair
    last: dict[str, float] = {}
    for step in range(steps):
        start = step * batch % (len(sentences) - batch)
        features = batch_to_device(model.preprocess(sentences[start : start + batch]), model.device)
        anchor, twin = (model({**features})["sentence_embedding"] for _ in range(2))
        output = loss(anchor, twin)
        optimizer.zero_grad()
        output.value.backward()
        optimizer.step()
        last = {"loss": output.value.item()} | {
            name: report.item() for name, report in output.reports.items()
        }
    return last


if __name__ == "__main__":
    arguments = dict(enumerate(sys.argv))
    out, steps = Path(arguments.get(1, "plain-loop-out")), int(arguments.get(2, 30))
    torch.manual_seed(1)
    model = load_encoder("mini-mlm", pooling="mean")
    print(
        train(
            model,
            demo_path("demo", "sentences.txt").read_text(encoding="utf-8").splitlines(),
            steps,
        )
    )
    model.save(str(out))
