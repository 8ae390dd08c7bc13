"""What the service keeps on disk, in one SQLite database: models, the log, checkpoints, waiting rows, answers, tokens.

A row that is to be learnt is in the log before it is learnt and acknowledged. A checkpoint and the answers since the
last one are one transaction. So a service that was killed at any moment finds each row once: in a checkpoint, or in the
log after it. What the log has before a checkpoint is not read again; later transactions remove it, a little each.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from streamlasso.serve.history import COLUMNS, MOST
from streamlasso.serve.problems import Full

#: Marks a database as ours ("SLSO"), and the version of its tables.
APPLICATION, VERSION = 0x534C534F, 1
#: Answers by id that are kept for each model, and ids of waiting rows that have expired.
MOST_ANSWERS, MOST_EXPIRED = 100_000, 100_000
#: Bytes of a page: large ones halve the cost of a log entry of 1,000 rows. And of the WAL, before it is moved.
PAGE, MOST_WAL = 16_384, 4_000_000
#: What a disk says that takes nothing more, by SQLite's codes: full, or an error of input and output while writing.
NO_ROOM = {"SQLITE_FULL", "SQLITE_IOERR", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_SHMSIZE"}
NO_ROOM |= {"SQLITE_IOERR_TRUNCATE", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR_DIR_FSYNC"}

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE models (
    id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, settings TEXT NOT NULL, created REAL NOT NULL,
    n_expired INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, part INTEGER NOT NULL, model INTEGER NOT NULL, id TEXT, time REAL NOT NULL,
    kind INTEGER NOT NULL, rows BLOB NOT NULL
);
CREATE TABLE checkpoints (
    model INTEGER PRIMARY KEY, seq INTEGER NOT NULL, time REAL NOT NULL, notes TEXT NOT NULL, data BLOB
);
CREATE TABLE history (model INTEGER, first INTEGER, n INTEGER NOT NULL, rows BLOB NOT NULL, PRIMARY KEY (model, first));
CREATE TABLE waiting (
    model INTEGER, id TEXT, time REAL NOT NULL, row BLOB NOT NULL, answer BLOB NOT NULL, PRIMARY KEY (model, id)
) WITHOUT ROWID;
CREATE INDEX waiting_by_time ON waiting (model, time);
CREATE TABLE expired (n INTEGER PRIMARY KEY AUTOINCREMENT, model INTEGER NOT NULL, id TEXT NOT NULL);
CREATE INDEX expired_by_id ON expired (model, id);
CREATE TABLE answers (
    model INTEGER, id TEXT, seq INTEGER NOT NULL, label TEXT NOT NULL, answer BLOB NOT NULL, PRIMARY KEY (model, id)
) WITHOUT ROWID;
CREATE INDEX answers_by_seq ON answers (model, seq);
CREATE TABLE tokens (hash TEXT PRIMARY KEY, name TEXT NOT NULL, rights TEXT NOT NULL) WITHOUT ROWID;
"""


class Logged(NamedTuple):
    """Rows of the log that were learnt together: `part` is that of one transaction and model."""

    seq: int
    part: int
    model: int
    id: str | None
    time: float
    kind: int
    rows: bytes


class Answer(NamedTuple):
    """What was answered to an id; `label` as JSON, to find a second one that differs."""

    model: int
    id: str
    seq: int
    label: str
    answer: bytes


class Refused(NamedTuple):
    """An id whose rows were refused: it is free again."""

    model: int
    id: str


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


class Store:
    """The database, for one thread. What raises Full has changed nothing.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder))
    ...     with store.transaction():
    ...         number = store.add_model("demand", "{}", 0.0)
    ...         seq = store.log(1, number, None, 0.0, 0, b"[]")
    ...     [logged.rows for logged in store.logged(number, 0)]
    [b'[]']
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        self.path = folder / "store.sqlite"
        self.db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        self.path.chmod(0o600)
        self.db.execute(f"PRAGMA page_size = {PAGE}")
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(f"PRAGMA wal_autocheckpoint = {MOST_WAL // PAGE}")
        self.db.execute("PRAGMA synchronous = FULL")
        self._make_tables()

    def _make_tables(self) -> None:
        application, version = (
            self.db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        )
        if (application, version) == (0, 0) and not self.db.execute("SELECT 1 FROM sqlite_master").fetchone():
            with self.transaction():
                for statement in TABLES.split(";"):
                    self.db.execute(statement)
                self.db.execute("INSERT INTO meta VALUES ('secret', ?)", (secrets.token_hex(32),))
                self.db.execute(f"PRAGMA application_id = {APPLICATION}")
                self.db.execute(f"PRAGMA user_version = {VERSION}")
        elif application != APPLICATION:
            raise ValueError(f"{self.path} is not a store of streamlasso serve: use another --store")
        elif version > VERSION:
            raise ValueError(
                f"{self.path} is of format {version}, and this streamlasso reads {VERSION}: upgrade it with "
                "pip install --upgrade streamlasso, or use another --store"
            )

    def close(self) -> None:
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it, on disk, or nothing of it."""
        try:
            self.db.execute("BEGIN IMMEDIATE")
            yield
            self.db.execute("COMMIT")
        except BaseException as error:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError) and error.sqlite_errorname in NO_ROOM:
                raise Full(str(error)) from error
            raise

    @property
    def secret(self) -> bytes:
        """A random key of this store."""
        return bytes.fromhex(self.db.execute("SELECT value FROM meta WHERE key = 'secret'").fetchone()[0])

    # --- models -------------------------------------------------------------------------------------------------------

    def models(self) -> list[Registered]:
        rows = self.db.execute("SELECT id, name, settings, created, n_expired FROM models ORDER BY id")
        return [Registered(*row) for row in rows]

    def add_model(self, name: str, settings: str, created: float) -> int:
        """Its number."""
        added = self.db.execute(
            "INSERT INTO models (name, settings, created) VALUES (?, ?, ?)", (name, settings, created)
        )
        assert added.lastrowid is not None
        return added.lastrowid

    def remove_model(self, model: int) -> None:
        self.db.execute("DELETE FROM models WHERE id = ?", (model,))
        for table in ("log", "checkpoints", "history", "waiting", "expired", "answers"):
            self.db.execute(f"DELETE FROM {table} WHERE model = ?", (model,))

    # --- the log ------------------------------------------------------------------------------------------------------

    def log(self, part: int, model: int, id: str | None, at: float, kind: int, rows: bytes) -> int:
        """The number of the entry."""
        added = self.db.execute(
            "INSERT INTO log (part, model, id, time, kind, rows) VALUES (?, ?, ?, ?, ?, ?)",
            (part, model, id, at, kind, rows),
        )
        assert added.lastrowid is not None
        return added.lastrowid

    def last_part(self) -> int:
        """The number of the last transaction that is in the log; a number is used once as long as the log has it."""
        return self.db.execute("SELECT max(part) FROM log").fetchone()[0] or 0

    def logged(self, model: int, after: int) -> Iterator[Logged]:
        """The entries of a model after one, in order."""
        rows = self.db.execute(
            "SELECT seq, part, model, id, time, kind, rows FROM log WHERE model = ? AND seq > ? ORDER BY seq",
            (model, after),
        )
        return (Logged(*row) for row in rows)

    def trim(self, after: int, most: int) -> tuple[int | None, int]:
        """Look at so many entries after one, and remove those that are in checkpoints: the last one looked at, None if
        there are no more, and how many were removed."""
        found = "SELECT max(seq), count(*) FROM (SELECT seq FROM log WHERE seq > ? ORDER BY seq LIMIT ?)"
        last, n = self.db.execute(found, (after, most)).fetchone()
        removed = self.db.execute(
            "DELETE FROM log WHERE seq > ? AND seq <= ? AND seq <= "
            "(SELECT checkpoints.seq FROM checkpoints WHERE checkpoints.model = log.model)",
            (after, last),
        )
        return last if n == most else None, removed.rowcount

    def n_logged(self) -> int:
        return self.db.execute("SELECT count(*) FROM log").fetchone()[0]

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def save(self, checkpoint: Checkpoint) -> None:
        """Replace the older one."""
        model, seq = checkpoint.model, checkpoint.seq
        self.db.execute(
            "INSERT OR REPLACE INTO checkpoints (model, seq, time, notes, data) VALUES (?, ?, ?, ?, ?)",
            (model, seq, checkpoint.time, checkpoint.notes, checkpoint.data),
        )
        n = len(checkpoint.history)
        if n:
            row = (model, checkpoint.first, n, np.ascontiguousarray(checkpoint.history).tobytes())
            self.db.execute("INSERT OR REPLACE INTO history (model, first, n, rows) VALUES (?, ?, ?, ?)", row)
            oldest = checkpoint.first + n - MOST
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

    # --- answers ------------------------------------------------------------------------------------------------------

    def add_answers(self, answers: Sequence[Answer]) -> None:
        """Rows with these ids wait no more."""
        ids = [(answer.model, answer.id) for answer in answers]
        self.db.executemany("DELETE FROM waiting WHERE model = ? AND id = ?", ids)
        self.db.executemany(
            "INSERT OR REPLACE INTO answers (model, id, seq, label, answer) VALUES (?, ?, ?, ?, ?)", answers
        )

    def answer(self, model: int, id: str) -> tuple[str, bytes] | None:
        """The label, and what was answered."""
        found = self.db.execute("SELECT label, answer FROM answers WHERE model = ? AND id = ?", (model, id))
        return found.fetchone()

    # --- waiting rows -------------------------------------------------------------------------------------------------

    def wait(self, model: int, id: str, at: float, row: bytes, answer: bytes) -> None:
        self.db.execute(
            "INSERT INTO waiting (model, id, time, row, answer) VALUES (?, ?, ?, ?, ?)", (model, id, at, row, answer)
        )

    def waiting(self, model: int, id: str) -> tuple[bytes, bytes] | None:
        """The row, and what was answered."""
        return self.db.execute("SELECT row, answer FROM waiting WHERE model = ? AND id = ?", (model, id)).fetchone()

    def n_waiting(self, model: int) -> int:
        return self.db.execute("SELECT count(*) FROM waiting WHERE model = ?", (model,)).fetchone()[0]

    def expire(self, model: int, before: float, excess: int) -> int:
        """Drop the rows that wait since before a moment, and at least so many of the oldest."""
        old = "SELECT id FROM waiting WHERE model = ? AND time < ? ORDER BY time"
        ids = [id for (id,) in self.db.execute(old, (model, before))]
        if len(ids) < excess:
            found = self.db.execute("SELECT id FROM waiting WHERE model = ? ORDER BY time LIMIT ?", (model, excess))
            ids = [id for (id,) in found]
        self.db.executemany("DELETE FROM waiting WHERE model = ? AND id = ?", [(model, id) for id in ids])
        self.db.executemany("INSERT INTO expired (model, id) VALUES (?, ?)", [(model, id) for id in ids])
        if ids:
            self.db.execute("DELETE FROM expired WHERE n <= (SELECT max(n) FROM expired) - ?", (MOST_EXPIRED,))
            self.db.execute("UPDATE models SET n_expired = n_expired + ? WHERE id = ?", (len(ids), model))
        return len(ids)

    def has_expired(self, model: int, id: str) -> bool:
        found = self.db.execute("SELECT 1 FROM expired WHERE model = ? AND id = ?", (model, id)).fetchone()
        return found is not None
