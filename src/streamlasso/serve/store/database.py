"""One SQLite database: its tables, transactions, models and checkpoints.

Rows to learn are in the log before they are learnt and acknowledged (`log.py`). A checkpoint, and the answers since the
last one, are one transaction. So a service that was killed at any moment finds each row once: in a checkpoint, or in
the log after it.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamlasso.serve.learning.history import COLUMNS, MOST
from streamlasso.serve.problems import Problem

#: Marks a database as ours ("SLSO"), and the version of its tables.
APPLICATION, VERSION = 0x534C534F, 2
#: Answers by id that are kept for each model.
MOST_ANSWERS = 100_000
#: Bytes of a page: large ones halve the cost of a log entry of 1,000 rows. And of the WAL, before it is moved.
PAGE, MOST_WAL = 16_384, 4_000_000
#: What SQLite says when the disk takes nothing more: it is full, or writing fails.
NO_ROOM = {"SQLITE_FULL", "SQLITE_IOERR", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_SHMSIZE"}
NO_ROOM |= {"SQLITE_IOERR_TRUNCATE", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR_DIR_FSYNC"}
#: The upper ends of the histogram of commits, in seconds.
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE models (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL, created REAL NOT NULL,
    n_expired INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, part INTEGER NOT NULL, model INTEGER NOT NULL, id TEXT, time REAL NOT NULL,
    is_batch INTEGER NOT NULL, rows BLOB NOT NULL
);
CREATE INDEX log_by_model ON log (model, seq);
CREATE TABLE checkpoints (
    model INTEGER PRIMARY KEY, seq INTEGER NOT NULL, time REAL NOT NULL, notes TEXT NOT NULL, data BLOB
);
CREATE TABLE history (model INTEGER, first INTEGER, n INTEGER NOT NULL, rows BLOB NOT NULL, PRIMARY KEY (model, first));
CREATE TABLE waiting (
    model INTEGER, id TEXT, time REAL NOT NULL, row BLOB NOT NULL, answer BLOB NOT NULL, explanation BLOB NOT NULL,
    PRIMARY KEY (model, id)
) WITHOUT ROWID;
CREATE INDEX waiting_by_time ON waiting (model, time);
CREATE TABLE expired (n INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, id TEXT NOT NULL);
CREATE INDEX expired_by_id ON expired (model, id);
CREATE TABLE answers (
    model INTEGER, id TEXT, seq INTEGER NOT NULL, label TEXT NOT NULL, row TEXT NOT NULL, answer BLOB NOT NULL,
    PRIMARY KEY (model, id)
) WITHOUT ROWID;
CREATE INDEX answers_by_seq ON answers (model, seq);
"""


class Answer(NamedTuple):
    """What was answered to an id; `label` and `row` tell a retry from another request with the same id."""

    model: int
    id: str
    seq: int
    label: str
    row: str
    answer: bytes


class Checkpoint(NamedTuple):
    """A model after the rows up to `seq`, and the history since the checkpoint before."""

    model: int
    seq: int
    time: float
    notes: str
    data: bytes | None
    first: int
    history: np.ndarray


class Registered(NamedTuple):
    """A model by its number."""

    id: int
    name: str
    settings: str
    created: float
    n_expired: int


class Database:
    """The database, for one thread. A transaction that fails changes nothing, and raises a Problem.

    unsaved : answers to ids, which the next transaction takes with it
    pending : ids that are being learnt, each with the number of its model
    on_trouble : is called when the disk is full or the database does not answer, and when it is well again (None)
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        self.path = folder / "store.sqlite"
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{self.path} cannot be used ({error}): use another --store, or restore a copy") from error
        self.unsaved: list[Answer] = []
        self.pending: set[tuple[int, str]] = set()
        self.trouble: str | None = None
        self.on_trouble: Callable[[str | None], None] = lambda trouble: None
        self.commits, self.commit_seconds = [0] * (len(BUCKETS) + 1), 0.0

    def _open(self) -> None:
        self.db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=2.0)
        self.path.chmod(0o600)
        self.db.execute(f"PRAGMA page_size = {PAGE}")
        self._refuse_foreign()
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(f"PRAGMA wal_autocheckpoint = {MOST_WAL // PAGE}")
        self.db.execute("PRAGMA synchronous = FULL")
        if not self.db.execute("SELECT 1 FROM sqlite_master").fetchone():
            script = (
                f"BEGIN IMMEDIATE; {TABLES} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
            )
            self.db.executescript(f"{script} INSERT INTO meta VALUES ('secret', '{secrets.token_hex(32)}'); COMMIT")

    def _refuse_foreign(self) -> None:
        application, version = (
            self.db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        is_empty = not self.db.execute("SELECT 1 FROM sqlite_master").fetchone()
        if application != APPLICATION and not (is_empty and (application, version) == (0, 0)):
            raise ValueError(f"{self.path} is not a store of streamlasso serve: use another --store")
        if application == APPLICATION and version != VERSION:
            advice = "upgrade it" if version > VERSION else "go on with the streamlasso that made it"
            raise ValueError(
                f"{self.path} is of format {version}, and this streamlasso reads {VERSION}: {advice}, or use another "
                "--store"
            )

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it, on disk, or nothing of it; with the answers since the last one."""
        begun, answers = time.perf_counter(), list(self.unsaved)
        try:
            self.db.execute("BEGIN IMMEDIATE")
            self._save(answers)
            yield
            self.db.execute("COMMIT")
        except BaseException as error:
            with suppress(sqlite3.Error):
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error):
                raise self._failure(error) from error
            raise
        seconds = time.perf_counter() - begun
        self.commits[bisect_left(BUCKETS, seconds)] += 1
        self.commit_seconds += seconds
        del self.unsaved[: len(answers)]
        self._note(None)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A look outside of a transaction."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def _save(self, answers: list[Answer]) -> None:
        """Rows with these ids wait no more."""
        ids = [(answer.model, answer.id) for answer in answers]
        self.db.executemany("DELETE FROM waiting WHERE model = ? AND id = ?", ids)
        self.db.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", answers)

    def _failure(self, error: sqlite3.Error) -> Problem:
        if getattr(error, "sqlite_errorname", "") in NO_ROOM:
            self._note("full")
            detail = "the disk of the store is full: nothing was learnt, predictions go on; try again when it has room"
            return Problem(507, detail)
        self._note(str(error))
        return Problem(503, f"the store does not answer ({error}): nothing was learnt; try again", retry_after=5)

    def _note(self, trouble: str | None) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self.on_trouble(trouble)

    @property
    def secret(self) -> bytes:
        """A random key of this store."""
        return bytes.fromhex(self.db.execute("SELECT value FROM meta WHERE key = 'secret'").fetchone()[0])

    # --- models -------------------------------------------------------------------------------------------------------

    def models(self) -> list[Registered]:
        rows = self.db.execute("SELECT id, name, settings, created, n_expired FROM models ORDER BY id")
        return [Registered(*row) for row in rows]

    def add_model(self, name: str, settings: str) -> Registered:
        now = time.time()
        insert = "INSERT INTO models (name, settings, created) VALUES (?, ?, ?) RETURNING id"
        with self.transaction():
            (number,) = self.db.execute(insert, (name, settings, now)).fetchone()
        return Registered(number, name, settings, now, 0)

    def remove_model(self, model: int) -> None:
        with self.transaction():
            self.db.execute("DELETE FROM models WHERE id = ?", (model,))
            for table in ("log", "checkpoints", "history", "waiting", "expired", "answers"):
                self.db.execute(f"DELETE FROM {table} WHERE model = ?", (model,))
        self.unsaved[:] = [answer for answer in self.unsaved if answer.model != model]

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the older one."""
        model, seq, at, notes, data, first, history = checkpoint
        with self.transaction():
            self.db.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?)", (model, seq, at, notes, data))
            if len(history):
                row = (model, first, len(history), np.ascontiguousarray(history).tobytes())
                self.db.execute("INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?)", row)
                oldest = first + len(history) - MOST
                self.db.execute("DELETE FROM history WHERE model = ? AND first + n <= ?", (model, oldest))
            self.db.execute(
                "DELETE FROM answers WHERE model = ? AND seq <= "
                "(SELECT seq FROM answers WHERE model = ? ORDER BY seq DESC LIMIT 1 OFFSET ?)",
                (model, model, MOST_ANSWERS),
            )

    def checkpoint(self, model: int) -> tuple[int, float, str, bytes | None] | None:
        """seq, time, notes and data of the last one."""
        return self.db.execute("SELECT seq, time, notes, data FROM checkpoints WHERE model = ?", (model,)).fetchone()

    def history(self, model: int) -> Iterator[tuple[int, np.ndarray]]:
        """The number of the first row, and rows, in order."""
        for first, rows in self.db.execute("SELECT first, rows FROM history WHERE model = ? ORDER BY first", (model,)):
            yield first, np.frombuffer(rows).reshape(-1, len(COLUMNS))
