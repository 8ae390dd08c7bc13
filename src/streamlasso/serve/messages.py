"""The bodies of requests: what is not like this is refused before anything looks at it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from streamlasso.serve.live import Entry, as_label
from streamlasso.serve.problems import Problem
from streamlasso.serve.rows import JsonRows

#: The most rows in a request, features in a row, and characters of a value, a name and an id.
MOST_ROWS, MOST_NAMES, LONGEST_TEXT, LONGEST_NAME, LONGEST_ID = 10_000, 1000, 10_000, 1000, 200

Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
Value = bool | int | float | Text | None
Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
Row = Annotated[dict[Name, Value], Meta(max_length=MOST_NAMES)]
Rows = Annotated[list[Row], Meta(min_length=1, max_length=MOST_ROWS)]
Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
Ids = Annotated[list[Id], Meta(min_length=1, max_length=MOST_ROWS)]
Labels = Annotated[list[Value], Meta(min_length=1, max_length=MOST_ROWS)]


class PredictBody(msgspec.Struct, forbid_unknown_fields=True):
    """A row, or several; with an id a row waits for its label."""

    row: Row | None = None
    rows: Rows | None = None
    id: Id | None = None
    ids: Ids | None = None

    def taken(self) -> tuple[list[dict[str, Value]], list[str] | None]:
        """The rows, and their ids."""
        if self.row is not None and self.rows is None and self.ids is None:
            return [self.row], None if self.id is None else [self.id]
        if self.rows is not None and self.row is None and self.id is None:
            return self.rows, _checked_ids(self.ids, len(self.rows))
        raise Problem(422, "give a row, and its id if you like; or rows, and their ids if you like")


class LearnBody(msgspec.Struct, forbid_unknown_fields=True):
    """A row and its label, or several; or the label of a row that was predicted before, by its id."""

    y: Value | Labels
    row: Row | None = None
    rows: Rows | None = None
    id: Id | None = None
    ids: Ids | None = None

    def entries(self, key: str | None, body: bytes) -> list[Entry]:
        """What goes into the log; `key` is that of the request, and `body` all of it."""
        if isinstance(self.y, list):
            return self._many(self.y, key, body)
        if self.y is None:
            raise Problem(422, "y is null: send the label when it is known")
        if self.rows is not None or self.ids is not None or (self.row is None and self.id is None):
            raise Problem(422, "give y with a row, an id, or both; or a list y with rows, ids, or both")
        id = self.id if self.id is not None else key
        rows = None if self.row is None else JsonRows([self.row], [self.y])
        return [Entry(rows, id, as_label(JsonRows([], [self.y]), False))]

    def _many(self, y: list[Value], key: str | None, body: bytes) -> list[Entry]:
        n = len(y)
        if self.row is not None or self.id is not None or (self.rows is None and self.ids is None):
            raise Problem(422, "a list y needs rows, ids, or both")
        if self.rows is not None and len(self.rows) != n:
            raise Problem(422, f"there are {len(self.rows):,} rows and {n:,} labels: give one label per row")
        if None in y:
            raise Problem(422, "y holds null: send a label when it is known")
        ids = _checked_ids(self.ids, n)
        if ids is None:
            assert self.rows is not None
            return [many(JsonRows(self.rows, y, body), key)]
        singles = (
            [None] * n
            if self.rows is None
            else [JsonRows([row], [label]) for row, label in zip(self.rows, y, strict=True)]
        )
        return [
            Entry(row, id, as_label(JsonRows([], [label]), False))
            for row, id, label in zip(singles, ids, y, strict=True)
        ]


def many(rows: JsonRows, key: str | None) -> Entry:
    """Rows of a request that are learnt together."""
    return Entry(rows, key, as_label(rows, True) if key else "", True)


def decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """The body of a request: 400 where it is not JSON, 422 where it is something else than it should be."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, str(error)[:500]) from None
    except RecursionError:
        raise Problem(422, "the body has lists or objects within each other, too many of them") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, f"the body is not JSON: {error}"[:500]) from None


def _checked_ids(ids: list[str] | None, n: int) -> list[str] | None:
    if ids is None:
        return None
    if len(ids) != n:
        raise Problem(422, f"there are {n:,} rows and {len(ids):,} ids: give one id per row")
    if len(set(ids)) < n:
        raise Problem(422, "two rows have the same id: give each its own")
    return ids
