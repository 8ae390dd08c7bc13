"""What a running scaler of river in front of the default costs, and what it would cost others.

    python benchmarks/scalers.py [--rows 1000]

Loss behind each scaler over that without one (mean absolute error, log loss of classes), on data sets of river whose
features are numbers. The first row of a class does not count. Then, where `RobustScaler` costs most: the same when
each scaled value is squashed to x / (1 + |x|), or held within 3, before the model sees it; and the loss of a logistic
regression of scikit-learn that has all rows, standardises them and chooses its penalty in hindsight (five folds at
random), also over that on the features as they are.
"""

from __future__ import annotations

import argparse
import itertools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from river import datasets, preprocessing
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as BatchScaler

from streamlasso.river import RAPClassifier, RAPRegressor

NUMBERS = (datasets.TrumpApproval, datasets.ChickWeights)
CLASSES = (datasets.Bananas, datasets.Phishing, datasets.ImageSegments)
SCALERS = (preprocessing.StandardScaler, preprocessing.MinMaxScaler, preprocessing.RobustScaler)
HARDEST = (datasets.Phishing, datasets.ImageSegments)
PENALTIES = (0.1, 1.0, 10.0, 100.0)
Change = Callable[[float], float]


def unchanged(value: float) -> float:
    return value


def squashed(value: float) -> float:
    return value / (1 + abs(value))


def held(value: float) -> float:
    return max(-3.0, min(3.0, value))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000)
    n_rows = parser.parse_args().rows
    for data in (*NUMBERS, *CLASSES):
        alone = loss(data, None, n_rows)
        behind = [loss(data, scaler, n_rows) / alone for scaler in SCALERS]
        print(f"{data.__name__:16s} {alone:8.3f}", *(f"{ratio:6.2f}" for ratio in behind), flush=True)
    for data in HARDEST:
        alone = loss(data, None, n_rows)
        changed = {name.__name__: loss(data, SCALERS[-1], n_rows, name) / alone for name in (squashed, held)}
        in_hindsight = hindsight(data, True, n_rows) / hindsight(data, False, n_rows)
        print(data.__name__, {**changed, "logistic regression in hindsight": in_hindsight}, flush=True)


def numeric(data: Any) -> bool:
    return data in NUMBERS


def loss(data: Any, scaler: Any, n_rows: int, change: Change = unchanged) -> float:
    """Mean loss of the default; each row is predicted, then learnt by the scaler, then by the model."""
    model, scale = RAPRegressor() if numeric(data) else RAPClassifier(), scaler and scaler()
    losses, classes = [], set()
    for x, y in itertools.islice(data(), n_rows):
        seen = scaled(scale, x, change)
        if numeric(data):
            losses.append(abs(y - model.predict_one(seen)))
        elif y in classes:
            losses.append(-math.log(max(model.predict_proba_one(seen)[y], 1e-15)))
        classes.add(y)
        if scale is not None:
            scale.learn_one(x)
        model.learn_one(scaled(scale, x, change), y)
    return float(np.mean(losses[1:]))


def scaled(scale: Any, x: dict, change: Change) -> dict:
    return x if scale is None else {name: change(value) for name, value in scale.transform_one(x).items()}


def hindsight(data: Any, is_scaled: bool, n_rows: int) -> float:
    """The lowest log loss over penalties."""
    scale, rows, labels = SCALERS[-1](), [], []
    for x, y in itertools.islice(data(), n_rows):
        rows.append(list((scale.transform_one(x) if is_scaled else x).values()))
        labels.append(y)
        scale.learn_one(x)
    X, folds = np.nan_to_num(np.array(rows, dtype=float)), StratifiedKFold(5, shuffle=True, random_state=0)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for penalty in PENALTIES:
            model = make_pipeline(BatchScaler(), LogisticRegression(C=penalty, max_iter=300))
            found.append(log_loss(labels, cross_val_predict(model, X, labels, cv=folds, method="predict_proba")))
    return min(found)


if __name__ == "__main__":
    main()
