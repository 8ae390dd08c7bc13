"""`streamlasso run --live`: the page of the service, for a run. It shows, and takes nothing."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from streamlasso._terminal import warn
from streamlasso.data.encoding.cells import Encoded
from streamlasso.model.outcomes import Outcomes
from streamlasso.model.wide import WideStreamModel
from streamlasso.run.options import Options
from streamlasso.run.run import Run, Watcher
from streamlasso.serve.events import Events
from streamlasso.serve.http.access import Access
from streamlasso.serve.http.app import application, page_files
from streamlasso.serve.http.tokens import Tokens
from streamlasso.serve.learning.history import History
from streamlasso.serve.learning.model import LiveModel
from streamlasso.serve.live_run.wide_run import WideRun
from streamlasso.serve.problems import Problem
from streamlasso.serve.served_model import ServedModel, iso
from streamlasso.serve.settings import ModelSettings
from streamlasso.serve.store.database import Registered

HOST = "127.0.0.1"
#: Seconds until the server has started, and until it has stopped.
START, STOP = 20.0, 3.0
#: Seconds that a run waits for those who look at its model, at most.
LONGEST_LOOK = 0.2
#: Bytes of a request, which has none to send.
LARGEST = 1_000_000


class Turns:
    """The run and those who look at it take turns: the run would take a lock alone again and again."""

    def __init__(self) -> None:
        self.free, self.count = threading.Condition(), threading.Lock()
        self.n_waiting = 0

    @contextmanager
    def learning(self) -> Iterator[None]:
        with self.free:
            yield
            self.free.wait_for(lambda: not self.n_waiting, LONGEST_LOOK)

    def look(self, function: Callable[[], Any]) -> Any:
        with self.count:
            self.n_waiting += 1
        with self.free:
            try:
                return function()
            finally:
                with self.count:
                    self.n_waiting -= 1
                self.free.notify_all()


class ShownRun:
    """What the page asks of a service, for a run: one model, which nobody else teaches."""

    def __init__(self, options: Options) -> None:
        registered = Registered(0, name_of(options.data), "", time.time(), 0)
        self.served = ServedModel(registered, ModelSettings(target=options.target))
        self.models = {self.served.name: self.served}
        self.broken: dict[str, Any] = {}
        self.events, self.turns = Events(), Turns()
        self.n_bad = 0

    def model(self, name: str) -> ServedModel:
        if name not in self.models:
            raise Problem(404, f"the run is called {self.served.name}")
        return self.served

    async def look(self, function: Callable[[], Any]) -> Any:
        return await asyncio.to_thread(self.turns.look, function)

    async def start(self) -> None:
        self.events.start()

    async def stop(self) -> None:
        self.events.stop()

    # --- the run ------------------------------------------------------------------------------------------------------

    def begins(self, run: Run) -> None:
        """A file of features by number has no name for its target; the run gives it one."""
        settings = ModelSettings(target=run.model.target.name)
        is_wide = isinstance(run.model, WideStreamModel)
        self.served.settings, self.served.model = settings, (WideRun if is_wide else LiveModel)(settings)

    def learnt(self, run: Run, rows: Encoded, outcomes: list[Outcomes]) -> None:
        served, model, now = self.served, self.served.model, time.time()
        if model.encoder is None:
            # One that continues has rows that are not known here.
            model.n_rows = run.n_rows - len(rows.target)
            model.monitor.history = History(model.n_rows)
        model.encoder, model.learning = run.model.encoder, run.model
        if isinstance(model, WideRun):
            model.snapshot = run.last_snapshot
        _, alarms = model.monitor.note(model, rows, outcomes, now)
        model.n_rows, model.last_learn = model.n_rows + len(rows.target), now
        served.n_predictions += len(rows.target)
        served.note_pace(len(rows.target))
        for alarm in alarms:
            about = {"kind": alarm.kind, "firing": alarm.firing, "row": alarm.row, "detail": alarm.detail}
            self.events.publish("alarm", {"model": served.name, **about, "time": iso(alarm.time)})
        self._note_bad(run)

    def _note_bad(self, run: Run) -> None:
        """Rows that were left out; of many only the first are known."""
        if run.data.n_bad > self.n_bad:
            for example in run.data.bad_examples[self.n_bad :]:
                error = {"time": iso(time.time()), "status": "left out", "detail": example}
                self.served.errors.append(error)
                self.events.publish("refused", {"model": self.served.name, **error})
            self.n_bad = run.data.n_bad


class RunPage(Watcher):
    """Serves the page as long as the run goes on, and then until Ctrl-C."""

    def __init__(self, shown: ShownRun, address: str) -> None:
        self.shown, self.address = shown, address

    def turn(self) -> Any:
        return self.shown.turns.learning()

    def learnt(self, run: Run, rows: Encoded, outcomes: list[Outcomes]) -> None:
        self.shown.learnt(run, rows, outcomes)

    def begins(self, run: Run) -> list[str]:
        self.shown.begins(run)
        return [f"live at {self.address}"]

    def stay(self) -> None:
        came = threading.Event()
        before = {number: signal.signal(number, lambda *_: came.set()) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            warn(f"The page stays at {self.address}; Ctrl-C ends it.")
            while not came.wait(0.5):
                pass
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def run_page(options: Options, port: int) -> Iterator[RunPage]:
    """The page of a run on a port of this machine; 0 is any that is free."""
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        raise ValueError(f"--port {port} cannot be used ({error.strerror}): use another, or 0 for any") from error
    shown, page, tokens = ShownRun(options), page_files(), Tokens({}, b"")
    app = application(shown, page, tokens, LARGEST, shows_only=True)  # type: ignore[arg-type]
    access = Access(app, tokens, hosts=(), pages=page, largest=LARGEST)
    config = uvicorn.Config(access, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        _await_start(server, thread)
        yield RunPage(shown, f"http://{HOST}:{listening.getsockname()[1]}/")
    finally:
        server.should_exit = True
        thread.join(STOP)


def _await_start(server: uvicorn.Server, thread: threading.Thread) -> None:
    until = time.monotonic() + START
    while not server.started:
        if not thread.is_alive() or time.monotonic() > until:
            raise ValueError("the page could not be served: leave --live out, and tell us why")
        time.sleep(0.01)


def name_of(data: str) -> str:
    """A name for addresses.

    >>> name_of("data/bike rentals.csv.gz"), name_of("-"), name_of("kafka://broker/rows?until=end")
    ('bike-rentals.csv.gz', 'standard-input', 'rows')
    """
    words = "standard input" if data == "-" else Path(data.partition("?")[0] if "://" in data else data).name
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", words).lstrip("._-")
    return name[:100] or "run"
