"""The JSON bodies of requests. msgspec refuses what is of another shape or beyond a limit."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from streamlasso.serve.learning.rows import Rows
from streamlasso.serve.limits import (
    LARGEST_INTEGER,
    LARGEST_NUMBER,
    LONGEST_ID,
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_NAMES,
    MOST_ROWS,
)
from streamlasso.serve.problems import Problem
from streamlasso.serve.store.log import Entry

Integer = Annotated[int, Meta(ge=-LARGEST_INTEGER, le=LARGEST_INTEGER)]
Number = Annotated[float, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
Value = bool | Integer | Number | Annotated[str, Meta(max_length=LONGEST_TEXT)] | None
Row = Annotated[dict[Annotated[str, Meta(max_length=LONGEST_NAME)], Value], Meta(max_length=MOST_NAMES)]
Id = Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
Several = Meta(min_length=1, max_length=MOST_ROWS)


class PredictBody(msgspec.Struct, forbid_unknown_fields=True):
    """A row, or several; with an id a row waits for its label."""

    row: Row | None = None
    rows: Annotated[list[Row], Several] | None = None
    id: Id | None = None
    ids: Annotated[list[Id], Several] | None = None

    def given(self) -> tuple[list[dict[str, Any]], list[str] | None]:
        """The rows, and their ids."""
        if self.row is not None and self.rows is None and self.ids is None:
            return [self.row], None if self.id is None else [self.id]
        if self.rows is not None and self.row is None and self.id is None:
            _check_ids(self.ids, len(self.rows))
            return self.rows, self.ids
        raise Problem(422, "give a row, and its id if you like; or rows, and their ids if you like")


class LearnBody(msgspec.Struct, forbid_unknown_fields=True):
    """A row and its label, or several; or the label of a row that was predicted before, by its id."""

    y: Value | Annotated[list[Value], Several]
    row: Row | None = None
    rows: Annotated[list[Row], Several] | None = None
    id: Id | None = None
    ids: Annotated[list[Id], Several] | None = None

    def entries(self, key: str | None) -> list[Entry]:
        """What goes into the log; `key` is that of the request."""
        if isinstance(self.y, list):
            return self._several(self.y, key)
        if self.y is None:
            raise Problem(422, "y is null: send the label when it is known")
        if self.rows is not None or self.ids is not None or (self.row is None and self.id is None):
            raise Problem(422, "give y with a row, an id, or both; or a list y with rows, ids, or both")
        return [Entry(self.id or key, [self.y], None if self.row is None else [self.row])]

    def _several(self, y: list[Any], key: str | None) -> list[Entry]:
        if self.row is not None or self.id is not None or (self.rows is None and self.ids is None):
            raise Problem(422, "a list y needs rows, ids, or both")
        if self.rows is not None and len(self.rows) != len(y):
            raise Problem(422, f"there are {len(self.rows):,} rows and {len(y):,} labels: give one label per row")
        if None in y:
            raise Problem(422, "y holds null: send a label when it is known")
        if self.ids is None:
            return [Entry(key, y, self.rows, is_batch=True)]
        _check_ids(self.ids, len(y))
        rows = [None] * len(y) if self.rows is None else [[row] for row in self.rows]
        return [Entry(id, [label], row) for id, label, row in zip(self.ids, y, rows, strict=True)]


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


_checked = msgspec.json.Decoder(Row).decode


def row_of_line(line: bytes) -> dict[str, Any]:
    """A line of JSON; a ValueError if it is none."""
    return _checked(line)


def checked_rows(rows: list[dict[str, Any]], target: str) -> Rows:
    """Rows from a table, whose target is one of its columns; a ValueError if a value is beyond a limit."""
    rows = msgspec.convert(rows, list[Row])
    return Rows(rows, [row.pop(target, None) for row in rows])


def _check_ids(ids: list[str] | None, n: int) -> None:
    if ids is None:
        return
    if len(ids) != n:
        raise Problem(422, f"there are {n:,} rows and {len(ids):,} ids: give one id per row")
    if len(set(ids)) < n:
        raise Problem(422, "two rows have the same id: give each its own")
