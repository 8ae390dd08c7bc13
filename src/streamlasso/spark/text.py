"""Bytes as ASCII, for Spark's state store.

Spark hands bytes of the state store to Python as text in which every other byte takes two, and both sides are slow at
it. ASCII takes an eighth more than the bytes, and goes through as it is.

    length ":" seven bits of each byte, then their eighth bits, as bytes of their own and by the same rule
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

ONES = np.uint64(0x0101010101010101)
SEVEN = np.uint64(0x7F7F7F7F7F7F7F7F)
#: A multiplication by it brings the lowest bits of eight bytes together in the highest byte.
GATHER = np.uint64(0x0102040810204080)
#: Fewer bytes than this are written in hexadecimal digits.
FEW = 8


def _gathered(words: np.ndarray) -> np.ndarray:
    """The eighth bits of eight bytes each, as a byte."""
    bits = words >> np.uint64(7)
    bits &= ONES
    bits *= GATHER
    return bits.view(np.uint8)[7::8]


def _spread() -> np.ndarray:
    """By what `_gathered` makes of them: eight bytes that have nothing but their eighth bits."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1)
    words = (bits << 7).view("<u8").ravel()
    return words[np.argsort(_gathered(words))]


SPREAD = _spread()


def to_text(data: bytes) -> str:
    """
    >>> to_text(b"many")
    '4:6d616e79'
    """
    return f"{len(data)}:" + b"".join(_parts(np.frombuffer(data, np.uint8))).decode("ascii")


def _parts(data: np.ndarray) -> Iterator[bytes]:
    while len(data) >= FEW:
        words = np.frombuffer(data.tobytes().ljust(-(-len(data) // 8) * 8, b"\0"), "<u8")
        yield (words & SEVEN).tobytes()
        data = _gathered(words)
    yield data.tobytes().hex().encode()


def from_text(text: str) -> bytes:
    """
    >>> from_text("4:6d616e79")
    b'many'
    """
    start = text.index(":") + 1
    sizes = [int(text[: start - 1])]
    while sizes[-1] >= FEW:
        sizes.append(-(-sizes[-1] // 8))
    data = np.frombuffer(text.encode("ascii"), np.uint8)
    ends = start + np.cumsum([8 * n for n in sizes[1:]])
    eighth = np.frombuffer(bytes.fromhex(text[ends[-1] if len(ends) else start :]), np.uint8)
    for n, end, size in zip(sizes[:0:-1], ends[::-1], sizes[-2::-1], strict=True):
        words = np.frombuffer(data[end - 8 * n : end].tobytes(), "<u8") | SPREAD[eighth]
        eighth = words.view(np.uint8)[:size]
    return eighth.tobytes()
