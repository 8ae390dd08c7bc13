"""Bodies of numbers are read as the JSON decoder reads them, or left to it."""

import json
import random
import struct

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlasso.serve.messages import LearnBody, decoded
from streamlasso.serve.problems import Problem
from streamlasso.serve.rows import JsonRows
from streamlasso.serve.scanned import columns_in

DECODER = msgspec.json.Decoder(LearnBody)


def same_or_left(body):
    """Whether it was read; if so, then as the decoder and Python's float do."""
    found = columns_in(body)
    if found is None:
        return False
    columns, (y, whole) = found
    decoded(DECODER, body).entries(None, body)
    plain = json.loads(body)
    names = list(plain["rows"][0])
    assert list(columns) == names
    for name in names:
        values, is_whole = columns[name]
        cells = [row[name] for row in plain["rows"]]
        assert values.tobytes() == np.array(cells, float).tobytes()
        assert is_whole == all(isinstance(cell, int) for cell in cells)
    assert y.tobytes() == np.array(plain["y"], float).tobytes()
    assert whole == all(isinstance(label, int) for label in plain["y"])
    return True


def body_of(*numbers):
    return b'{"rows": [%s], "y": [%s]}' % (
        b",".join(b'{"a":%s}' % number for number in numbers),
        b",".join(numbers),
    )


NUMBERS = b"""0 -0 -0.0 7 -12 1.5 1e22 1e-22 1E+5 1.25e-7 0.1 9007199254740993.0 0.30000000000000004
    1.7976931348623157e308 5e-324 2.5e-400 1e-0000005 123456789012345678 18446744073709551616.0 184467440737095516160.5
    0.000000000000000000000000012345678901234567""".split()
NOT_READ = b"""01 1. .5 +1 - 1e 1e+ 1e999 NaN Infinity null true "1" 0x10 1_0 9007199254740993 18446744073709551616
    1e12345 --1""".split()
NOT_READ += [b"1 2", b"", b"1\x00"]


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_those_of_the_decoder(number):
    taken = same_or_left(body_of(number, b"1"))
    assert taken or number == b"123456789012345678"


@pytest.mark.parametrize("number", NOT_READ)
def test_what_is_no_number_is_left(number):
    assert columns_in(body_of(b"1", number)) is None
    assert columns_in(body_of(number, b"1")) is None


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_floats_of_all_digits(values):
    assert same_or_left(body_of(*(repr(value).encode() for value in values)))


def test_digits_at_random_and_halfway_between_two_doubles():
    rng = random.Random(0)
    for _ in range(3000):
        digits = "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 22)))
        at = rng.randint(0, len(digits))
        text = f"{digits[:at].lstrip('0') or '0'}.{digits[at:] or '0'}"
        assert same_or_left(body_of(text.encode() + rng.choice([b"", b"e3", b"E-11", b"e+20"])))
        low = struct.unpack("d", struct.pack("q", rng.randrange(1 << 62)))[0]
        if 1e-8 < low < 1e15:
            middle = np.longdouble(low) + (np.longdouble(np.nextafter(low, np.inf)) - np.longdouble(low)) / 2
            assert same_or_left(body_of(np.format_float_positional(middle, precision=18, trim="0").encode()))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"{}",
        b'{"rows":[],"y":[]}',
        b'{"rows":[{}],"y":[1]}',
        b'{"rows":[{"a":1}],"y":[]}',
        b'{"rows":[{"a":1}],"y":[1,2]}',
        b'{"rows":[{"a":1}],"y":[1],}',
        b'{"rows":[{"a":1},],"y":[1]}',
        b'{"rows":[{"a":1,}],"y":[1]}',
        b'{"rows":[{"a":1}{"a":2}],"y":[1,2]}',
        b'{"rows":[{"a":1}],"y":[1]}x',
        b'{"rows":[{"a":1}],"y":[1]',
        b'{"rows":[{"a":1}],"y":[1],"id":"x"}',
        b'{"rows":[{"a":1}],"rows":[{"a":1}]}',
        b'{"y":[1],"y":[1]}',
        b'{"rows":[{"a":1,"a":2}],"y":[1]}',
        b'{"rows":[{"a":1},{"b":1}],"y":[1,2]}',
        b'{"rows":[{"a":1},{"a":1,"b":1}],"y":[1,2]}',
        b'{"rows":[{"a\\u0041":1}],"y":[1]}',
        '{"rows":[{"ä":1}],"y":[1]}'.encode(),
        b'{"rows":[{"a\x01":1}],"y":[1]}',
        b'{"rows":{"a":1},"y":[1]}',
        b'{"row":{"a":1},"y":1}',
        b'{"rows":[{"%s":1}],"y":[1]}' % (b"n" * 1001),
        json.dumps({"rows": [{"a": 1}] * 10_001, "y": [1] * 10_001}).encode(),
        json.dumps({"rows": [{f"n{j}": 1 for j in range(1001)}], "y": [1]}).encode(),
    ],
)
def test_other_bodies_are_left(body):
    assert columns_in(body) is None


def test_blanks_and_the_other_order():
    body = b' {\n"y" :\t[ 1 , 2.5 ] ,\r\n "rows" : [ { "a" : 1 , "b c" : 2 } , {"a":3,"b c":4} ] } '
    assert same_or_left(body)
    assert same_or_left(
        json.dumps({"rows": [{"a": i / 7, "b": i} for i in range(10_000)], "y": [1.5] * 10_000}).encode()
    )


def test_mutations_are_read_as_the_decoder_does_or_left():
    rng = random.Random(1)
    good = json.dumps({"rows": [{"a": 1.5, "bb": -2}, {"a": 3e-5, "bb": 0}], "y": [0.25, 12]}).encode()
    pieces = [
        b'"',
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"-",
        b".",
        b"e",
        b"0",
        b"9" * 20,
        b"\x00",
        b" ",
        b'"a"',
        b"null",
    ]
    read = 0
    for _ in range(20_000):
        body = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(body))
            if rng.random() < 0.5:
                body[at:at] = rng.choice(pieces)
            else:
                del body[at : at + rng.randint(1, 3)]
        read += same_or_left(bytes(body))
    assert read > 500


def test_rows_are_the_same_objects_and_the_same_table():
    rows = [{"a": i / 3, "b": i} for i in range(5)]
    body = json.dumps({"rows": rows, "y": [1, 2, 3, 4, 5]}).encode()
    scanned, plain = JsonRows.scanned(body), JsonRows(rows, [1, 2, 3, 4, 5])
    assert scanned.table(["b", "a", "c"], "y").equals(plain.table(["b", "a", "c"], "y"))
    assert (scanned.dicts(), scanned.labels(), scanned.names(), len(scanned)) == (rows, plain.labels(), {"a", "b"}, 5)
    assert scanned.packed() == body
    part = scanned.part(1, 3)
    assert (part.dicts(), part.labels()) == (rows[1:3], [2, 3])


def test_a_body_that_is_read_would_not_have_been_refused():
    with pytest.raises(Problem):
        decoded(DECODER, b'{"rows":[{"a":1}],"y":[1,2]}').entries(None, b"")
