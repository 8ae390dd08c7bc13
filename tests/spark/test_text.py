"""Bytes go through Spark's state store as ASCII, and come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from streamlasso.spark.text import from_text, to_text


@given(st.binary(max_size=700))
def test_bytes_come_back(data):
    text = to_text(data)
    assert text.isascii()
    assert from_text(text) == data


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 4096, 4097])
def test_every_bit_of_every_length(n):
    for value in (0, 0x7F, 0x80, 0xFF):
        assert from_text(to_text(bytes([value]) * n)) == bytes([value]) * n
    assert len(to_text(bytes(n))) <= n * 8 / 7 + 40
