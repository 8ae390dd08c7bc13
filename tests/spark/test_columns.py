"""Rows reach their page as they came, nulls included, however Spark cuts them."""

import numpy as np
import pytest

pytest.importorskip("pyspark", reason='needs pyspark: pip install "streamlasso[spark]"')
pytest.importorskip("google.protobuf", reason='needs protobuf: pip install "streamlasso[spark]"')

import pyarrow as pa

from streamlasso import RAPClassifier, RAPRegressor
from streamlasso.spark.columns import _packed, unpacked
from streamlasso.spark.job import Job

NAMES = ("a", "b")
NUMBERS = Job(RAPRegressor(), NAMES)
CLASSES = Job(RAPClassifier(), NAMES, classes={"no": "no", "yes": "yes"})
ROWS = [
    # page, key, id, number, time, has_time, x, y
    (3, "shop 1", "10", 10, 7, True, [1.0, 2.0], 0.5),
    (0, None, "11", 11, 6, True, [None, 4.0], 1.5),
    (3, "shop 3", None, 0, 0, False, [None, None], None),
    (3, "shop 1", "13", 13, -5, True, [np.inf, np.nan], -2.5),
    (0, "Bäcker", "14", 2**60 + 1, 8, True, [5.0, 6.0], 3.5),
]


def batches(rows, cut, kind):
    names = ("page", "key", "id", "number", "time", "has_time", "x", "y")
    kinds = (pa.int32(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.bool_(), pa.list_(pa.float64()), kind)
    schema = pa.schema(list(zip(names, kinds, strict=True)))
    for part in (rows[:cut], rows[cut:]):
        yield pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in part], schema)


@pytest.mark.parametrize("cut", range(len(ROWS) + 1))
@pytest.mark.parametrize("job", [NUMBERS, CLASSES], ids=["numbers", "classes"])
def test_rows_reach_their_page(job, cut):
    rows, kind = ROWS, pa.float64()
    if job is CLASSES:
        rows = [(*row[:-1], None if row[-1] is None else "yes") for row in ROWS]
        kind = pa.string()
    parts = {}
    for batch in _packed(batches(rows, cut, kind)):
        for row in batch.to_pylist():
            parts.setdefault(row["page"], []).append(row["rows"])
    assert parts.keys() == {0, 3}
    for page, data in parts.items():
        events, expected = unpacked(job, data), [row for row in rows if row[0] == page]
        columns = [[row[i] for row in expected] for i in range(1, 6)]
        assert [events.keys, events.ids, events.order, events.time, events.has_time] == columns
        np.testing.assert_array_equal(events.X, np.array([row[6] for row in expected], dtype=float))
        y = [row[7] for row in expected]
        np.testing.assert_array_equal(events.y, y if job is CLASSES else np.array(y, dtype=float))
