"""How well a masked language model guesses held-out text, beside word counts on the same masked tokens.

    python benchmarks/pretraining/masked_lm.py CORPUS... [--model mini-mlm]
    python benchmarks/pretraining/masked_lm.py --examples [--model mini-mlm]

CORPUS is what the model was trained on: the sentences that its training held out are found by the hash of their text,
the word counts come from all others. The first 2,000 held-out sentences chose the step whose weights were kept; scored
are the rest. 15 % of the tokens, whole words at a time, are replaced by `[MASK]`, always the same ones. The model
guesses in fp32. Word counts see what the model sees, so that a masked neighbour tells them nothing; in the lines `told`
they are told the true neighbours instead, the other pieces of the same word among them. The weights of `both
neighbours` are fitted on the tokens that are scored.
"""

from __future__ import annotations

import argparse
import json

from opencse.pretraining.settings import Masking

MASKING = Masking(rate=0.15, whole_words=True, random=0.0, keep=0.0)

SENTENCES = (
    "The capital of France is [MASK].",
    "She was born in 1950 in New [MASK].",
    "He plays as a midfielder for the national football [MASK].",
    "The river flows [MASK] into the sea.",
    "In the winter the lake is covered with [MASK].",
    "The band released their first [MASK] in 1994.",
    "My brother is older [MASK] me.",
    "Water freezes at zero [MASK].",
    "The dog barked at the [MASK].",
    "If you do not eat, you will be [MASK].",
)


def scores(model_name: str, corpora: list[str], share: float, limit: int | None, progress: bool = True) -> dict:
    from opencse.encoder import special_frame
    from opencse.pretraining.heldout import NgramCounts, count_scores, mask_sentences, model_scores
    from opencse.pretraining.model import load_model, load_tokenizer
    from opencse.pretraining.pretrain import DEV_SENTENCES
    from opencse.pretraining.store import open_sentence_ids

    model, _ = load_model(model_name)
    tokenizer = load_tokenizer(model_name)
    longest = min(256, tokenizer.model_max_length)
    train, held_out, _ = open_sentence_ids(corpora, tokenizer, longest, share, progress=progress)
    texts = [held_out[i] for i in range(DEV_SENTENCES, len(held_out))][:limit]
    guesses = mask_sentences(texts, tokenizer, MASKING, max_length=longest)
    frame = special_frame(tokenizer)
    counts = NgramCounts(train, (frame.before, frame.after), len(tokenizer))
    told = count_scores(counts, guesses, True, progress)
    found = count_scores(counts, guesses, False, progress)
    found |= {f"{name}, told": told[name] for name in ("bigram", "both neighbours")}
    found[model_name] = model_scores(model.eval(), guesses, progress)
    tokens = sum(len(t) for t in texts)
    return {"sentences": len(texts), "tokens": tokens, "scores": {n: s.to_dict() for n, s in found.items()}}


def examples(model_name: str) -> list[tuple[str, list[tuple[str, float]]]]:
    import torch

    from opencse.pretraining.model import load_model, load_tokenizer

    model, tokenizer = load_model(model_name)[0].eval(), load_tokenizer(model_name)
    rows = []
    for sentence in SENTENCES:
        inputs = tokenizer(sentence.replace("[MASK]", tokenizer.mask_token), return_tensors="pt")
        place = (inputs["input_ids"][0] == tokenizer.mask_token_id).nonzero().item()
        with torch.inference_mode():
            best = model(**inputs).logits[0, place].softmax(-1).topk(5)
        words = tokenizer.convert_ids_to_tokens(best.indices.tolist())
        rows.append((sentence, list(zip(words, best.values.tolist(), strict=True))))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="*")
    parser.add_argument("--model", default="mini-mlm")
    parser.add_argument("--held-out", type=float, default=0.005, help="share that training held out")
    parser.add_argument("--limit", type=int, help="sentences scored at most")
    parser.add_argument("--examples", action="store_true", help="fill the gaps of ten sentences")
    parser.add_argument("--json", help="also write the scores to this file")
    arguments = parser.parse_args()
    if not arguments.corpus and not arguments.examples:
        parser.error("pass a corpus, or --examples")
    if arguments.examples:
        print("| sentence | the five most probable words |")
        print("|---|---|")
        for sentence, words in examples(arguments.model):
            print(f"| {sentence} | {', '.join(f'{word} {100 * p:.0f} %' for word, p in words)} |")
    if arguments.corpus:
        found = scores(arguments.model, arguments.corpus, arguments.held_out, arguments.limit)
        some = next(iter(found["scores"].values()))
        print(f"{some['tokens']:,} masked tokens in {found['sentences']:,} held-out sentences")
        print("| | perplexity | top-1 | top-5 |")
        print("|---|---|---|---|")
        for name, row in found["scores"].items():
            print(f"| {name} | {row['perplexity']:.1f} | {row['top1']:.1f} % | {row['top5']:.1f} % |")
        if arguments.json:
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
