"""Numbers as people write them: 1,5 and 1.234,50 and 1,234.50 and 12 % and $5.

A form says how a column is written: the decimal mark, then the sign that all cells bear, if any: "," or ".%". None is
what every program reads. `forms.py` finds it.
"""

from __future__ import annotations

import pyarrow
from pyarrow import compute

from streamlasso.sources.delimited import MISSING

SIGNS = "%$€£¥"
#: What may stand between groups of digits, beside the mark that is not the decimal one.
GAPS = " \u00a0\u202f'’"
#: What stands for no value among numbers: a mark, a word, or what a spreadsheet writes where it cannot compute.
BLANKS = {"-", "--", "---", ".", "..", "...", "–", "—", "*", "missing", "(null)"}
BLANKS |= {"#div/0!", "#value!", "#ref!", "#num!", "#name?", *(word.lower() for word in MISSING)}


def is_blank(cell: str) -> bool:
    """Among numbers, no value."""
    return cell.strip().lower() in BLANKS


def plainly(text: pyarrow.Array, form: str) -> pyarrow.Array:
    """The cells as every program reads them; what is not written in this form as a word that no program reads.

    >>> import pyarrow
    >>> from streamlasso.encoding.notation import plainly
    >>> plainly(pyarrow.array(["1.234,5", "-", "1.5", "-7"]), ",").to_pylist()
    ['1234.5', None, 'no number', '-7']
    """
    mark, sign = form[0], form[1:]
    text = compute.replace_substring(compute.utf8_trim_whitespace(text), "−", "-")
    blank = compute.is_in(compute.utf8_lower(text), value_set=pyarrow.array(sorted(BLANKS)))
    digits = text
    if sign:
        bears = compute.match_substring(text, sign)
        digits = compute.if_else(bears, compute.replace_substring(text, sign, "", max_replacements=1), "")
        digits = compute.replace_substring_regex(compute.utf8_trim_whitespace(digits), r"^([+-])\s+", r"\1")
    between = GAPS + {".": ",", ",": "."}[mark]
    fits = compute.match_substring_regex(digits, _pattern(mark, between))
    digits = compute.replace_substring_regex(digits, f"[{between}]", "")
    digits = compute.replace_substring(digits, ",", ".")
    return compute.if_else(blank, None, compute.if_else(fits, digits, "no number"))


def example(form: str) -> str:
    """A number in this form."""
    return {".": "1,234.5", ",": "1.234,5"}[form[0]] + form[1:]


def _pattern(mark: str, between: str) -> str:
    grouped = rf"[1-9]\d{{0,2}}([{between}]\d{{2,3}})*[{between}]\d{{3}}"
    return rf"^[+-]?((\d+|{grouped})([{mark}]\d*)?|[{mark}]\d+)([eE][+-]?\d+)?$"
