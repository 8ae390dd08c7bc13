"""From a path, or standard input, to a source: what is in the file decides, not what it is called."""

from __future__ import annotations

import gzip
import io
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from streamlasso.sources.base import Complaints, Source
from streamlasso.sources.delimited import Delimited
from streamlasso.sources.json_lines import JsonLines
from streamlasso.sources.tables import ArrowFile, ArrowStream, Parquet

GZIP, PARQUET, ARROW_FILE, ARROW_STREAM = b"\x1f\x8b", b"PAR1", b"ARROW1", b"\xff\xff\xff\xff"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
#: Ends of names that promise a format which is recognised by how it begins.
PROMISES = {".parquet": PARQUET, ".pq": PARQUET, ".feather": ARROW_FILE}
KNOWN = "CSV, TSV, JSON lines, Parquet and Arrow, also packed with gzip"


def open_source(data: str, complaints: Complaints) -> Source:
    """The rows of a file, or of standard input if `data` is "-".

    >>> import tempfile
    >>> from pathlib import Path
    >>> from streamlasso.sources import Complaints, open_source
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "stream.csv")
    ...     _ = path.write_text("x,y\\n1,2\\n3,4\\n")
    ...     source = open_source(str(path), Complaints())
    ...     [block.rows.to_pydict() for block in source.blocks()]
    [{'x': ['1', '3'], 'y': ['2', '4']}]
    """
    try:
        return _recognised(_opened(data), data, complaints)
    except ValueError as error:
        raise ValueError(f"{called(data)}: {error}") from error


def called(data: str) -> str:
    """What a source is called in words."""
    return "standard input" if data == "-" else data


def _opened(data: str) -> io.BufferedReader:
    if data == "-":
        return cast(io.BufferedReader, sys.stdin.buffer)
    if Path(data).is_dir():
        raise ValueError(f"a directory; name a file ({KNOWN}), or - for standard input")
    return open(data, "rb")


def _recognised(stream: io.BufferedReader, data: str, complaints: Complaints) -> Source:
    live, begins = data == "-", _beginning(stream)
    suffixes = [suffix.lower() for suffix in Path(data).suffixes]
    if begins.startswith(GZIP):
        stream = cast(io.BufferedReader, gzip.GzipFile(fileobj=stream))
        begins, suffixes = _beginning(stream), [suffix for suffix in suffixes if suffix != ".gz"]
    promised = PROMISES.get(suffixes[-1]) if suffixes else None
    if promised and not begins.startswith(promised):
        raise ValueError(f"it is called {suffixes[-1]}, but does not begin like one: damaged, or another format")
    if begins.startswith(PARQUET):
        return Parquet(_seekable(stream))
    if begins.startswith(ARROW_FILE):
        return ArrowFile(_seekable(stream))
    if begins.startswith(ARROW_STREAM):
        return ArrowStream(stream)
    if begins.startswith(UTF_16):
        raise ValueError("text in UTF-16; convert it, say with iconv -f utf-16 -t utf-8")
    if b"\0" in begins or begins.startswith(b"PK\x03\x04"):
        raise ValueError(f"an unknown format; {KNOWN} can be read")
    text = begins.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return JsonLines(stream, complaints, live=live)
    if text.startswith(b"[") and ".json" in suffixes:
        raise ValueError("a JSON array; one object a line is needed: jq -c '.[]' makes that of it")
    return Delimited(stream, complaints, live=live)


def _beginning(stream: io.BufferedReader) -> bytes:
    try:
        return stream.peek(64)[:4096]
    except (EOFError, OSError) as error:
        if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
            raise
        raise ValueError(f"the gzip file is cut short or damaged ({error})") from error


def _seekable(stream: io.BufferedReader) -> BinaryIO:
    """A file that is read from its end first has to lie on the disk, unpacked."""
    if isinstance(stream, io.BufferedReader) and stream.seekable():
        return stream
    copy = cast(BinaryIO, TemporaryFile())  # noqa: SIM115 (it lives as long as the source)
    shutil.copyfileobj(stream, copy, 1 << 20)
    copy.seek(0)
    return copy
