"""Begin a masked language model with the vocabulary of all-MiniLM-L6-v2, which DiffCSE needs as its generator.

    python benchmarks/models/minilm_mlm.py START
    python scripts/make_mini_mlm.py SENTENCES --model START -o GENERATOR --steps 4000 --bf16

START is the model's word pieces, embeddings and lower half of its layers under BERT's head, whose matrix of words is
that of the embeddings; the rest of the head is random.
"""

from __future__ import annotations

import copy
import sys

import torch
from transformers import BertForMaskedLM

from opencse.encoder import load_encoder


def main(out: str) -> None:
    torch.manual_seed(0)
    model = load_encoder("minilm", device="cpu")
    encoder = model[0].auto_model
    config = copy.deepcopy(encoder.config)
    config.num_hidden_layers //= 2
    generator = BertForMaskedLM(config)
    lower = {name: tensor for name, tensor in encoder.state_dict().items() if name in generator.bert.state_dict()}
    generator.bert.load_state_dict(lower)
    generator.save_pretrained(out)
    model.tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
