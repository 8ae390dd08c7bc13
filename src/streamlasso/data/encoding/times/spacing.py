"""How far apart the rows of a table are in time: which parts of a date can matter, and how long a season is in rows."""

from __future__ import annotations

import numpy as np

DAY = 86_400
#: The spacings from which on dates are days, weeks, months, quarters and years, in seconds.
SPACINGS = {"day": 0.9 * DAY, "week": 5 * DAY, "month": 20 * DAY, "quarter": 75 * DAY, "year": 200 * DAY}
#: The season of each, in rows; within a day it is a day.
SEASONS = {"week": 52, "month": 12, "quarter": 4}
PARTS = {"hour": ("season", "weekday"), "day": ("season", "weekday"), "year": ()}
#: Steps that differ from the usual one by less than TOLERANCE are the same; with fewer than REGULAR, time is a feature.
TOLERANCE, REGULAR = 0.15, 0.75
#: The share of rows that may come at the time of the row before, or up to so many seconds earlier: clocks are set back.
MOST_BACK, SET_BACK = 0.01, 7200
#: The share of rows that are later than the one before, where series stand one after the other.
MOSTLY = 0.9
#: The longest season in rows.
LONGEST = 2000


def spacing_of(moments: np.ndarray) -> str:
    """hour, day, week, month, quarter or year: the usual step from one row to the next that has another time.

    >>> import numpy as np
    >>> spacing_of(np.arange("2020-01", "2023-01", dtype="datetime64[M]").astype("datetime64[s]"))
    'month'
    """
    usual = _usual_step(moments)
    if usual is None:
        return "hour" if np.any(moments.astype(np.int64) % DAY) else "day"
    return next((name for name, least in reversed(SPACINGS.items()) if usual >= least), "hour")


def parts_of(moments: np.ndarray) -> tuple[str, ...]:
    """The parts of a date that can matter for rows at these times: no day of the week where rows are a month apart.

    >>> import numpy as np
    >>> parts_of(np.arange("2020-01", "2023-01", dtype="datetime64[M]").astype("datetime64[s]"))
    ('season', 'trend')
    >>> parts_of(np.arange("2020", "2050", dtype="datetime64[Y]").astype("datetime64[s]"))
    ('trend',)
    """
    parts = PARTS.get(spacing_of(moments), ("season",))
    hour = ("hour",) if "weekday" in parts and np.any(moments.astype(np.int64) % DAY) else ()
    return (*parts, *hour, "trend", *(("elapsed",) if _is_irregular(moments) else ()))


def season_of(moments: np.ndarray) -> int | None:
    """The number of rows in a season: a day, a week or a year; None if the rows do not come one by one in time.

    >>> import numpy as np
    >>> season_of(np.arange("2020-01-01", "2020-01-09", dtype="datetime64[h]").astype("datetime64[s]"))
    24
    """
    usual = _usual_step(moments)
    if usual is None or not is_in_order(moments) or _is_irregular(moments):
        return None
    spacing = spacing_of(moments)
    if spacing == "hour":
        season = round(DAY / usual)
    elif spacing == "day":
        season = 7 if np.mean(np.diff(moments).astype(np.int64) > 2 * usual) < 0.1 else 5
    else:
        season = SEASONS.get(spacing, 0)
    return season if 2 <= season <= LONGEST else None


def is_in_order(moments: np.ndarray) -> bool:
    """Whether each row is later than the one before, but for a few: then earlier targets are known.

    >>> import numpy as np
    >>> is_in_order(np.array(["2020-01-01", "2020-01-02", "2020-01-01"], "datetime64[s]"))
    False
    """
    steps = np.diff(moments).astype(np.int64)
    return len(steps) > 0 and bool(steps.min() >= -SET_BACK and np.mean(steps <= 0) <= MOST_BACK)


def is_mostly_forward(moments: np.ndarray) -> bool:
    """Whether nearly each row is later than the one before: as `is_in_order`, or several series one after the other."""
    return len(moments) > 1 and bool(np.mean(np.diff(moments).astype(np.int64) > 0) >= MOSTLY)


def _usual_step(moments: np.ndarray) -> float | None:
    steps = np.abs(np.diff(moments).astype(np.int64))
    steps = steps[steps > 0]
    return float(np.median(steps)) if len(steps) else None


def _is_irregular(moments: np.ndarray) -> bool:
    """Whether the times of the rows, in order, are not evenly spaced."""
    usual = _usual_step(moments)
    if usual is None or not is_in_order(moments):
        return False
    steps = np.diff(moments).astype(np.int64)
    return bool(np.mean(np.abs(steps - usual) <= TOLERANCE * usual) < REGULAR)
