"""Folders of streams that look like those of benchmarks/streams.py, small and made up."""

import gzip
from pathlib import Path

import numpy as np

N_ROWS = 60
SENSORS = ("PT08.S1(CO)", "PT08.S2(NMHC)", "PT08.S3(NOx)", "PT08.S4(NO2)", "PT08.S5(O3)", "T", "RH", "AH")
#: Task -> the file and the column of its response.
RESPONSES = {
    "elec2": ("elec2.csv.gz", "class"),
    "usenet1": ("usenet1.csv.gz", "class"),
    "ozone8h": ("ozone8h.csv.gz", "ozone_day"),
    "senate_101_109": ("votes.csv.gz", "i2"),
    "bike_sharing": ("bike_hour.csv.gz", "cnt"),
    "flu_counts": ("flu_counts.csv.gz", "d2"),
    "air_quality": ("air_quality.csv.gz", "C6H6(GT)"),
    "frm_returns": ("frm_returns.csv.gz", "firm0"),
    "yeast_cellcycle": ("y_expression.csv.gz", "t7min"),
    "exchange_rate": ("exchange_rate.csv.gz", "Australia"),
    "hcp_rest": ("101309.csv.gz", "roi0"),
    "nyu_rest": ("nyu_aal90.csv.gz", "r0"),
}
Columns = dict[str, np.ndarray]


def write_columns(path: Path, columns: Columns) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    path.write_bytes(gzip.compress("\n".join(lines).replace("nan", "").encode() + b"\n", mtime=0))


def numbered(prefix: str, values: np.ndarray) -> Columns:
    return {f"{prefix}{j}": column for j, column in enumerate(values.T)}


def with_gaps(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    return np.where(rng.random(values.shape) < 0.1, np.nan, values)


def made_up(name: str, rng: np.random.Generator) -> dict[str, Columns]:
    """File -> columns."""
    n = N_ROWS
    noise = rng.normal(size=(n, 12)).round(4)
    share = {"class": rng.integers(0, 2, n)}
    if name == "elec2":
        market = ("nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")
        clock = {"date": np.arange(n) / n, "day": rng.integers(1, 8, n), "period": (np.arange(n) % 48 / 47).round(6)}
        labels = np.array(["DOWN", "UP"])[share["class"]]
        return {"elec2.csv.gz": clock | dict(zip(market, noise.T, strict=False)) | {"class": labels}}
    if name == "usenet1":
        return {"usenet1.csv.gz": numbered("word", rng.integers(0, 2, (n, 5))) | share}
    if name == "ozone8h":
        weather = numbered("T", with_gaps(rng, noise))
        return {"ozone8h.csv.gz": {"Date": np.arange(n)} | weather | {"ozone_day": share["class"]}}
    if name == "senate_101_109":
        votes = rng.integers(-1, 2, (n, 5))
        votes[5:, 2] = rng.choice([-1, 1], n - 5)
        return {
            "votes.csv.gz": {column: np.arange(n) for column in ("congress", "rollnumber", "date")}
            | numbered("i", votes)
        }
    if name == "bike_sharing":
        kinds = {"season": (1, 5), "mnth": (1, 13), "hr": (0, 24), "weekday": (0, 7), "weathersit": (1, 5)}
        flags = dict.fromkeys(("yr", "holiday", "workingday"), (0, 2))
        calendar = {column: rng.integers(*ends, n) for column, ends in (kinds | flags).items()}
        weather = dict(zip(("temp", "atemp", "hum", "windspeed"), noise.T, strict=False))
        return {"bike_hour.csv.gz": calendar | weather | {"cnt": rng.poisson(9, n)}}
    if name == "flu_counts":
        counts = rng.poisson([1, 1, 20, 1], (n, 4))
        return {"flu_counts.csv.gz": {"year": np.arange(n), "week": np.arange(n)} | numbered("d", counts)}
    if name == "air_quality":
        sensors = dict(zip(SENSORS, with_gaps(rng, noise[:, :8]).T, strict=True))
        return {"air_quality.csv.gz": sensors | {"C6H6(GT)": with_gaps(rng, noise[:, 8])}}
    if name == "frm_returns":
        returns = numbered("firm", rng.normal(size=(n, 100)).round(4))
        return {"frm_returns.csv.gz": {"Date": np.arange(n)} | returns | {"^VIX": noise[:, 0]}}
    if name == "yeast_cellcycle":
        expression = {f"t{7 * j}min": column for j, column in enumerate(noise[:, :3].T)}
        return {"x_tf_binding.csv.gz": numbered("tf", noise), "y_expression.csv.gz": expression}
    if name == "exchange_rate":
        rates = np.exp(0.01 * noise[:, :3].cumsum(axis=0))
        return {"exchange_rate.csv.gz": dict(zip(("Australia", "UK", "Canada"), rates.T, strict=True))}
    file, column = RESPONSES[name]
    return {file: numbered(column.rstrip("0"), noise)}


def write_stream(data: Path, name: str, files: dict[str, Columns]) -> Path:
    for file, columns in files.items():
        write_columns(data / name / file, columns)
    return data


def write_all(data: Path) -> Path:
    """All twelve streams."""
    for name in RESPONSES:
        write_stream(data, name, made_up(name, np.random.default_rng(0)))
    return data
