"""`streamlasso serve` beside a bare echo endpoint, `partial_fit` in process, and Flask + river + pickle; on 127.0.0.1.

    python benchmarks/serve.py                        # the ratios, about two minutes
    python benchmarks/serve.py --batches              # 1,000 rows in a request, as JSON and Arrow
    python benchmarks/serve.py --frameworks           # FastAPI beside Litestar
    python benchmarks/serve.py --kills 200            # SIGKILLs under load
    python benchmarks/serve.py --soak 1000000         # memory over so many learns
    python benchmarks/serve.py --fuzz 100000          # hostile bodies
    python benchmarks/serve.py --page                 # the page at 20 updates a second, in chromium

Each service is one process; so is the load, which 64 connections send as fast as they are answered.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from common import report

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
ECHO_PORT, PORT, FLASK_PORT, P = 8940, 8941, 8942, 20
#: Connections, and requests of a measurement.
CLIENTS, REQUESTS = 64, 3840

ECHO = {
    "litestar": """
from typing import Any
from litestar import Litestar, post
@post("/echo", status_code=200)
async def echo(data: dict[str, Any]) -> dict[str, Any]:
    return data
app = Litestar([echo], openapi_config=None)
""",
    "fastapi": """
from typing import Any
from fastapi import Body, FastAPI
app = FastAPI(openapi_url=None)
@app.post("/echo")
async def echo(body: dict[str, Any] = Body()) -> dict[str, Any]:
    return body
""",
}
#: What chantilly does for each learn, without its other features: load the model, learn, store it.
FLASK = """
import pickle, sqlite3, sys
from flask import Flask, jsonify, request
from river import linear_model, preprocessing
app = Flask("learns")
db = sqlite3.connect(sys.argv[2], isolation_level=None, check_same_thread=False)
db.execute("CREATE TABLE IF NOT EXISTS models (name TEXT PRIMARY KEY, model BLOB)")
model = preprocessing.StandardScaler() | linear_model.LinearRegression()
db.execute("INSERT INTO models VALUES ('a', ?)", (pickle.dumps(model),))
@app.post("/models/a/learn")
def learn():
    body = request.get_json()
    model = pickle.loads(db.execute("SELECT model FROM models").fetchone()[0])
    prediction = model.predict_one(body["row"])
    model.learn_one(body["row"], body["y"])
    db.execute("UPDATE models SET model = ?", (pickle.dumps(model),))
    return jsonify(prediction=prediction)
app.run("127.0.0.1", int(sys.argv[1]), threaded=False)
"""


# --- load -------------------------------------------------------------------------------------------------------------


async def sent(
    port: int, path: str, bodies: list[bytes], n: int, clients: int, pace: float | None, kind: str
) -> tuple[float, list[float]]:
    """Seconds, and the latency of each request. `pace` is the requests a second of all clients; None: no pause."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: {kind}\r\nContent-Length: "
    requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    latencies: list[float] = []

    async def client(k: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        due = time.perf_counter() + (k / pace if pace else 0.0)
        for i in range(n // clients):
            if pace:
                await asyncio.sleep(max(due - time.perf_counter(), 0.0))
            begun = due if pace else time.perf_counter()
            due += clients / pace if pace else 0.0
            try:
                writer.write(requests[(k + clients * i) % len(requests)])
                head = await reader.readuntil(b"\r\n\r\n")
            except (ConnectionError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                continue
            length = int(next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))[15:])
            answer = await reader.readexactly(length)
            if head[9:11] != b"20":
                raise RuntimeError((head, answer))
            latencies.append(time.perf_counter() - begun)
            if b"connection: close" in head.lower():
                # Flask's own server.
                writer.close()
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(client(k) for k in range(clients)))
    return time.perf_counter() - begun, sorted(latencies)


def load(
    port: int,
    path: str,
    bodies: list[bytes],
    n: int = REQUESTS,
    clients: int = CLIENTS,
    pace: float | None = None,
    kind: str = "application/json",
) -> tuple[float, float, float, int]:
    """Requests a second, latencies at .5 and .99 in ms, and how many there were."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        seconds, latencies = runner.run(sent(port, path, bodies, n, clients, pace, kind))
    half, most = (1e3 * latencies[int(q * (len(latencies) - 1))] for q in (0.5, 0.99))
    return len(latencies) / seconds, half, most, len(latencies)


class Running:
    """A process that listens on a port."""

    def __init__(self, port: int, *command: str) -> None:
        self.port = port
        self.process = subprocess.Popen(
            [sys.executable, *command], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )

    def __enter__(self) -> Running:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.1)
        self.__exit__()
        raise TimeoutError

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    @property
    def megabytes(self) -> float:
        return psutil.Process(self.process.pid).memory_info().rss / 1e6

    def load(self, *arguments: Any, **options: Any) -> Found:
        before = self.cpu
        found = load(self.port, *arguments, **options)
        return Found(*found[:3], 1e6 * (self.cpu - before) / found[3])

    @property
    def cpu(self) -> float:
        """Seconds so far."""
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def asked(self, method: str, path: str, body: object) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request(method, path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        return connection.getresponse().read()


def echoing(framework: str, folder: Path) -> Running:
    (folder / f"{framework}_echo.py").write_text(ECHO[framework])
    options = ["--port", str(ECHO_PORT), "--no-access-log", "--app-dir", str(folder)]
    return Running(ECHO_PORT, "-m", "uvicorn", f"{framework}_echo:app", *options)


def serving(store: Path) -> Running:
    return Running(PORT, "-m", "streamlasso", "serve", "--store", str(store), "--port", str(PORT))


# --- measurements -----------------------------------------------------------------------------------------------------


def rows(n: int, seed: int = 0) -> tuple[list[dict[str, float]], list[float], np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, P)).round(4)
    y = (2 * X[:, 0] - X[:, 1] + rng.normal(size=n)).round(4)
    return [{f"x{j}": value for j, value in enumerate(row)} for row in X.tolist()], y.tolist(), X


class Found(NamedTuple):
    """Requests a second, latencies at .5 and .99 in ms, and the CPU time of the service per request in us."""

    speed: float
    half: float
    most: float
    cpu: float = float("nan")


def median(found: list[Found]) -> Found:
    """Of each number."""
    return Found(*np.median(found, axis=0))


def ratios(folder: Path, rounds: int) -> None:
    """All services are up, and take turns: others may use the machine, and then slow down all of them."""
    made, y, _ = rows(2000)
    predicts = [json.dumps({"row": row}).encode() for row in made]
    learns = [json.dumps({"row": row, "y": label}).encode() for row, label in zip(made, y, strict=True)]
    flask_command = ("-c", FLASK, str(FLASK_PORT), str(folder / "flask.sqlite"))
    flask = Running(FLASK_PORT, *flask_command)
    with echoing("litestar", folder) as echo, serving(folder / "store") as service, flask:
        service.asked("PUT", "/models/a", {"family": "gaussian"})
        service.asked("POST", "/models/a/learn", {"rows": made, "y": y})
        turns = {
            "bare echo": lambda: echo.load("/echo", predicts),
            "predict": lambda: service.load("/models/a/predict", predicts),
            "learn, on disk before the answer": lambda: service.load("/models/a/learn", learns),
            "Flask + river + pickle, learn": lambda: flask.load("/models/a/learn", learns, 640),
        }
        echo.load("/echo", predicts, 1280)
        service.load("/models/a/predict", predicts, 1280)
        found = taken_in_turns(turns, rounds)
        pace = {name: median(found[name]).speed / 2 for name in ("predict", "learn, on disk before the answer")}
        for name, path, bodies in zip(pace, ("predict", "learn"), (predicts, learns), strict=True):
            n = int(4 * pace[name]) // CLIENTS * CLIENTS
            found[f"{path} at half load"] = [service.load(f"/models/a/{path}", bodies, n, pace=pace[name])]
        found["learn, one client"] = [service.load("/models/a/learn", learns, 500, 1)]
    report("serve", summary(found))


def taken_in_turns(turns: dict[str, Callable[[], Found]], rounds: int) -> dict[str, list[Found]]:
    found: dict[str, list[Found]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            found[name].append(turn())
            print(name, [f"{value:,.1f}" for value in found[name][-1]], flush=True)
    return found


def summary(found: dict[str, list[Found]]) -> list[dict[str, str]]:
    def beside(one: str, other: str) -> str:
        """The median over rounds of the ratio of speeds; and of CPU times, which other work disturbs less."""
        pairs = list(zip(found[one], found[other], strict=True))
        speed, cpu = np.median([a.speed / b.speed for a, b in pairs]), np.median([b.cpu / a.cpu for a, b in pairs])
        return f"{speed:.2f} ({cpu:.2f} by CPU)"

    learn, flask = "learn, on disk before the answer", "Flask + river + pickle, learn"
    notes = {
        "predict": f"{beside('predict', 'bare echo')} of echo, must .5",
        learn: f"{beside(learn, 'bare echo')} of echo, must .3",
        flask: f"ours is {beside(learn, flask)} times as fast, must 8",
    }
    return lines(found, notes)


def lines(found: dict[str, list[Found]], notes: dict[str, str]) -> list[dict[str, str]]:
    table = []
    for name, each in found.items():
        middle = median(each)
        cells = {"per second": f"{middle.speed:,.0f}", "p50 ms": f"{middle.half:.1f}", "p99 ms": f"{middle.most:.1f}"}
        table.append({"what": name, **cells, "CPU us": f"{middle.cpu:,.0f}", "beside": notes.get(name, "")})
    return table


def batches(folder: Path, rounds: int) -> None:
    """1,000 rows in a request beside `partial_fit` of them, of the default and of one model."""
    made, y, X = rows(2000)
    bodies = [json.dumps({"rows": made[k : k + 1000], "y": y[k : k + 1000]}).encode() for k in (0, 1000)]
    tables = [arrow(X[k : k + 1000], y[k : k + 1000]) for k in (0, 1000)]
    streamed = {"kind": "application/vnd.apache.arrow.stream"}
    turns, fits = {}, {}
    with serving(folder / "store") as service:
        for tuner in ("mixture", "logrms"):
            service.asked("PUT", f"/models/{tuner}", {"family": "gaussian", "tuner": tuner})
            service.asked("POST", f"/models/{tuner}/learn", {"rows": made, "y": y})
            path = f"/models/{tuner}"
            turns[f"{tuner}, partial_fit"] = partial(in_process, X, y, tuner)
            turns[f"{tuner}, JSON"] = partial(service.load, f"{path}/learn", bodies, 40, 2)
            turns[f"{tuner}, Arrow"] = partial(service.load, f"{path}/stream", tables, 40, 2, **streamed)
            fits |= {f"{tuner}, {form}": f"{tuner}, partial_fit" for form in ("JSON", "Arrow")}
        found = taken_in_turns(turns, rounds)
    ratios = {
        name: np.median([a.cpu / b.cpu for a, b in zip(found[name], found[fit], strict=True)])
        for name, fit in fits.items()
    }
    notes = {name: f"{ratio:.2f} of its CPU" for name, ratio in ratios.items()}
    notes = {name: note + ", must 3" * name.startswith("mixture") for name, note in notes.items()}
    report("serve_batches", lines(found, notes))


def arrow(X: np.ndarray, y: list[float]) -> bytes:
    import pyarrow

    table = pyarrow.table({**{f"x{j}": column for j, column in enumerate(X.T)}, "y": y})
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def in_process(X: np.ndarray, y: list[float], tuner: str) -> Found:
    from streamlasso import RAPRegressor

    model = RAPRegressor(tuner=tuner).partial_fit(X, y)
    seconds, cpu = [], time.process_time()
    for k in range(40):
        begun = time.perf_counter()
        model.partial_fit(*((X[:1000], y[:1000]) if k % 2 == 0 else (X[1000:], y[1000:])))
        seconds.append(time.perf_counter() - begun)
    half, most = 1e3 * float(np.median(seconds)), 1e3 * max(seconds)
    return Found(len(seconds) / sum(seconds), half, most, 1e6 * (time.process_time() - cpu) / len(seconds))


def frameworks(folder: Path, rounds: int) -> None:
    predicts = [json.dumps({"row": row}).encode() for row in rows(100)[0]]
    table = []
    for framework in ECHO:
        with echoing(framework, folder) as echo:
            echo.load("/echo", predicts, 1280)
            middle = median([echo.load("/echo", predicts) for _ in range(rounds)])
        cells = {"echoes per second": f"{middle.speed:,.0f}", "CPU us": f"{middle.cpu:,.0f}"}
        table.append({"framework": framework, **cells, "p50 ms": f"{middle.half:.1f}", "p99 ms": f"{middle.most:.1f}"})
    report("serve_frameworks", table)


def soak(folder: Path, n: int) -> None:
    """Resident size while rows are learnt: a tenth of them one by one, the others in batches of 100."""
    made, y, _ = rows(2000)
    ones = [json.dumps({"row": row, "y": label}).encode() for row, label in zip(made, y, strict=True)]
    many = [json.dumps({"rows": made[k : k + 100], "y": y[k : k + 100]}).encode() for k in range(0, 2000, 100)]
    table = []
    with serving(folder / "store") as service:
        service.asked("PUT", "/models/a", {"family": "gaussian"})
        for _ in range(10):
            service.load("/models/a/learn", ones, n // 100 // CLIENTS * CLIENTS)
            service.load("/models/a/learn", many, 9 * n // 10_000, 8)
            disk = sum(path.stat().st_size for path in (folder / "store").iterdir()) / 1e6
            n_rows = json.loads(service.asked("GET", "/models/a", None))["n_rows"]
            table.append({"rows": f"{n_rows:,}", "resident MB": f"{service.megabytes:.0f}", "store MB": f"{disk:.0f}"})
            print(table[-1], flush=True)
    report("serve_soak", table)


def kills(folder: Path, n: int) -> None:
    from support.kills import killed

    found = killed(folder / "store", n, seed=1, told=lambda k, rows: print(k, "kills,", rows, "rows", flush=True))
    report("serve_kills", [{"what": name, "n": f"{int(value):,}"} for name, value in {"kills": n, **found}.items()])


def fuzz(folder: Path, n: int) -> None:
    from support.hostile import fuzzed

    found = fuzzed(folder / "store", n, told=lambda k: print(k, "bodies", flush=True))
    report("serve_fuzz", [{"what": name, "n": f"{int(value):,}"} for name, value in found.items()])


#: Notes when the browser draws, and how often the page has drawn new rows.
FRAMES = """window.frames_at = []; window.drawn = 0;
new MutationObserver(() => drawn++).observe(document.getElementById("model"), {attributeFilter: ["data-drawn"]});
(function next(at) { frames_at.push(at); requestAnimationFrame(next); })(performance.now()); 0"""


def page(folder: Path, seconds: float = 15.0) -> None:
    """Frames of the page with 100,000 rows of history, while 20 requests a second teach the model."""
    from support.browser import Browser

    made, y, _ = rows(2000)
    many = json.dumps({"rows": made, "y": y}).encode()
    ones = [json.dumps({"row": row, "y": label}).encode() for row, label in zip(made, y, strict=True)]
    with serving(folder / "store") as service, Browser() as browser:
        service.asked("PUT", "/models/a", {"family": "gaussian", "tuner": "logrms"})
        service.load("/models/a/learn", [many], 50, 1)
        browser.open(f"http://127.0.0.1:{PORT}/#a")
        time.sleep(3)
        browser.run(FRAMES)
        browser.call("Performance.enable", timeDomain="threadTicks")
        before = {each["name"]: each["value"] for each in browser.call("Performance.getMetrics")["metrics"]}
        service.load("/models/a/learn", ones, int(20 * seconds), 1, pace=20.0)
        after = {each["name"]: each["value"] for each in browser.call("Performance.getMetrics")["metrics"]}
        gaps, drawn = np.diff(browser.run("frames_at")), browser.run("drawn")
    busy = {name: 1e3 * (after[name] - before[name]) / drawn for name in ("ScriptDuration", "TaskDuration")}
    report(
        "serve_page",
        [
            {"what": "updates drawn a second", "n": f"{drawn / seconds:.1f}"},
            *(
                {"what": f"ms between frames, {q:.0%}", "n": f"{np.quantile(gaps, q):.1f}"}
                for q in (0.5, 0.95, 0.99, 1.0)
            ),
            {"what": "frames later than 50 ms", "n": f"{np.mean(gaps > 50):.1%}"},
            *({"what": f"ms of CPU per update, {name}", "n": f"{value:.1f}"} for name, value in busy.items()),
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    for name in ("frameworks", "batches", "page"):
        parser.add_argument(f"--{name}", action="store_true")
    for name in ("kills", "soak", "fuzz"):
        parser.add_argument(f"--{name}", type=int)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.kills:
            kills(folder, arguments.kills)
        elif arguments.soak:
            soak(folder, arguments.soak)
        elif arguments.fuzz:
            fuzz(folder, arguments.fuzz)
        elif arguments.page:
            page(folder)
        elif arguments.batches:
            batches(folder, arguments.rounds)
        elif arguments.frameworks:
            frameworks(folder, arguments.rounds)
        else:
            ratios(folder, arguments.rounds)


if __name__ == "__main__":
    main()
