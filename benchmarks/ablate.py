"""Ablation: the default without one of its mechanisms after the other, on the streams of rules.py.

    python benchmarks/ablate.py --data DATA --keep FOLDER [--only "the last residuals"] [--kinds "as given" drifting]

A mechanism is turned off by other text in a source file, or by an argument of `Mixture`. The tree is copied, changed,
and built where only the changed modules are compiled; then both builds run in processes of their own. `--keep` keeps
their results, so that an interrupted run goes on.

All numbers are without / with, so a loss above 1 says that the mechanism helps; paired, with one standard error over
blocks of rows or over draws. A mechanism *wins* (or loses) at a place where that is above 1 (below) by two standard
errors and is not tiny. The places: the geometric mean of the real streams of each family, each simulation, nothing to
learn, F of `selected_` and how often it moves; and every single real stream, by three standard errors, since there are
forty. It *earns its place* if it wins somewhere and loses nowhere.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from builds import fingerprint, results, results_kept
from common import report
from rules import (
    ALL,
    F_ALL,
    F_SPARSE,
    FAMILIES,
    FROM_0,
    FROM_20,
    MOVES,
    NOTHING,
    REAL,
    by_kind,
    log_ratios,
    mean_log,
    measures,
    options_of,
    over_running_mean,
    ratio,
    said,
)
from rules_streams import all_streams


class Mechanism(NamedTuple):
    """What is put in place of what, to turn it off.

    swaps : (file under src/streamlasso, its text, the other text); the text must be there exactly once
    options : arguments of `Mixture`
    """

    name: str
    swaps: tuple[tuple[str, str, str], ...] = ()
    options: dict = {}  # noqa: RUF012


def constant(name: str, file: str, old: str, new: str, kind: str = "double") -> Mechanism:
    """One constant with another value; `old` and `new` are its name and value."""
    constant, was = old.split(" = ")
    declared = f"{constant} = cython.declare(cython.{kind}, {{}})"
    return Mechanism(name, ((file, declared.format(was), declared.format(new)),))


RIDGE, STEADY, BASE = (
    "core/mixture/groups/ridge.py",
    "core/mixture/groups/steady.py",
    "core/mixture/groups/base.py",
)
MECHANISMS = [
    Mechanism("the last residuals", options={"carry": False}),
    Mechanism(
        "calibration",
        (("core/mixture/mixture.py", "self.calibrates = self.carries and", "self.calibrates = False and"),),
    ),
    Mechanism("change points", options={"runs": 0}),
    constant("change points: a prior for exact streams", RIDGE, "EXACT_SIGNAL = 9e5", "9.0"),
    Mechanism(
        "change points: a prior renewed in the first rows",
        (("core/mixture/groups/restarting.py", "n_seen <= RENEWED and", "False and"),),
    ),
    Mechanism("change points: 8 of them, not 16", options={"runs": 16}),
    Mechanism("a ridge that drifts", (("core/mixture/groups/drifting.py", "if parts.restarts and", "if False and"),)),
    Mechanism("the longest memory as a group of its own", ((STEADY, "if len(parts.memories) > 1:", "if False:"),)),
    Mechanism("five penalties, not four", options={"powers": [0.0, 0.4, 0.8, 1.2]}),
    Mechanism("four memories, not three", options={"factors": [0.97, 0.995]}),
    Mechanism("the group of nothing", (("core/mixture/groups/nothing.py", "if parts.restarts and", "if False and"),)),
    Mechanism(
        "rare classes doubt longer",
        (
            (
                "core/mixture/mixture.py",
                "LEAST_INFORMATION = cython.declare(cython.double, 1e-3)",
                "LEAST_INFORMATION = cython.declare(cython.double, 1.0)",
            ),
        ),
    ),
    Mechanism(
        "bounds of features and responses",
        (
            (
                "core/mixture/bounds.py",
                "WIDEN = cython.declare(cython.double, 0.5)",
                "WIDEN = cython.declare(cython.double, 1e3)",
            ),
        ),
    ),
    constant("losses half linearised: not the experts' own", BASE, "OWN = 0.5", "1.0"),
    Mechanism(
        "the first rows' losses are forgotten",
        (
            (
                "core/mixture/dispersion.py",
                "YOUNG = cython.declare(cython.double, 2.0 / 3.0)",
                "YOUNG = cython.declare(cython.double, 1e-9)",
            ),
        ),
    ),
    constant("solutions that wait", STEADY, "MATTERS = 0.05", "0.0"),
]
#: What a tree is built from.
NEEDED = ("src", "build", "setup.py", "pyproject.toml", "README.md", "LICENSE")
#: A win or a loss is at least so large: of a loss, of F, of the number of moves, of the loss on a single stream.
LEAST, LEAST_F, LEAST_MOVES, LEAST_STREAM = 0.001, 0.005, 0.1, 0.01


# --- trees ------------------------------------------------------------------------------------------------------------


def copied(tree: Path, to: Path) -> Path:
    """With the times of its files, by which a build knows what has changed."""
    to.mkdir()
    for name in NEEDED:
        if (tree / name).is_dir():
            shutil.copytree(tree / name, to / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif (tree / name).exists():
            shutil.copy2(tree / name, to / name)
    return to


def swap(tree: Path, mechanism: Mechanism) -> None:
    for name, old, new in mechanism.swaps:
        path = tree / "src" / "streamlasso" / name
        check_swap(mechanism.name, path, old)
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def check_swap(name: str, path: Path, old: str) -> None:
    n = path.read_text(encoding="utf-8").count(old) if path.exists() else 0
    if n != 1:
        raise SystemExit(f"{name}: {old!r} is {n} times in {path.name}, not once")


def build(tree: Path) -> None:
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tree, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{tree} cannot be built:\n{done.stdout[-2000:]}{done.stderr[-4000:]}")


# --- results ----------------------------------------------------------------------------------------------------------


def without(mechanism: Mechanism, tree: Path, streams: list[dict], jobs: int, keep: Path) -> list[dict]:
    """The results of the tree without it; what has been built is known by what it was built from."""
    if not mechanism.swaps:
        return results(tree / "src", streams, options=mechanism.options, jobs=jobs, keep=keep)
    made_from = repr((fingerprint(tree / "src"), mechanism.swaps)).encode()
    note = keep / f"built-{hashlib.sha256(made_from).hexdigest()[:32]}.txt"
    if note.exists():
        kept = results_kept(note.read_text(), streams, options=mechanism.options, keep=keep)
        if kept is not None:
            return kept
    with tempfile.TemporaryDirectory() as folder:
        changed = copied(tree, Path(folder) / "tree")
        swap(changed, mechanism)
        build(changed)
        note.write_text(fingerprint(changed / "src"))
        return results(changed / "src", streams, options=mechanism.options, jobs=jobs, keep=keep)


# --- what they say ----------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Where a mechanism may win: a number without it / with it.

    least : what is less is nothing
    higher : whether more is better, as of F
    errors : standard errors that it takes
    """

    name: str
    share: float
    error: float
    least: float = LEAST
    higher: bool = False
    errors: float = 2.0

    @property
    def won(self) -> int:
        """1 where the mechanism helps, -1 where it does harm; 0 also where no error is known."""
        change = self.share - 1
        if np.isnan(self.error) or abs(change) <= max(self.least, self.errors * self.error):
            return 0
        return 1 if (change > 0) != self.higher else -1


def places(kinds: dict[str, list[tuple]]) -> Iterator[Place]:
    """All but single streams."""
    for kind, triples in kinds.items():
        if kind in REAL:
            yield from real_places(kind, triples)
        elif kind in NOTHING:
            old, new = over_running_mean(triples)
            yield Place(kind, *ratio(new, old))
        else:
            yield from simulated_places(kind, triples)


def real_places(kind: str, triples: list[tuple]) -> Iterator[Place]:
    logs, errors = log_ratios(triples)
    families = np.array([stream["family"] for stream, _, _ in triples])
    for name in FAMILIES:
        if (families == name).any():
            log, error = mean_log(logs[families == name], errors[families == name])
            yield Place(f"{kind}, {name}", np.exp(log), error * np.exp(log))


def simulated_places(kind: str, triples: list[tuple]) -> Iterator[Place]:
    old, new = ([measures(triple[0], triple[k]) for triple in triples] for k in (1, 2))
    for what in old[0]:
        share, error = ratio(*(np.array([each[what] for each in side]) for side in (new, old)))
        if what in (FROM_20, FROM_0):
            yield Place(kind if what == FROM_20 else f"{kind}, from row 0 on", share, error)
        elif what in (F_ALL, F_SPARSE):
            yield Place(f"{kind}, {what}", share, error, LEAST_F, higher=True)
        elif what == MOVES:
            yield Place(f"{kind}, moves", share, error, LEAST_MOVES)


def single(kinds: dict[str, list[tuple]], errors: float) -> list[Place]:
    """Every real stream, from the best without the mechanism to the worst."""
    found = []
    for kind, triples in kinds.items():
        if kind in REAL:
            for (stream, _, _), log, error in zip(triples, *log_ratios(triples), strict=True):
                name = stream["name"] if kind == REAL[0] else f"{stream['name']} ({kind})"
                found.append(Place(name, np.exp(log), error * np.exp(log), LEAST_STREAM, errors=errors))
    return sorted(found, key=lambda place: place.share)


def verdict(found: list[Place]) -> str:
    wins, losses = ([place.name for place in found if place.won == sign] for sign in (1, -1))
    if wins and losses:
        return f"mixed: wins {'; '.join(wins)}; loses {'; '.join(losses)}"
    if wins:
        return f"earns its place: {'; '.join(wins)}"
    return f"better without: {'; '.join(losses)}" if losses else "does nothing"


def line(mechanism: Mechanism, kinds: dict[str, list[tuple]]) -> dict[str, str]:
    kinds = {kind: triples for kind, triples in kinds.items() if all(old and new for _, old, new in triples)}
    found, streams = list(places(kinds)), single(kinds, 3.0)
    said_of_real = {}
    if streams:
        log, error = mean_log(
            np.log([place.share for place in streams]), np.array([place.error / place.share for place in streams])
        )
        by_two = [place._replace(errors=2.0, least=0.0).won for place in streams]
        said_of_real = {
            f"real, {ALL}": said(np.exp(log), error * np.exp(log)),
            "worse, better without": f"{by_two.count(1)}, {by_two.count(-1)} of {len(streams)}",
            "worst without": _named(streams[-1]),
            "best without": _named(streams[0]),
        }
    every = [triple for triples in kinds.values() for triple in triples]
    cost = [sum(triple[k]["seconds"] for triple in every) for k in (2, 1)]
    return {
        "mechanism": mechanism.name,
        "verdict": verdict([*found, *streams]),
        **said_of_real,
        **{place.name: said(place.share, place.error) for place in found},
        "CPU": f"{cost[0] / cost[1]:.2f}",
    }


def _named(place: Place) -> str:
    return f"{place.name} {said(place.share, place.error)}"


def show(table: list[dict[str, str]]) -> None:
    """What is decided, then the numbers with a line for each place: there are more places than mechanisms."""
    for row in table:
        print(f"{row['mechanism']}: {row['verdict']}")
    print()
    names = [name for name in table[0] if name not in ("mechanism", "verdict")]
    report("ablate", [{"without / with": name, **{row["mechanism"]: row[name] for row in table}} for name in names])


def main() -> None:
    parser = options_of(__doc__)
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[1], help="what is built without them")
    parser.add_argument("--only", nargs="+", choices=[mechanism.name for mechanism in MECHANISMS], metavar="NAME")
    parser.add_argument("--keep", type=Path, required=True, help="a folder for results, which are not run again")
    given = parser.parse_args()
    chosen = [mechanism for mechanism in MECHANISMS if given.only is None or mechanism.name in given.only]
    given.keep.mkdir(parents=True, exist_ok=True)
    streams = all_streams(given.kinds, given.data, given.draws, given.rows)
    table = []
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(given.tree, Path(folder) / "tree")  # the other one may change meanwhile
        for mechanism in chosen:
            for name, old, _ in mechanism.swaps:
                check_swap(mechanism.name, tree / "src" / "streamlasso" / name, old)
        build(tree)
        whole = results(tree / "src", streams, options={}, jobs=given.jobs, keep=given.keep)
        for mechanism in chosen:
            start = time.monotonic()
            found = without(mechanism, tree, streams, given.jobs, given.keep)
            table.append(line(mechanism, by_kind(streams, whole, found)))
            print(f"{mechanism.name}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    show(table)


if __name__ == "__main__":
    main()
