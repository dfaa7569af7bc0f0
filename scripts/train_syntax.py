"""Train the bundled syntax pipeline on the Universal Dependencies English Web Treebank.

    python scripts/train_syntax.py --data FOLDER --out FOLDER [--set section.key=value ...]
    python scripts/train_syntax.py --data FOLDER --evaluate FOLDER

`--data` holds `en_ewt-ud-{train,dev,test}.conllu[.gz]`. The pipeline is spaCy's small convolutional
one: hash embeddings, a shared window encoder, and a tagger (XPOS), a morphologizer (UPOS only), a
dependency parser and an edit-tree lemmatizer on top. Sentences are shown as raw text cut by spaCy's
own English tokenizer, since that is what the pipeline meets in use; a share of them is lower-cased
or loses its final punctuation, since training text often has.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from spacy.training.converters import conllu_to_docs
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config_from_str, registry

CONFIG = """
[paths]
data = ""

[system]
seed = 0

[nlp]
lang = "en"
pipeline = ["tok2vec", "tagger", "morphologizer", "parser", "trainable_lemmatizer"]
batch_size = 256

[components]

[components.tok2vec]
factory = "tok2vec"

[components.tok2vec.model]
@architectures = "spacy.Tok2Vec.v2"

[components.tok2vec.model.embed]
@architectures = "spacy.MultiHashEmbed.v2"
width = ${components.tok2vec.model.encode.width}
attrs = ["NORM", "PREFIX", "SUFFIX", "SHAPE"]
rows = [5000, 750, 1500, 750]
include_static_vectors = false

[components.tok2vec.model.encode]
@architectures = "spacy.MaxoutWindowEncoder.v2"
width = 128
depth = 4
window_size = 1
maxout_pieces = 3

[components.tagger]
factory = "tagger"

[components.tagger.model]
@architectures = "spacy.Tagger.v2"

[components.tagger.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = ${components.tok2vec.model.encode.width}

[components.morphologizer]
factory = "morphologizer"

[components.morphologizer.model]
@architectures = "spacy.Tagger.v2"

[components.morphologizer.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = ${components.tok2vec.model.encode.width}

[components.parser]
factory = "parser"
min_action_freq = 20

[components.parser.model]
@architectures = "spacy.TransitionBasedParser.v2"
state_type = "parser"
extra_state_tokens = false
hidden_width = 64
maxout_pieces = 2
use_upper = true

[components.parser.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = ${components.tok2vec.model.encode.width}

[components.trainable_lemmatizer]
factory = "trainable_lemmatizer"
backoff = "orth"
min_tree_freq = 3
top_k = 3

[components.trainable_lemmatizer.model]
@architectures = "spacy.Tagger.v2"

[components.trainable_lemmatizer.model.tok2vec]
@architectures = "spacy.Tok2VecListener.v1"
width = ${components.tok2vec.model.encode.width}

[pretraining]

[initialize]

[corpora]

[corpora.train]
@readers = "opencse.ewt.v1"
path = ${paths.data}
split = "train"
lower = 0.15
bare = 0.1
joined = 0.1

[corpora.dev]
@readers = "opencse.ewt.v1"
path = ${paths.data}
split = "dev"

[training]
gpu_allocator = null
train_corpus = "corpora.train"
dev_corpus = "corpora.dev"
seed = ${system.seed}
dropout = 0.15
accumulate_gradient = 1
patience = 0
max_epochs = 0
max_steps = 4500
eval_frequency = 500

[training.batcher]
@batchers = "spacy.batch_by_words.v1"
size = 1500
tolerance = 0.2
discard_oversize = false

[training.optimizer]
@optimizers = "Adam.v1"
beta1 = 0.9
beta2 = 0.999
L2_is_weight_decay = true
L2 = 0.01
grad_clip = 1.0
use_averages = true

[training.optimizer.learn_rate]
@schedules = "warmup_linear.v1"
warmup_steps = 250
total_steps = 4700
initial_rate = 0.0015

[training.score_weights]
tag_acc = 0.3
pos_acc = 0.1
dep_uas = 0.1
dep_las = 0.4
lemma_acc = 0.1
"""


def read_sentences(folder: str, split: str) -> list[Doc]:
    """Return one gold `Doc` per sentence: tags, heads, relations without subtypes that spaCy cannot use, lemmas."""
    for name in (f"en_ewt-ud-{split}.conllu.gz", f"en_ewt-ud-{split}.conllu"):
        path = Path(folder) / name
        if path.exists():
            opener = gzip.open if name.endswith(".gz") else open
            with opener(path, "rt", encoding="utf-8") as file:
                text = file.read()
            docs = list(conllu_to_docs(text, n_sents=1, no_print=True))
            for doc in docs:
                for token in doc:
                    token.set_morph(
                        ""
                    )  # only the coarse tag is learned: 17 labels in place of several hundred
            return docs
    sys.exit(
        f"{folder} has no en_ewt-ud-{split}.conllu[.gz]; --data names the folder that holds the treebank"
    )


def without_final_punctuation(doc: Doc) -> Doc:
    """Drop the last token where it is punctuation that nothing depends on."""
    if (
        len(doc) < 3
        or doc[-1].pos_ != "PUNCT"
        or any(token.head.i == len(doc) - 1 for token in doc[:-1])
    ):
        return doc
    return rebuild(list(doc[:-1]), doc)


def rebuild(tokens: list, doc: Doc, lower: bool = False) -> Doc:
    """Make a new gold `Doc` from the first tokens of another."""
    return Doc(
        doc.vocab,
        words=[token.text.lower() if lower else token.text for token in tokens],
        spaces=[bool(token.whitespace_) for token in tokens],
        tags=[token.tag_ for token in tokens],
        pos=[token.pos_ for token in tokens],
        heads=[token.head.i for token in tokens],
        deps=[token.dep_ for token in tokens],
        lemmas=[token.lemma_ for token in tokens],
    )


@registry.readers("opencse.ewt.v1")
def reader(
    path: str, split: str, lower: float = 0.0, bare: float = 0.0, joined: float = 0.0
) -> object:
    """Yield training examples; `lower`, `bare`, `joined`: shares lower-cased, without final mark, or two in a row."""
    gold = read_sentences(path, split)
    chance = random.Random(0)

    def examples(nlp: Language) -> Iterator[Example]:
        order = list(range(len(gold)))
        if split == "train":
            chance.shuffle(order)
        index = 0
        while index < len(order):
            doc = gold[order[index]]
            if chance.random() < bare:
                doc = without_final_punctuation(doc)
            if chance.random() < lower:
                doc = rebuild(list(doc), doc, lower=True)
            if chance.random() < joined and index + 1 < len(order):
                index += 1
                doc = Doc.from_docs([doc, gold[order[index]]], ensure_whitespace=True)
            index += 1
            yield Example(nlp.make_doc(doc.text), doc)

    return examples


def evaluate(nlp: Language, data: str, split: str = "test") -> dict[str, float]:
    """Score on raw text (spaCy's tokenizer) and on gold tokens; accuracies in percent, speed in sentences a second."""
    gold = read_sentences(data, split)
    texts = [doc.text for doc in gold]
    begin = time.perf_counter()
    docs = list(nlp.pipe(texts))
    seconds = time.perf_counter() - begin
    raw = nlp.evaluate([Example(nlp.make_doc(doc.text), doc) for doc in gold])
    blank = [
        Doc(nlp.vocab, words=[t.text for t in doc], spaces=[bool(t.whitespace_) for t in doc])
        for doc in gold
    ]
    cut = nlp.evaluate(
        [Example(predicted, doc) for predicted, doc in zip(blank, gold, strict=True)]
    )
    names = {
        "tag": "tag_acc",
        "upos": "pos_acc",
        "lemma": "lemma_acc",
        "uas": "dep_uas",
        "las": "dep_las",
    }
    scores = {f"{name} (raw text)": 100 * raw[key] for name, key in names.items()}
    scores |= {f"{name} (gold tokens)": 100 * cut[key] for name, key in names.items()}
    right = sum(sum(1 for t in doc if t.head.i == t.i) == 1 for doc in docs)
    scores |= {"one root": 100 * right / len(docs), "sentences/s": len(texts) / seconds}
    return {name: round(value, 2) for name, value in scores.items()}


def publish(trained: str, folder: Path, scores: dict[str, float]) -> None:
    """Save a trained pipeline without what only training needs, and with its provenance."""
    nlp = spacy.load(trained)
    config = nlp.config
    config["paths"] = dict.fromkeys(("train", "dev", "vectors", "init_tok2vec"))
    config["corpora"] = {}
    nlp.config = config
    nlp.meta = {
        "lang": "en",
        "name": "opencse_syntax",
        "version": "1.0.0",
        "description": "Tagger, parser and lemmatizer for English, trained by scripts/train_syntax.py",
        "license": "CC BY-SA 4.0",
        "sources": [
            "Universal Dependencies English-EWT (https://github.com/UniversalDependencies/UD_English-EWT)"
        ],
        "performance": {name: score for name, score in scores.items() if name != "sentences/s"},
    }
    nlp.to_disk(folder)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True)
    parser.add_argument("--out")
    parser.add_argument("--evaluate", help="score this pipeline on the test set, train nothing")
    parser.add_argument(
        "--set", nargs="*", default=[], help="section.key=value: override the configuration"
    )
    args = parser.parse_args()
    if args.evaluate:
        print(json.dumps(evaluate(spacy.load(args.evaluate), args.data), indent=1))
        return
    overrides = {key: json.loads(value) for key, value in (item.split("=", 1) for item in args.set)}
    config = load_config_from_str(
        CONFIG, overrides={"paths.data": args.data, **overrides}, interpolate=False
    )
    config = spacy.util.load_model_from_config(
        config, auto_fill=True
    ).config  # the defaults of every section
    nlp = init_nlp(config)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    _, last = train(nlp, out)  # averaged weights of the last step
    scores = evaluate(spacy.load(last), args.data)
    publish(str(last), out / "pipeline", scores)
    print(json.dumps(scores, indent=1))


if __name__ == "__main__":
    main()
