"""How each column writes its numbers, judged by its first rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow
from pyarrow import compute

from streamlasso.encoding import reading
from streamlasso.encoding.notation import SIGNS

#: Text that is worth a closer look.
LIKE_A_NUMBER = r"^\W*\d[^a-zA-Z/:]*$"
#: Columns that are named in a sentence.
MOST_NAMED = 5


def forms_of(rows: pyarrow.RecordBatch) -> dict[str, str]:
    """The form of every column of text that needs one.

    A cell such as 1,234 fits both marks: it is a thousand unless another cell of the table shows a decimal comma.

    >>> import pyarrow
    >>> from streamlasso.encoding.forms import forms_of
    >>> forms_of(pyarrow.RecordBatch.from_pydict({"a": ["1,234", "2,000"], "b": ["5 %", "6 %"], "c": ["1.5", "x"]}))
    {'a': '.', 'b': '.%'}
    >>> forms_of(pyarrow.RecordBatch.from_pydict({"a": ["1,234", "2,000"], "b": ["0,5", "7"]}))
    {'a': ',', 'b': ','}
    """
    texts = {name: rows[name] for name in rows.schema.names if reading.is_text(rows[name])}
    plain = [name for name, cells in texts.items() if reading.holds_numbers(cells)]
    odd = {name: forms for name, cells in texts.items() if name not in plain and (forms := _fitting(cells))}
    if not _decimal_commas(odd):
        return {name: forms[0] for name, forms in odd.items() if forms[0].startswith(".")}
    whole = {name: [","] for name in plain if _whole(texts[name])}
    return {name: forms[-1] for name, forms in {**odd, **whole}.items()}


def _whole(cells: pyarrow.Array) -> bool:
    """Whole numbers where commas are decimal: later on there may be one, and 1.234 beside 987 is a thousand."""
    dots = compute.match_substring(reading.as_text(cells), ".").drop_null()
    return not (len(dots) and all(dots.to_pylist())) and _n_unfit(cells, ",") <= _n_unfit(cells, None)


def _fitting(cells: pyarrow.Array) -> list[str]:
    """The forms in which most cells are numbers: none, or with a decimal point, or with a decimal comma, or both."""
    text = reading.as_text(cells)
    some = text.drop_null().slice(0, 100)
    if not any(compute.match_substring_regex(some, LIKE_A_NUMBER).to_pylist()):
        return []
    sign = next((sign for sign in SIGNS if _occurs(text, sign)), "")
    forms = [form for form in (f".{sign}", f",{sign}") if reading.holds_numbers(cells, form)]
    unfit = {form: _n_unfit(cells, form) for form in forms}
    forms = [form for form in forms if unfit[form] == min(unfit.values())]
    # Without a comma there is no decimal comma: 192.168.100.101 is no number.
    return [] if forms == [f",{sign}"] and not _occurs(text, ",") else forms


def _decimal_commas(odd: Mapping[str, list[str]]) -> bool:
    """Some column can only be read with a decimal comma, and none only with a comma between thousands."""
    marks = [{form[0] for form in forms} for forms in odd.values()]
    return {","} in marks and {"."} not in marks


def _n_unfit(cells: pyarrow.Array, form: str | None) -> int:
    return int(reading.numbers(cells, form)[1].sum())


def _occurs(text: pyarrow.Array, mark: str) -> bool:
    return bool(compute.any(compute.match_substring(text, mark)).as_py())


def said(rows: pyarrow.RecordBatch, forms: Mapping[str, str], names: Iterable[str]) -> list[str]:
    """How cells that are not written plainly are read, by an example for each form."""
    examples: dict[str, str] = {}
    columns: dict[str, list[str]] = {}
    for name in names:
        cell = _odd_cell(rows[name], forms[name]) if name in forms else None
        if cell is not None:
            examples.setdefault(forms[name], cell)
            columns.setdefault(forms[name], []).append(name)
    return [_sentence(examples[form], form, of) for form, of in columns.items()]


def _odd_cell(cells: pyarrow.Array, form: str) -> str | None:
    """One that is not a number as it stands, or another one; rather not 0, which says little."""
    plain, _ = reading.numbers(cells)
    values, _ = reading.numbers(cells, form)
    odd = np.flatnonzero(~np.isnan(values) & (plain != values))
    telling = [*odd[values[odd] != 0][:1], *odd[:1]]
    return cells[int(telling[0])].as_py() if telling else None


def _sentence(cell: str, form: str, columns: list[str]) -> str:
    (value,), _ = reading.numbers(pyarrow.array([cell]), form)
    return f"{cell!r} is read as {value:.15g} ({listed(columns)})"


def listed(columns: list[str]) -> str:
    """The names, or some of them."""
    more = f" and {len(columns) - MOST_NAMED} more" if len(columns) > MOST_NAMED else ""
    return f"column{'s' if len(columns) > 1 else ''} {', '.join(columns[:MOST_NAMED])}{more}"
