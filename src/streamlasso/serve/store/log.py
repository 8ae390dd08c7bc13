"""The log of rows to learn: a request is appended, with a sync of the disk, before a model learns it."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import groupby
from typing import Any

import msgspec

from streamlasso.serve.learning.rows import Rows, unpacked
from streamlasso.serve.problems import Problem
from streamlasso.serve.store.database import Answer, Database

#: Entries that are removed for each that is appended: all at once would hold up requests for tens of milliseconds.
REMOVED = 4


class Entry:
    """Rows that are learnt together or not at all: one entry of the log.

    id : that of its row, or of the request, where that has several rows
    rows : None where only an id is given, until the row that waits is found
    answer : None until there is one; bytes, or a Problem
    """

    __slots__ = ("answer", "id", "is_batch", "n_bytes", "rows", "seq", "was_waiting", "y")

    def __init__(
        self, id: str | None, y: list[Any], rows: list[dict[str, Any]] | None, is_batch: bool = False, seq: int = 0
    ) -> None:
        self.id, self.y, self.is_batch, self.seq = id, y, is_batch, seq
        self.rows = None if rows is None else Rows(rows, y)
        self.n_bytes, self.was_waiting = 0, False
        self.answer: bytes | Problem | None = None

    @property
    def label(self) -> str:
        """What tells a retry from another label under the same id."""
        return _digest(self.y)

    @property
    def content(self) -> str:
        """The same of the rows; empty if the request has none."""
        return "" if self.rows is None else _digest(self.rows.rows)


def _digest(value: Any) -> str:
    return sha256(msgspec.json.encode(value)).hexdigest()


class Log:
    """Entries in the order in which they are learnt; their `part` is the number of their transaction.

    learnt_ids : which ids were learnt, and which rows wait for their labels
    in_checkpoints : by model, the last entry that is in a checkpoint, while there is something to remove
    """

    def __init__(self, database: Database) -> None:
        self.database, self.db = database, database.db
        self.part = self.db.execute("SELECT max(part) FROM log").fetchone()[0] or 0
        self.in_checkpoints: dict[int, int] = dict(self.db.execute("SELECT model, seq FROM checkpoints"))
        self.n_entries = self.db.execute("SELECT count(*) FROM log").fetchone()[0]

    def append(self, requests: list[Any], now: float) -> list[Any]:
        """Look up the ids of requests to learn, and put what is new on disk, all in one transaction. A request that is
        refused gets its Problem; one with an id that another request of this call has is returned, to come later."""
        later: list[Any] = []
        ids_of_all: set[tuple[int, str]] = set()
        n_added = 0
        with self.database.transaction():
            for request in requests:
                ids = {(request.model.number, entry.id) for entry in request.entries if entry.id is not None}
                if ids & ids_of_all:
                    later.append(request)
                    continue
                try:
                    for entry in request.entries:
                        self._find(request.model, entry)
                except Problem as problem:
                    request.problem = problem.again()
                    continue
                request.time = now
                ids_of_all |= ids
                n_added += self._add(request, now)
            n_removed = self.remove(REMOVED * n_added)
        self.part += 1
        self.n_entries += n_added - n_removed
        self.database.pending |= ids_of_all
        return later

    def _add(self, request: Any, now: float) -> int:
        new = [entry for entry in request.entries if entry.answer is None]
        for entry in new:
            rows = entry.rows.packed()
            entry.n_bytes = len(rows)
            values = (self.part + 1, request.model.number, entry.id, now, entry.is_batch, rows)
            insert = "INSERT INTO log (part, model, id, time, is_batch, rows) VALUES (?, ?, ?, ?, ?, ?)"
            entry.seq = self.db.execute(insert, values).lastrowid
        return len(new)

    def _find(self, model: Any, entry: Entry) -> None:
        """Look up the id: it may be one that was learnt, or one whose row waits."""
        if not model.is_there:
            raise Problem(404, f"the model {model.name!r} was deleted")
        if entry.id is None:
            return
        key = model.number, entry.id
        learnt = self.db.execute("SELECT label, row, answer FROM answers WHERE model = ? AND id = ?", key).fetchone()
        if learnt is not None:
            label, row, answer = learnt
            if label != entry.label or entry.content not in ("", row):
                raise Problem(409, f"the id {entry.id!r} was learnt with another label or row: use another id")
            entry.answer = answer
            return
        found = self.db.execute("SELECT row FROM waiting WHERE model = ? AND id = ?", key).fetchone()
        if found is not None and not entry.is_batch:
            row = msgspec.json.decode(found[0])
            if entry.rows is not None and entry.rows.rows != [row]:
                raise Problem(409, f"the id {entry.id!r} was predicted with another row: leave the row out")
            entry.rows, entry.was_waiting = Rows([row], entry.y), True
        elif entry.rows is None and self.db.execute("SELECT 1 FROM expired WHERE model = ? AND id = ?", key).fetchone():
            raise Problem(410, f"the row with the id {entry.id!r} waited too long for its label: send the row again")
        elif entry.rows is None:
            raise Problem(404, f"no row with the id {entry.id!r} waits for its label: send the row with it")

    def answered(self, model: Any, entries: list[Entry]) -> None:
        """Keep the answers to ids for the next transaction; an id that was refused is free again."""
        for entry in entries:
            if entry.id is None:
                continue
            if isinstance(entry.answer, bytes) and model.is_there:
                answer = Answer(model.number, entry.id, entry.seq, entry.label, entry.content, entry.answer)
                self.database.unsaved.append(answer)
            self.database.pending.discard((model.number, entry.id))

    def parts(self, model: int, after: int, before: int) -> Iterator[tuple[float, list[Entry]]]:
        """The entries of a model between two, as they were learnt: those of a transaction together, with its time."""
        found = self.db.execute(
            "SELECT part, time, seq, id, is_batch, rows FROM log WHERE model = ? AND seq > ? AND seq < ? ORDER BY seq",
            (model, after, before),
        )
        for (_, at), group in groupby(found, lambda row: row[:2]):
            entries = []
            for _, _, seq, id, is_batch, data in group:
                rows = unpacked(data)
                entries.append(Entry(id, rows.y, rows.rows, bool(is_batch), seq))
                entries[-1].n_bytes = len(data)
            yield at, entries

    def forget(self, seq: int) -> None:
        """Remove an entry that cannot be learnt."""
        with self.database.transaction():
            self.db.execute("DELETE FROM log WHERE seq = ?", (seq,))
        self.n_entries -= 1

    # --- what checkpoints have ----------------------------------------------------------------------------------------

    def tidy(self, most: int = -1) -> None:
        """Remove entries that are in checkpoints, also when nothing is appended."""
        if self.in_checkpoints:
            with self.database.transaction():
                n_removed = self.remove(most)
            self.n_entries -= n_removed

    def remove(self, most: int) -> int:
        """So many entries that are in checkpoints, within a transaction: how many there were; -1 for all of them."""
        n_removed = 0
        for model, seq in list(self.in_checkpoints.items()):
            if n_removed == most:
                break
            choose = "SELECT seq FROM log WHERE model = ? AND seq <= ? ORDER BY seq LIMIT ?"
            limit = -1 if most < 0 else most - n_removed
            n = self.db.execute(f"DELETE FROM log WHERE seq IN ({choose})", (model, seq, limit)).rowcount
            n_removed += n
            if n != limit:
                del self.in_checkpoints[model]
        return n_removed
