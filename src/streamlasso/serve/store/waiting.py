"""Rows that were predicted, and wait for their labels."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import msgspec

from streamlasso.serve.problems import Problem
from streamlasso.serve.store.database import Database

#: Ids of rows that have expired that are kept.
MOST_EXPIRED = 100_000


class Waiting:
    """By model and id: the row, what was answered, and why."""

    def __init__(self, database: Database) -> None:
        self.database, self.db = database, database.db

    def keep(self, requests: list[Any]) -> list[tuple[Any, int]]:
        """Put rows on disk that were predicted and have ids; a request that is refused gets its Problem. Returned are
        models with the number of rows that had to make room."""
        now, added, dropped = time.time(), Counter[Any](), Counter[Any]()
        with self.database.transaction():
            for request in requests:
                try:
                    added[request.model] += self._keep(request, now)
                except Problem as problem:
                    request.problem = problem.again()
            for model, n in added.items():
                excess = model.n_waiting + n - model.settings.waiting_most
                if excess > 0:
                    dropped[model] = self._drop(model.number, 0.0, excess)
        for model, n in added.items():
            model.n_waiting += n - dropped[model]
        return list(dropped.items())

    def _keep(self, request: Any, now: float) -> int:
        """How many rows are new; the answer to others is the first one."""
        model, new = request.model, []
        if not model.is_there:
            raise Problem(404, f"the model {model.name!r} was deleted")
        for k, (id, row) in enumerate(zip(request.ids, request.rows, strict=True)):
            key = model.number, id
            learnt = self.db.execute("SELECT 1 FROM answers WHERE model = ? AND id = ?", key).fetchone()
            if learnt is not None or key in self.database.pending:
                raise Problem(409, f"the id {id!r} was learnt already: use another id")
            before = self.db.execute("SELECT row, answer FROM waiting WHERE model = ? AND id = ?", key).fetchone()
            if before is None:
                answer, why = request.answers[k], request.explanations[k]
                why = {"id": id, "prediction": answer["prediction"], **why}
                new.append((*key, now, *map(msgspec.json.encode, (row, answer, why))))
            elif msgspec.json.decode(before[0]) != row:
                raise Problem(409, f"the id {id!r} was given to another row, which waits for its label")
            else:
                request.answers[k] = msgspec.json.decode(before[1])
        self.db.executemany("INSERT INTO waiting VALUES (?, ?, ?, ?, ?, ?)", new)
        return len(new)

    def explanation(self, model: int, id: str) -> bytes | None:
        """Why the row with this id was predicted as it was, as JSON; None if none waits."""
        with self.database.reading():
            found = self.db.execute(
                "SELECT explanation FROM waiting WHERE model = ? AND id = ?", (model, id)
            ).fetchone()
        return None if found is None else found[0]

    def count(self, model: int) -> int:
        return self.db.execute("SELECT count(*) FROM waiting WHERE model = ?", (model,)).fetchone()[0]

    def expire(self, models: list[Any]) -> list[tuple[Any, int]]:
        """Drop rows that waited too long: models, and how many of each."""
        waits = [model for model in models if model.is_there and model.n_waiting]
        if not waits:
            return []
        now = time.time()
        with self.database.transaction():
            dropped = [(model, self._drop(model.number, now - model.settings.waiting_age, 0)) for model in waits]
        for model, n in dropped:
            model.n_waiting -= n
        return [(model, n) for model, n in dropped if n]

    def _drop(self, model: int, before: float, excess: int) -> int:
        """Drop the rows that wait since before a moment, and at least so many of the oldest."""
        old = "SELECT count(*) FROM waiting WHERE model = ? AND time < ?"
        n = max(self.db.execute(old, (model, before)).fetchone()[0], excess)
        if n:
            oldest = "SELECT model, id FROM waiting WHERE model = ? ORDER BY time LIMIT ?"
            ids = self.db.execute(oldest, (model, n)).fetchall()
            self.db.executemany("DELETE FROM waiting WHERE model = ? AND id = ?", ids)
            self.db.executemany("INSERT INTO expired (model, id) VALUES (?, ?)", ids)
            self.db.execute("DELETE FROM expired WHERE n <= (SELECT max(n) FROM expired) - ?", (MOST_EXPIRED,))
            self.db.execute("UPDATE models SET n_expired = n_expired + ? WHERE id = ?", (n, model))
        return n
