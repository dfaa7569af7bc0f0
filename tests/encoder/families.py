"""One tiny random encoder per family of models, and a padded batch for them."""

import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaModel,
)

COMMON = {"vocab_size": 60, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "pad_token_id": 1}
RATES = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}  # ALBERT has none by default
MODERN = {"sep_token_id": 2, "cls_token_id": 0, "bos_token_id": 0, "eos_token_id": 2, "attention_dropout": 0.1}
FAMILIES = {
    "bert": lambda: BertModel(BertConfig(**COMMON, intermediate_size=32)),
    "roberta": lambda: RobertaModel(RobertaConfig(**COMMON, intermediate_size=32)),
    "electra": lambda: ElectraModel(ElectraConfig(**COMMON, intermediate_size=32, embedding_size=8)),
    "albert": lambda: AlbertModel(AlbertConfig(**COMMON, **RATES, intermediate_size=32, embedding_size=8)),
    "distilbert": lambda: DistilBertModel(
        DistilBertConfig(vocab_size=60, dim=16, n_layers=2, n_heads=2, hidden_dim=32, pad_token_id=1)
    ),
    "mpnet": lambda: MPNetModel(MPNetConfig(**COMMON, intermediate_size=32)),
    "modernbert": lambda: ModernBertModel(
        ModernBertConfig(**COMMON, **MODERN, intermediate_size=32, local_attention=8, global_attn_every_n_layers=2)
    ),
}


def padded_batch():
    torch.manual_seed(0)
    lengths = torch.tensor([11, 3, 7, 1, 11])
    mask = (torch.arange(11)[None] < lengths[:, None]).long()
    ids = torch.where(mask.bool(), torch.randint(4, 60, (5, 11)), 1)
    return ids, mask


def vectors(model, ids, mask):
    return model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]
