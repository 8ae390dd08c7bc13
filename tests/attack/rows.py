"""Rows that wish us harm: in files of every format, and in requests to the service."""

import json
import random
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import numpy as np

from streamlasso.cli import main

CELLS = [
    *("", "1", "-1.5", "inf", "-inf", "1e400", "9" * 400, "nan", "NA", "1,5", "(12.50)", "5 kg", "0x10", "1_000"),
    *("[/b]", "=1+1", "@x", "\x1b[2J", "a,b", "a\tb", 'q"q', '"', "é", "\ud800", "\0", "\u202e", "x" * 5000, "#"),
    *("2026-01-01", "2026-13-45", "true", "None", "{}", "[1, 2]", "1e-320", "-0", "00012", " 7 ", "١٢"),
]
NAMES = ["z", "[/b]", "=z", "a,b", "\x1b[2J", "x ", "z" * 300, "é"]
#: What is done with the rows, and how many at most are worth it: one model takes microseconds, a mixture more, and
#: classes, of which every hostile cell may be one, far more.
ONE = ["--tuner", "logrms"]
NUMBERS = [*ONE, "--family", "gaussian"]
WAYS = [
    (50_000, NUMBERS),
    (50_000, [*NUMBERS, "--lags", "none", "--coverage", "0.9", "--predictions", "out.csv"]),
    (50_000, [*NUMBERS, "--keep", "x", "--memory", "0.9", "--predictions", "out.jsonl"]),
    (5_000, [*ONE, "--family", "poisson", "--predictions", "out.parquet"]),
    (5_000, [*NUMBERS, "--key", "x"]),
    (5_000, [*NUMBERS, "--text", "x"]),
    (500, ["--family", "gaussian"]),
    (500, ["--family", "gamma", *ONE]),
    (500, ONE),
    (500, ["--family", "binomial", *ONE]),
    (50, []),
    (50, ["--on-error", "stop", *ONE]),
]


def hostile_rows(rng, folder):
    """Files of 50 to 50,000 rows with hostile cells and names, in five formats: read, skipped or refused in one line.

    Then the model that was learnt predicts them.
    """
    while True:
        most, options = WAYS[rng.integers(len(WAYS))]
        n = most if most > 500 else int(rng.integers(min(most, 40), most + 1))
        path = hostile_file(rng, folder, n)
        out = folder / "out"
        (out / "model.safetensors").unlink(missing_ok=True)
        options = [str(out / word) if word.startswith("out.") else word for word in options]
        skip = [] if "--on-error" in options else ["--on-error", "skip"]
        fine = _quiet(["run", str(path), "--target", "y", "--out", str(out), *options, *skip, "--quiet"])
        yield n, n * (not fine)
        if (out / "model.safetensors").exists():
            command = ["predict", str(out / "model.safetensors"), str(path), "--out", str(out / "p.csv")]
            fine = _quiet([*command, "--on-error", "skip", "--quiet"])
            yield n, n * (not fine)


def hostile_file(rng, folder, n):
    """Numbers with hostile cells among them, in one row in three at most, and fewer in the target."""
    names = ["x", str(NAMES[rng.integers(len(NAMES))]), "y"]
    rows = [[f"{value:.3f}" for value in row] for row in rng.normal(size=(n, 3)).tolist()]
    for i, cell in zip(rng.integers(n, size=rng.integers(1, n // 3)).tolist(), _cells(rng), strict=False):
        rows[i][int(rng.choice(3, p=[0.45, 0.45, 0.1]))] = cell
    path = folder / f"data.{['csv', 'csv', 'jsonl', 'tsv', 'txt'][rng.integers(5)]}"
    write(path, names, rows)
    return path


def _cells(rng):
    """Few kinds in a file, so that a column can still be one of numbers."""
    some = rng.choice(len(CELLS), size=rng.integers(1, 6))
    while True:
        yield CELLS[some[rng.integers(len(some))]]


def write(path, names, rows):
    if path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(names, map(_typed, row), strict=True))) for row in rows]
    else:
        delimiter = {".csv": ",", ".txt": ";"}.get(path.suffix, "\t")
        quoted = [[f'"{cell}"' if delimiter in cell else cell for cell in row] for row in [names, *rows]]
        lines = [delimiter.join(row) for row in quoted]
    path.write_text("\n".join(lines) + "\n", errors="replace")


def _typed(cell):
    try:
        return float(cell) if cell[-1:].isdigit() and len(cell) < 300 else cell
    except ValueError:
        return cell


def _quiet(command):
    errors = StringIO()
    with redirect_stderr(errors), redirect_stdout(StringIO()), np.errstate(all="ignore"):
        status = main(command)
    text = errors.getvalue()
    return status in (0, 2) and text.count("\n") <= 1 and "\x1b" not in text


# --- requests ---------------------------------------------------------------------------------------------------------

#: Numbers as JSON has them, and what looks like one.
NUMBER = b"""0 -0 -0.0 0.0 7 -12 1.5 1e22 1e23 1e-22 1e-23 1E+5 1.25e-7 0.1 9007199254740991 9007199254740992
    9007199254740993 9007199254740993.0 0.30000000000000004 1.7976931348623157e308 1.7976931348623159e308 1e308 1e309
    5e-324 2e-324 2.5e-400 1e-0000005 123456789012345678 18446744073709551616 18446744073709551615.5 1e400 -1e400 1e9999
    1e10000 1e99999999999999999999 01 -01 1. .5 +1 - 1e 1e+ 1.e5 NaN -NaN Infinity -Infinity null true false "1" 0x10
    1_0 --1 1-1 1e5.5 1e5e5 0e0 0e999 -0e-999 0.00000000000000000000000000000000000000000000001 [] {} [1]
    179769313486231580793728971405301e276 8.5e15 4503599627370497.5 4503599627370496.49999999999999999999""".split()
NUMBER += [b"9" * 400, b"0." + b"0" * 400 + b"1", b"1" + b"0" * 400 + b"e-400", b"1" * 25 + b"." + b"1" * 25]
NAME = [b"a", b"bb", b"", b"a b", b"x" * 1000, b"x" * 1001, b"\\u0041", b"\\n", b"\\", b"\xc3\xa9", b"\xff", b"\\ud800"]
NAME += [b"\x00", b"\x7f", b"rows", b"y", b"__class__"]
PIECES = [*b'"{}[],:-.eE+0 \t\r\n\\/', 0, 0x7F, 0x80, 0xFF, 0xEF]
BLANKS = [b"", b"", b"", b" ", b"\n", b"\t\r ", b"\x0b", b"\xa0", b"\xef\xbb\xbf"]


def bodies(rng, folder):
    """Requests to learn rows: refused by the service in a sentence, or read, and then the log gives the same back."""
    import msgspec

    from streamlasso.serve.http.bodies import LearnBody
    from streamlasso.serve.learning.rows import unpacked
    from streamlasso.serve.problems import Problem

    draw, decoder = random.Random(int(rng.integers(2**62))), msgspec.json.Decoder(LearnBody)
    while True:
        body = _body(draw)
        try:
            (entry,) = decoder.decode(body).entries(None)
        except (msgspec.DecodeError, Problem, UnicodeDecodeError):
            yield 1, 0
            continue
        again = unpacked(entry.rows.packed())
        plain = json.loads(body)
        yield 1, int((again.rows, again.y) != (plain["rows"], plain["y"]))


def _body(draw):
    names = [draw.choice(NAME) if draw.random() < 0.05 else b"n%d" % j for j in range(draw.randint(1, 4))]
    odd, blanks = draw.choice([0.0, 0.0, 0.02, 0.2]), draw.random() < 0.2

    def blank():
        return draw.choice(BLANKS[:6] if draw.random() < 0.99 else BLANKS) if blanks else b""

    def number():
        if draw.random() < odd:
            return draw.choice(NUMBER)
        way = draw.random()
        if way < 0.3:
            return b"%d" % draw.randint(-(10**6), 10**6)
        if way < 0.6:
            return repr(draw.gauss(0, 1)).encode()
        digits = "".join(draw.choices("0123456789", k=draw.randint(1, 24)))
        at = draw.randint(0, len(digits) - 1)
        power = draw.choice(["", "", f"e{draw.randint(-330, 310)}", f"E+{draw.randint(0, 30)}"])
        return f"{'-' * draw.randint(0, 1)}{digits[:at].lstrip('0') or '0'}.{digits[at:]}{power}".encode()

    def row():
        inner = b",".join(b'%s"%s"%s:%s%s%s' % (blank(), name, blank(), blank(), number(), blank()) for name in names)
        return b"{%s}" % inner

    n = draw.choice([1, 2, 3, 130]) if draw.random() < 0.9 else draw.randint(1, 300)
    rows = b'"rows"%s:%s[%s]' % (blank(), blank(), (b"," + blank()).join(row() for _ in range(n)))
    y = b'"y"%s:%s[%s]' % (blank(), blank(), b",".join(number() for _ in range(n + (draw.random() < 0.02))))
    parts = [rows, y] if draw.random() < 0.7 else [y, rows]
    body = bytearray(b"%s{%s%s,%s}%s" % (blank(), blank(), parts[0], parts[1], blank()))
    for _ in range(draw.choice([0, 0, 1, 1, 2, 5])):
        _spoil(draw, body)
    return bytes(body)


def _spoil(draw, body):
    at, way = draw.randrange(len(body) + 1), draw.random()
    if way < 0.3:
        body[at:at] = bytes([draw.choice(PIECES)])
    elif way < 0.5:
        body[at : at + draw.randint(1, 3)] = b""
    elif way < 0.7:
        body[at : at + 1] = bytes([draw.choice(PIECES)])
    elif way < 0.8:
        del body[at:]
    elif way < 0.9:
        body[at:at] = body[at : at + draw.randint(1, 40)]
    else:
        body[at:at] = draw.choice(NUMBER)
