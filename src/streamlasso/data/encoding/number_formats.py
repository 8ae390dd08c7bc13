"""Numbers as people write them: 1,5 and 1.234,50 and 1,234.50 and 12 % and $5 and 5 kg; (12.50) is -12.50.

The format of a column is its decimal mark, followed by the sign or unit that all cells have, if any: "," or ".%" or
".kg". None is the format that every program reads. `detect_formats.py` finds it.
"""

from __future__ import annotations

import pyarrow
from pyarrow import compute

from streamlasso.data.sources.base import MISSING

SIGNS = "%$€£¥"
#: What may stand between groups of digits, besides the mark that is not the decimal one.
GAPS = " \u00a0\u202f'’"
#: What stands for a missing value among numbers: a mark, a word, or the error of a spreadsheet.
BLANKS = {"-", "--", "---", ".", "..", "...", "–", "—", "*", "missing", "(null)"}
BLANKS |= {"#div/0!", "#value!", "#ref!", "#num!", "#name?", *(word.lower() for word in MISSING)}


def is_blank(cell: str) -> bool:
    """Whether the cell stands for a missing value among numbers."""
    return cell.strip().lower() in BLANKS


def in_plain_format(text: pyarrow.Array, number_format: str) -> pyarrow.Array:
    """The cells in the format that every program reads; those in another format become "no number".

    >>> import pyarrow
    >>> from streamlasso.data.encoding.number_formats import in_plain_format
    >>> in_plain_format(pyarrow.array(["1.234,5", "-", "1.5", "-7"]), ",").to_pylist()
    ['1234.5', None, 'no number', '-7']
    >>> in_plain_format(pyarrow.array(["5 kg", "(1,250 kg)", "7 lb"]), ".kg").to_pylist()
    ['5', '-1250', 'no number']
    """
    mark, sign = number_format[0], number_format[1:]
    text = compute.replace_substring(compute.utf8_trim_whitespace(text), "−", "-")
    text = compute.replace_substring_regex(text, r"^\(\s*([^-+()]*\d[^()]*)\)$", r"-\1")
    blank = compute.is_in(compute.utf8_lower(text), value_set=pyarrow.array(sorted(BLANKS)))
    digits = text
    if sign:
        has_sign = compute.match_substring(text, sign)
        digits = compute.if_else(has_sign, compute.replace_substring(text, sign, "", max_replacements=1), "")
        digits = compute.replace_substring_regex(compute.utf8_trim_whitespace(digits), r"^([+-])\s+", r"\1")
        if sign not in SIGNS:
            digits = compute.if_else(compute.ends_with(text, sign), digits, "")
    between = GAPS + {".": ",", ",": "."}[mark]
    fits = compute.match_substring_regex(digits, _pattern(mark, between))
    digits = compute.replace_substring_regex(digits, f"[{between}]", "")
    digits = compute.replace_substring(digits, ",", ".")
    return compute.if_else(blank, None, compute.if_else(fits, digits, "no number"))


def example(number_format: str) -> str:
    """A number in this format."""
    return {".": "1,234.5", ",": "1.234,5"}[number_format[0]] + number_format[1:]


def _pattern(mark: str, between: str) -> str:
    grouped = rf"[1-9]\d{{0,2}}([{between}]\d{{2,3}})*[{between}]\d{{3}}"
    return rf"^[+-]?((\d+|{grouped})([{mark}]\d*)?|[{mark}]\d+)([eE][+-]?\d+)?$"
