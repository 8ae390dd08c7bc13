"""Two builds of the package on the same streams: what a change of the default's rules does to its losses.

    git worktree add ../before 66b1215 && (cd ../before && python setup.py build_ext --inplace)
    python benchmarks/rules.py --data DATA --before ../before/src [--now src] [--keep FOLDER] [--jobs 2]
    python benchmarks/rules.py --before ../before/src --kinds simulation "2 of 20" --options '{"runs": 0}'

- *as given*: the twelve development streams and the 28 of DATA/more, their first 3,000 rows (`--rows`); loss as on the
  leaderboard: clipped, after the 50th row.
- *with views*: the Gaussian ones of these with three lagged responses and with hinges, as views of the newer build; the
  older one has the features as given. A build without `Mixture(views=...)` is not shown these.
- the paper's simulation with regimes of random length, *simulation*, also *bare* (without intercept and scaling), of
  *classes* and of *counts*; coefficients that are *drifting*; *stationary* ones: loss above the floor, from row 20 on
  and from row 0 on, and in the first rows of a stream and after a change.
- F of `selected_`, and how many features enter or leave it per 1,000 rows: in the simulations, where *2 of 20* features
  matter, and on *bike_sharing*.
- nothing to learn: loss over the running mean's.
- *others*, the streams of others.py, by `--kinds others` only.

Differences are paired, with one standard error over blocks of rows, or over draws. Each build runs in processes of its
own. `--keep` keeps the results of each, so that a build that has not changed is not run again. `--options` are
arguments of `Mixture` for the newer one. The last columns have what issue 26 asks for.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from builds import results
from common import report
from rules_streams import DRAWS, KINDS, ROWS, USUAL, all_streams
from streamlasso.bench.leaderboard import running_mean_loss
from streamlasso.bench.losses import block_losses, half_deviance
from streamlasso.bench.task import Task
from streamlasso.simulate import f_score

#: Rows of a simulation that do not count, where that is not said otherwise; and of a regime, for what moves within.
BURN_IN, SETTLED = 20, 50
#: A stream that has lost more than this share is named.
NAMED = 1.01
REAL, NOTHING = ("as given", "with views", "others"), ("rare events", "normal noise", "heavy tails")
FAMILIES = ("gaussian", "binomial", "poisson")
FROM_20, FROM_0 = "above the floor, from row 20 on", "above the floor, from row 0 on"
ALL, WORST, F_ALL, F_SPARSE = "geometric mean of all", "worst", "F of selected_", "F of selected_, sparse regimes"
MOVES = "moves of selected_ per 1,000 rows"
#: What the newer build must reach, and what would be good: of the ratio ("x") or of the value itself.
GOALS = {
    ("as given", ALL): ("x <=", 0.97, 0.955),
    ("as given", WORST): ("x <=", 1.02, 1.01),
    ("with views", ALL): ("x <=", 0.945, 0.92),
    ("simulation", FROM_20): ("<=", 0.72, 0.66),
    ("simulation", FROM_0): ("<=", 0.86, 0.78),
    ("simulation, bare", FROM_20): ("<=", 0.65, 0.58),
    ("simulation, bare", FROM_0): ("<=", 0.77, 0.68),
    ("simulation", "rows 0 to 4"): ("<=", 5.3, 4.9),
    ("simulation", "rows 5 to 9"): ("<=", 3.8, 3.4),
    ("simulation", "rows 0 to 4 after a change"): ("<=", 6.6, None),
    ("simulation", "rows 5 to 9 after a change"): ("<=", 3.5, None),
    ("simulation, classes", FROM_20): ("x <=", 1.0, 0.95),
    ("simulation, counts", FROM_20): ("x <=", 1.0, 0.95),
    ("simulation", F_ALL): (">=", 0.65, 0.67),
    ("simulation", F_SPARSE): (">=", 0.56, 0.60),
    ("2 of 20", F_ALL): (">=", 0.78, 0.82),
    ("simulation", MOVES): ("<=", 10.0, 5.0),
    ("bike_sharing", MOVES): ("<=", 25.0, 10.0),
}

Line = dict[str, str]


# --- what is said of one stream ---------------------------------------------------------------------------------------


def blocks(stream: dict, result: dict) -> np.ndarray:
    """The loss of each block of rows of a real stream."""
    return block_losses(stream["family"], stream["y"], result["means"])


def measures(stream: dict, result: dict) -> dict[str, float]:
    """All that is said of a simulated stream."""
    found: dict[str, float] = {}
    if "floor" in stream:
        loss = half_deviance(stream["family"], stream["y"], result["means"])
        excess = loss - stream["floor"]
        found |= {FROM_20: excess[BURN_IN:].mean(), FROM_0: excess.mean()}
        if stream["kind"] == "simulation":
            found |= first_rows(loss, stream["regime"])
    if "chosen" in result:
        found |= selection(stream, result["chosen"])
    return found


def first_rows(loss: np.ndarray, regime: np.ndarray) -> dict[str, float]:
    """Half squared error when a stream begins, and after its changes."""
    found = {}
    changes = np.flatnonzero(np.diff(regime)) + 1
    for a in (0, 5):
        found[f"rows {a} to {a + 4}"] = loss[a : a + 5].mean()
        found[f"rows {a} to {a + 4} after a change"] = np.mean([loss[c + a : c + a + 5].mean() for c in changes])
    return found


def selection(stream: dict, chosen: np.ndarray) -> dict[str, float]:
    found = {}
    regime = stream.get("regime", np.zeros(len(chosen)))
    if "beta" in stream:
        f = f_score(chosen, stream["beta"])[BURN_IN:]
        sparse = (stream["beta"] != 0).mean(axis=1)[BURN_IN:] < 0.5
        found[F_ALL] = f.mean()
        if not sparse.all():
            found[F_SPARSE] = f[sparse].mean()
    age = np.arange(len(regime)) - np.searchsorted(regime, regime)
    settled = age[1:] > SETTLED
    moved = (chosen[1:] != chosen[:-1]).sum(axis=1)
    found[MOVES] = 1000 * moved[settled].mean()
    return found


# --- lines of the table -----------------------------------------------------------------------------------------------


def by_kind(streams: list[dict], before: list[dict], now: list[dict]) -> dict[str, list[tuple]]:
    """(stream, before, now) of each stream."""
    kinds: dict[str, list[tuple]] = {}
    for stream, old, new in zip(streams, before, now, strict=True):
        kinds.setdefault(stream["kind"], []).append((stream, old, new))
    return kinds


def table(streams: list[dict], before: list[dict], now: list[dict]) -> Iterator[Line]:
    for kind, triples in by_kind(streams, before, now).items():
        if not all(new for _, _, new in triples):
            yield line(kind, "skipped: the newer build knows no views")
            continue
        if kind in REAL:
            yield from real_lines(kind, triples)
        elif kind in NOTHING:
            yield from null_lines(kind, triples)
        else:
            yield from simulated_lines(kind, triples)
        a, b = (sum(triple[k]["seconds"] for triple in triples) for k in (2, 1))
        yield line(kind, "CPU seconds", f"{b:.3g}", f"{a:.3g}", f"{a / b:.2f}")


def real_lines(kind: str, triples: list[tuple]) -> Iterator[Line]:
    logs, errors = log_ratios(triples)
    for (stream, old, new), log, error in zip(triples, logs, errors, strict=True):
        b, a = blocks(stream, old).mean(), blocks(stream, new).mean()
        yield line(kind, stream["name"], f"{b:.5g}", f"{a:.5g}", said_of(log, error))
    families = np.array([stream["family"] for stream, _, _ in triples])
    for what, chosen in [(ALL, families != ""), *((f"geometric mean, {name}", families == name) for name in FAMILIES)]:
        if chosen.any():
            log, error = mean_log(logs[chosen], errors[chosen])
            yield line(kind, what, f"{chosen.sum()} streams", "", said_of(log, error), np.exp(log))
    for k, i in enumerate(np.argsort(-logs)):
        if k == 0 or logs[i] > np.log(NAMED):
            what = WORST if k == 0 else f"above {NAMED}"
            yield line(kind, what, triples[i][0]["name"], "", said_of(logs[i], errors[i]), np.exp(logs[i]))


def log_ratios(triples: list[tuple]) -> tuple[np.ndarray, np.ndarray]:
    """Of the losses of each stream, with standard errors over its blocks."""
    pairs = [ratio(blocks(stream, new), blocks(stream, old)) for stream, old, new in triples]
    shares, errors = np.array(pairs).T
    return np.log(shares), errors / shares


def mean_log(logs: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Over streams that are given: they are not seen as drawn from others."""
    return float(logs.mean()), float(np.sqrt(np.sum(errors**2)) / len(logs))


def simulated_lines(kind: str, triples: list[tuple]) -> Iterator[Line]:
    old, new = ([measures(triple[0], triple[k]) for triple in triples] for k in (1, 2))
    for what in old[0]:
        b, a = (np.array([each[what] for each in side]) for side in (old, new))
        share, error = ratio(a, b)
        yield line(kind, what, with_error(b), with_error(a), said(share, error), share, a.mean())


def null_lines(kind: str, triples: list[tuple]) -> Iterator[Line]:
    """The mean over draws (a sum would be that of the largest outlier), and the worst."""
    b, a = over_running_mean(triples)
    share, error = ratio(a, b)
    yield line(kind, "over the running mean", with_error(b), with_error(a), said(share, error))
    yield line(kind, "worst draw", f"{b.max():.4f}", f"{a.max():.4f}")


def over_running_mean(triples: list[tuple]) -> tuple[np.ndarray, np.ndarray]:
    """The loss of each draw, before and now, over that of the running mean."""
    baseline = [running_mean_loss(Task("", s["family"], s["X"], s["y"], [])) for s, _, _ in triples]
    b, a = (np.array([blocks(triple[0], triple[k]).mean() for triple in triples]) for k in (1, 2))
    return b / baseline, a / baseline


def ratio(now: np.ndarray, before: np.ndarray) -> tuple[float, float]:
    """Of the means, with the standard error of the difference."""
    share = now.mean() / before.mean()
    if len(now) < 2:
        return share, np.nan
    return share, np.std(now - share * before, ddof=1) / np.sqrt(len(now)) / abs(before.mean())


def with_error(values: np.ndarray) -> str:
    if len(values) < 2:
        return f"{values.mean():.5g}"
    return f"{values.mean():.5g} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2g}"


def said(share: float, error: float) -> str:
    return f"{share:.4f}" if np.isnan(error) else f"{share:.4f} ± {error:.4f}"


def said_of(log: float, error: float) -> str:
    return said(np.exp(log), error * np.exp(log))


def line(kind: str, what: str, before="", now="", change="", share: float = np.nan, value: float = np.nan) -> Line:
    """With the goal of its share or value, if there is one."""
    found = {"kind": kind, "what": what, "before": before, "now": now, "now / before": change}
    if (kind, what) not in GOALS:
        return {**found, "must (aim)": "", "met": ""}
    sign, must, aim = GOALS[kind, what]
    reached = share if sign.startswith("x") else value
    met = [goal is not None and (reached <= goal if sign.endswith("<=") else reached >= goal) for goal in (must, aim)]
    goals = f"{sign} {must:g}" + ("" if aim is None else f" ({aim:g})")
    return {**found, "must (aim)": goals, "met": "aim" if met[1] else "yes" if met[0] else "NO"}


def options_of(description: str) -> argparse.ArgumentParser:
    """What `ablate.py` is told as well."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the directory with the streams' folders; without it, no real ones")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of the Gaussian simulations; half as many of others")
    parser.add_argument("--rows", type=int, default=ROWS, help="the first rows of each real stream")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=USUAL, help="some of the kinds of streams alone")
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the folder from which the older build is imported")
    parser.add_argument("--now", type=Path, default=Path(__file__).parents[1] / "src")
    parser.add_argument("--options", type=json.loads, default={}, help="arguments of Mixture, as JSON")
    parser.add_argument("--keep", type=Path, help="a folder for the results of both builds, which are not run again")
    given = parser.parse_args()
    streams = all_streams(given.kinds, given.data, given.draws, given.rows)
    shared = {"jobs": given.jobs, "keep": given.keep}
    before = results(given.before, [plain(stream) for stream in streams], options={}, **shared)
    now = results(given.now, streams, options=given.options, **shared)
    report("rules", list(table(streams, before, now)))


def plain(stream: dict) -> dict:
    """The stream with the features as given."""
    if "views" not in stream:
        return stream
    p = min(min(columns) for columns in stream["views"].values())
    rest = {name: value for name, value in stream.items() if name != "views"}
    return dict(rest, X=np.ascontiguousarray(stream["X"][:, :p]))


if __name__ == "__main__":
    main()
