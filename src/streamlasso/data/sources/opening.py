"""From a path, an address, or standard input, to a source; of a file the content decides, not the name."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from streamlasso.data.sources.base import Address, BadRows, Rows, Source
from streamlasso.data.sources.delimited import Delimited
from streamlasso.data.sources.excel import Excel
from streamlasso.data.sources.json_lines import JsonLines
from streamlasso.data.sources.kafka import Kafka
from streamlasso.data.sources.lines import BYTE_ORDER_MARK
from streamlasso.data.sources.svmlight import Svmlight
from streamlasso.data.sources.tables import ArrowFile, ArrowStream, Parquet
from streamlasso.data.sources.vowpal import Vowpal

#: The formats, asked in this order; the last takes any text.
SOURCES: list[type[Source]] = [Parquet, ArrowFile, ArrowStream, Excel, JsonLines, Svmlight, Vowpal, Delimited]
#: What is not a file, by how its address begins.
ADDRESSES: list[type[Address]] = [Kafka]
GZIP, UTF_16, OLD_EXCEL = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff"), b"\xd0\xcf\x11\xe0"
KNOWN = "CSV, TSV, JSON lines, Excel, Parquet, Arrow, svmlight and Vowpal Wabbit text, also compressed with gzip"


def open_source(data: str, bad_rows: BadRows, place: dict[str, Any] | None = None) -> Rows:
    """The rows of a file, of an address, or of standard input if `data` is "-".

    `place` is where a run that continues has come, if the source can go on there (see `Address`).

    >>> import tempfile
    >>> from pathlib import Path
    >>> from streamlasso.data.sources import BadRows, open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "stream.csv")
    ...     _ = path.write_text("x,y\\n1,2\\n3,4\\n")
    ...     source = open_source(str(path), BadRows())
    ...     [block.rows.to_pydict() for block in source.blocks()]
    [{'x': ['1', '3'], 'y': ['2', '4']}]
    """
    try:
        address = address_of(data)
        if address is not None:
            return address.at(data, bad_rows, place)
        with undamaged():
            return _recognised(_opened(data), data, bad_rows)
    except ValueError as error:
        raise ValueError(f"{name_of(data)}: {error}") from error


def address_of(data: str) -> type[Address] | None:
    """What an address begins with decides; None of a path."""
    return next((address for address in ADDRESSES if data.startswith(address.scheme)), None)


def name_of(data: str) -> str:
    """What messages call a source."""
    return "standard input" if data == "-" else data


def _opened(data: str) -> io.BufferedReader:
    if data == "-":
        if sys.stdin is None:
            raise ValueError("it is closed: pipe the rows in, or name a file")
        return cast(io.BufferedReader, sys.stdin.buffer)
    if Path(data).is_dir():
        raise ValueError(f"it is a directory: use a file ({KNOWN}), or - for standard input")
    return open(data, "rb")


def _recognised(stream: io.BufferedReader, data: str, bad_rows: BadRows) -> Source:
    start, extensions = stream.peek(64)[:4096], [extension.lower() for extension in Path(data).suffixes]
    if start.startswith(GZIP):
        stream = cast(io.BufferedReader, gzip.GzipFile(fileobj=stream))
        start, extensions = stream.peek(64)[:4096], [extension for extension in extensions if extension != ".gz"]
    _refuse(start, extensions[-1] if extensions else "")
    for source in SOURCES:
        if source.recognises(start):
            return source(stream, bad_rows, live=data == "-")
    raise ValueError(f"its format is unknown: use {KNOWN}")


def _refuse(start: bytes, extension: str) -> None:
    if any(extension in source.extensions and not source.recognises(start) for source in SOURCES):
        raise ValueError(f"its name ends in {extension}, but its content does not: it is damaged, or of another format")
    if start.startswith(OLD_EXCEL):
        raise ValueError("it is a workbook of an old Excel: save it as .xlsx or CSV")
    if start.startswith(UTF_16):
        raise ValueError("it is text in UTF-16: convert it to UTF-8, say with iconv -f utf-16 -t utf-8")
    if start.removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"[") and extension == ".json":
        raise ValueError("it is a JSON array: convert it to one object per line, say with jq -c '.[]'")


@contextmanager
def undamaged() -> Iterator[None]:
    """Within it, what a damaged gzip file raises is an error in words."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"the gzip file is cut short or damaged ({error})") from error
