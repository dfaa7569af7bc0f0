"""Begin a masked language model with the vocabulary of all-MiniLM-L6-v2, which DiffCSE needs as its generator.

    python benchmarks/models/minilm_mlm.py START [MPNET]
    python scripts/make_mini_mlm.py SENTENCES --model START -o GENERATOR --steps 4000 --bf16

START is the model's word pieces, embeddings and lower half of its layers under BERT's head, whose
matrix of words is that of the embeddings; the rest of the head is random. With MPNET, the folder of
all-mpnet-base-v2, it has that model's vocabulary: the same word pieces behind four other special
tokens.
"""

from __future__ import annotations

import copy
import sys

import torch
from transformers import AutoTokenizer, BertForMaskedLM

from opencse.debias.shipped import same_tokens
from opencse.encoder import load_encoder


def main(out: str, mpnet: str | None = None) -> None:
    torch.manual_seed(0)
    model = load_encoder("minilm", device="cpu")
    encoder = model[0].auto_model
    tokenizer = AutoTokenizer.from_pretrained(mpnet) if mpnet else model.tokenizer
    config = copy.deepcopy(encoder.config)
    config.num_hidden_layers //= 2
    config.vocab_size, config.pad_token_id = len(tokenizer), tokenizer.pad_token_id
    generator = BertForMaskedLM(config)
    lower = {
        name: tensor
        for name, tensor in encoder.state_dict().items()
        if name in generator.bert.state_dict()
    }
    words = "embeddings.word_embeddings.weight"
    lower[words] = lower[words][same_tokens(tokenizer, model.tokenizer)]
    generator.bert.load_state_dict(lower)
    generator.save_pretrained(out)
    tokenizer.save_pretrained(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
