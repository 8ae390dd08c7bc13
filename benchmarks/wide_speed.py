"""Time and memory of WideClassifier: per non-zero, on dicts beside river's FTRL, and over ten million rows.

python benchmarks/wide_speed.py
python benchmarks/wide_speed.py --endurance      # 10^7 rows of recurring features: some minutes
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from river import linear_model, optim
from scipy import sparse

from streamlasso import WideClassifier
from streamlasso.river import WideClassifier as NamedClassifier

#: Rows of dicts that are timed, and how often; the least time counts.
DICT_ROWS, ROUNDS = 1500, 3
#: Rows, features and non-zeros of the long stream; rows in one batch.
LONG_ROWS, LONG_FEATURES, LONG_NONZEROS, BATCH = 10_000_000, 50_000, 10, 100_000


def per_non_zero(experts: int) -> tuple[float, float]:
    """ns per non-zero and us per row, of features that are known: from rows of 20 and of 200."""
    rng = np.random.default_rng(0)
    seconds = []
    for draws in (20, 200):
        columns = np.minimum(rng.zipf(1.2, 4000 * draws), 50_000).astype(np.int32)
        starts = np.arange(0, 4000 * draws + 1, draws, dtype=np.int32)
        X = sparse.csr_array((np.ones(4000 * draws), columns, starts), shape=(4000, 50_001))
        X.sum_duplicates()
        y = rng.integers(0, 2, 4000)
        model = WideClassifier(experts).partial_fit(X, y)
        runs = []
        for _ in range(7):
            start = time.process_time()
            model.partial_fit(X, y)
            runs.append(time.process_time() - start)
        seconds.append((min(runs) / 4000, X.nnz / 4000))
    (short, few), (long, many) = seconds
    slope = (long - short) / (many - few)
    return 1e9 * slope, 1e6 * (short - slope * few)


def dict_rows(draws: int) -> list[dict[str, float]]:
    """Words by Zipf's law."""
    rng = np.random.default_rng(0)
    names = [f"word{j}" for j in range(50_000)]
    shares = 1 / np.arange(1, 50_001) ** 1.05
    words = rng.choice(50_000, size=(DICT_ROWS, draws), p=shares / shares.sum())
    return [{names[j]: 1.0 for j in row} for row in words.tolist()]


def dict_time(make: object, rows: list[dict[str, float]]) -> float:
    """us per row, predicted and learnt, once all names are known."""
    labels = (np.random.default_rng(1).random(len(rows)) < 0.5).tolist()
    model = make()
    times = []
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        for x, y in zip(rows, labels, strict=True):
            model.predict_proba_one(x)
            model.learn_one(x, y)
        times.append(time.process_time() - start)
    return 1e6 * min(times[1:]) / len(rows)


def endurance() -> None:
    """Memory and features after each million rows of features that recur."""
    rng = np.random.default_rng(0)
    model = WideClassifier()
    starts = np.arange(0, BATCH * LONG_NONZEROS + 1, LONG_NONZEROS)
    for batch in range(LONG_ROWS // BATCH):
        columns = (LONG_FEATURES * rng.random(BATCH * LONG_NONZEROS) ** 2).astype(np.int32)
        X = sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(BATCH, LONG_FEATURES))
        model.partial_fit(X, rng.random(BATCH) < 0.5, classes=[False, True])
        if (batch + 1) * BATCH % 1_000_000 == 0:
            resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{model.n_seen_:,} rows: {model.n_live_:,} features, {model.nbytes_ / model.n_live_:.0f} bytes each, "
                f"{resident:.0f} MB at most",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--endurance", action="store_true", help="ten million rows")
    if parser.parse_args().endurance:
        endurance()
        return
    for experts in (8, 16):
        slope, row = per_non_zero(experts)
        print(f"{experts} experts: {slope:.0f} ns per non-zero and {row:.1f} us per row")
    for draws in (40, 300):
        rows = dict_rows(draws)
        ours = {experts: dict_time(lambda experts=experts: NamedClassifier(experts), rows) for experts in (16, 8)}
        theirs = dict_time(lambda: linear_model.LogisticRegression(optim.FTRLProximal()), rows)
        print(
            f"dicts of {np.mean([len(x) for x in rows]):.0f} names: 16 experts {ours[16]:.1f} us, 8 {ours[8]:.1f} us, "
            f"river's FTRL {theirs:.0f} us ({theirs / ours[16]:.1f} and {theirs / ours[8]:.1f} times)"
        )


if __name__ == "__main__":
    main()
