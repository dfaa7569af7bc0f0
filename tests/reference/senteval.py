"""SentEval's transfer protocol written out, one classifier and one batch after another (Conneau and Kiela 2018).

Slow on purpose. It follows the published evaluation: logistic regression in PyTorch, Adam, batches
of 64, a look at the development accuracy every 4 passes, an end after 6 looks without improvement
or 200 passes; L2 penalties 1e-5 to 1e-2 as weight decay; stratified folds from seed 1111, every
classifier seeded alike.
"""

from __future__ import annotations

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from torch import nn

PENALTIES = [1e-5, 1e-4, 1e-3, 1e-2]
SEED = 1111


class Classifier:
    def __init__(self, width, classes, penalty, *, batch=64, passes=4, patience=5, limit=200):
        np.random.seed(SEED)
        torch.manual_seed(SEED)
        self.layer = nn.Linear(width, classes)
        self.adam = torch.optim.Adam(self.layer.parameters(), weight_decay=penalty)
        self.batch, self.passes, self.patience, self.limit = batch, passes, patience, limit

    def fit(self, x, y, dev=None, share=None):
        if dev is None:
            order = np.random.permutation(len(x))
            cut = int(share * len(x))
            dev = x[order[:cut]], y[order[:cut]]
            x, y = x[order[cut:]], y[order[cut:]]
        x, y = torch.FloatTensor(x), torch.LongTensor(y)
        best, kept, misses, done, stop = -1.0, None, 0, 0, False
        while not stop and done <= self.limit:
            for _ in range(self.passes):
                order = np.random.permutation(len(x))
                for start in range(0, len(x), self.batch):
                    rows = torch.LongTensor(order[start : start + self.batch])
                    loss = nn.functional.cross_entropy(
                        self.layer(x.index_select(0, rows)), y.index_select(0, rows)
                    )
                    self.adam.zero_grad()
                    loss.backward()
                    self.adam.step()
            done += self.passes
            accuracy = self.score(*dev)
            if accuracy > best:
                best, kept = accuracy, {k: v.clone() for k, v in self.layer.state_dict().items()}
            else:
                stop = misses >= self.patience
                misses += 1
        self.layer.load_state_dict(kept)
        return self

    def predict(self, x):
        with torch.no_grad():
            return self.layer(torch.FloatTensor(x)).argmax(dim=1).numpy()

    def score(self, x, y):
        return float((self.predict(x) == y).mean())


def folds(x, y, count):
    return StratifiedKFold(n_splits=count, shuffle=True, random_state=SEED).split(x, y)


def nested(x, y, classes, count=10, only=None, penalties=PENALTIES, **training):
    """MR, CR, SUBJ, MPQA: returns the test accuracy (in percent) of each outer fold; of the first `only`, if given."""
    results = []
    for train, test in list(folds(x, y, count))[:only]:
        scores = []
        for penalty in penalties:
            inner = [
                Classifier(x.shape[1], classes, penalty, **training)
                .fit(x[train][a], y[train][a], dev=(x[train][b], y[train][b]))
                .score(x[train][b], y[train][b])
                for a, b in folds(x[train], y[train], count)
            ]
            scores.append(round(100 * np.mean(inner), 2))
        chosen = penalties[int(np.argmax(scores))]
        final = Classifier(x.shape[1], classes, chosen, **training).fit(
            x[train], y[train], share=0.05
        )
        results.append(round(100 * final.score(x[test], y[test]), 2))
    return results


def cross_validated(x, y, x_test, classes, count=10, penalties=PENALTIES, **training):
    """TREC and MRPC: returns the predictions for the test rows and the chosen penalty."""
    scores = []
    for penalty in penalties:
        each = [
            Classifier(x.shape[1], classes, penalty, **training)
            .fit(x[a], y[a], dev=(x[b], y[b]))
            .score(x[b], y[b])
            for a, b in folds(x, y, count)
        ]
        scores.append(round(100 * np.mean(each), 2))
    chosen = penalties[int(np.argmax(scores))]
    return Classifier(x.shape[1], classes, chosen, **training).fit(x, y, share=0.05).predict(
        x_test
    ), chosen


def split(x, y, dev, x_test, classes, penalties=PENALTIES, **training):
    """SST2: returns the predictions for the test rows and the chosen penalty."""
    scores = [
        round(
            100
            * Classifier(x.shape[1], classes, penalty, **training).fit(x, y, dev=dev).score(*dev),
            2,
        )
        for penalty in penalties
    ]
    chosen = penalties[int(np.argmax(scores))]
    return Classifier(x.shape[1], classes, chosen, **training).fit(x, y, dev=dev).predict(
        x_test
    ), chosen
