"""One tiny random encoder per family of models, and a padded batch for them."""

from functools import partial

import torch
from transformers import AutoConfig, AutoModel

COMMON = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "pad_token_id": 1,
}
COMMON |= {"intermediate_size": 32}
RATES = {
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}  # ALBERT has none by default
MODERN = {
    "sep_token_id": 2,
    "cls_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "attention_dropout": 0.1,
}
SETTINGS = {
    "bert": COMMON,
    "roberta": COMMON,
    "electra": COMMON | {"embedding_size": 8},
    "albert": COMMON | RATES | {"embedding_size": 8},
    "distilbert": {
        "vocab_size": 60,
        "dim": 16,
        "n_layers": 2,
        "n_heads": 2,
        "hidden_dim": 32,
        "pad_token_id": 1,
    },
    "mpnet": COMMON,
    "modernbert": COMMON | MODERN | {"local_attention": 8, "global_attn_every_n_layers": 2},
}


def build(kind):
    return AutoModel.from_config(AutoConfig.for_model(kind, **SETTINGS[kind]))


FAMILIES = {kind: partial(build, kind) for kind in SETTINGS}


def padded_batch():
    torch.manual_seed(0)
    lengths = torch.tensor([11, 3, 7, 1, 11])
    mask = (torch.arange(11)[None] < lengths[:, None]).long()
    ids = torch.where(mask.bool(), torch.randint(4, 60, (5, 11)), 1)
    return ids, mask


def vectors(model, ids, mask):
    return model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]
