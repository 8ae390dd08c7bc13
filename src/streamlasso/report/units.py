"""An error in the response's own units, as far as its name tells them."""

from __future__ import annotations

import re

from streamlasso._text import number
from streamlasso.report.summary import Summary

#: Units at the end of a name, as in `weight_kg`, and how they are written.
ENDINGS = {
    **{word: word for word in ("kg", "g", "mg", "km", "m", "cm", "mm", "ms", "s", "min", "h", "mph")},
    **{word: word for word in ("seconds", "minutes", "hours", "days", "miles", "degrees", "dollars", "euros")},
    **dict(kw="kW", kwh="kWh", mw="MW", mwh="MWh", hpa="hPa", celsius="°C", pct="%", percent="%"),
    **dict(usd="USD", eur="EUR", gbp="GBP"),
}


#: Names of counts that do not tell what is counted.
NO_THINGS = {"cnt", "count", "counts", "number", "target", "total", "value"}


def unit_of(name: str) -> str:
    """The unit that a name states, in brackets or at its end; empty if it states none.

    >>> [unit_of(name) for name in ("temp (°C)", "load [MW]", "weight_kg", "price_usd", "count")]
    ['°C', 'MW', 'kg', 'USD', '']
    """
    bracketed = re.search(r"[(\[]([^()\[\]]{1,12})[)\]]\s*$", name)
    if bracketed:
        return bracketed[1].strip()
    _, separator, ending = name.rpartition("_")
    return ENDINGS.get(ending.lower(), "") if separator else ""


def in_units(summary: Summary, error: float) -> str:
    """An error with its unit: the one that the name of the response states, or what is counted.

    >>> from dataclasses import replace
    >>> from streamlasso import RAPRegressor, progressive
    >>> trace = progressive(RAPRegressor(family="poisson"), [[0.0], [1.0], [3.0]], [2.0, 4.0, 9.0])
    >>> in_units(replace(trace.summary(), target="bikes"), 12.0), in_units(trace.summary(), 12.0)
    ('12 bikes', '12')
    """
    if summary.target is None:
        return number(error)
    unit = unit_of(summary.target)
    if unit:
        return f"{number(error)} {unit}"
    things = summary.family.response == "a count" and summary.target.lower() not in NO_THINGS
    return f"{number(error)} {summary.target}" if things and len(summary.target) > 1 else number(error)
