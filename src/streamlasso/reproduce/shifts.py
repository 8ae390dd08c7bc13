"""Is a series lower in some blocks than in others? A test by circular shifts of the design.

A design is one number per time point: 1 in blocks of the first kind, -1 in those of the second, 0 elsewhere. Blocks
come in a fixed order, so they cannot be shuffled; the test moves the whole design around the scan, circularly, and
compares the contrast c_0 of the design as it was with the contrasts c_k of all its shifts. There are as many shifts as
time points, but neighbouring ones are much alike, so that few of them are independent.

**p** is the share of shifts, the true one among them, with c_k <= c_0: one-sided, against "not lower".

**The interval** holds every effect d that the test does not reject. A series with the effect d in its blocks has the
contrasts c_k - d g_k without it, where g_k is that of the shifted design with a unit effect, so

    c_k - d g_k <= c_0 - d g_0    where    d <= u_k = (c_0 - c_k)/(g_0 - g_k)

and the ends of the interval are two order statistics of the u_k. Its upper end is below 0 where p <= ALPHA.

**Corrected for several contrasts** (Westfall and Young, 1993): the same shift for all of them, each in units of its own
deviation over the shifts. p is then the share of shifts whose lowest contrast is as low as this one. Contrasts that go
together, as those of one subject under two settings, cost little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

#: Of one side: intervals cover 90 %.
ALPHA = 0.05


@dataclass(frozen=True)
class Certainty:
    """What is known of the effect of one contrast: p, an interval, and p corrected for all that were tested."""

    p: float
    low: float
    high: float
    p_corrected: float

    def mirrored(self) -> Certainty:
        """The interval of the series with the other sign."""
        return Certainty(self.p, -self.high, -self.low, self.p_corrected)


def contrast(values: np.ndarray, design: np.ndarray) -> np.ndarray:
    """(..., time) -> (...): the mean in blocks of the first kind minus that in blocks of the second.

    >>> import numpy as np
    >>> float(contrast(np.array([1.0, 1.0, 7.0, 3.0, 3.0]), np.array([1, 1, 0, -1, -1])))
    -2.0
    """
    return values[..., design > 0].mean(axis=-1) - values[..., design < 0].mean(axis=-1)


def shifted(values: np.ndarray, design: np.ndarray) -> np.ndarray:
    """(shift, ...): the contrast for every circular shift of the design; the first is the design as it was."""
    return np.array([contrast(values, np.roll(design, k)) for k in range(values.shape[-1])])


def detrended(values: np.ndarray) -> np.ndarray:
    """(..., time) without a linear trend; the mean stays."""
    t = np.arange(values.shape[-1]) - (values.shape[-1] - 1) / 2
    return values - (values * t).sum(axis=-1, keepdims=True) / (t**2).sum() * t


def unit_effect(design: np.ndarray) -> np.ndarray:
    """(shift,): the contrasts of a series that has an effect of 1, without its trend."""
    return shifted(detrended(np.sign(design) / 2.0), design)


def p_value(contrasts: np.ndarray) -> float:
    """One-sided: the share of shifts, the true one among them, with a contrast that is as low.

    >>> import numpy as np
    >>> p_value(np.array([-3.0, -1.0, -4.0, 2.0]))
    0.5
    """
    return _share(contrasts, contrasts[0], np.abs(contrasts).max())


def certainty_of(contrasts: np.ndarray, effect: np.ndarray) -> list[Certainty]:
    """One per column of (shift, contrast) `contrasts`; `effect` is that of the design (`unit_effect`).

    >>> import numpy as np
    >>> design = np.repeat([0, 1, 0, -1, 0, 1, 0, -1, 0], 8)
    >>> noise = np.random.default_rng(0).normal(size=(2, 72))
    >>> series = noise + np.array([[-3.0], [0.0]]) * design / 2
    >>> one, none = certainty_of(shifted(detrended(series), design), unit_effect(design))
    >>> one.p_corrected < 0.05 < none.p_corrected, one.low < -3 < one.high < 0 < none.high
    (True, True)
    """
    deviations = contrasts.std(axis=0)
    units = np.divide(contrasts, deviations, out=np.zeros_like(contrasts), where=deviations > 0)
    lowest = units.min(axis=1)
    found = []
    for j in range(len(deviations)):
        p_corrected = _share(lowest, units[0, j], np.abs(units).max())
        found.append(Certainty(p_value(contrasts[:, j]), *_interval(*_ends(contrasts[:, j], effect)), p_corrected))
    return found


def _share(values: np.ndarray, bound: float, size: float) -> float:
    """Of values at most the bound, up to rounding."""
    return float(np.mean(values <= bound + 1e-12 * size))


def _ends(contrasts: np.ndarray, effect: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each shift: the least effect with a contrast as high as the design's, the largest with one as low."""
    above, gain = contrasts[0] - contrasts, np.maximum(effect[0] - effect, 0.0)
    same = gain <= 1e-12 * effect[0]
    ratio = np.divide(above, gain, out=np.zeros_like(above), where=~same)
    low = np.where(same, np.where(above <= 0, -np.inf, np.inf), ratio)
    return low, np.where(same, np.where(above >= 0, np.inf, -np.inf), ratio)


def _interval(low: np.ndarray, high: np.ndarray) -> tuple[float, float]:
    """The effects that more than ALPHA of the shifts do not exclude, on either side."""
    n = int(ALPHA * len(low))
    return float(np.sort(low)[n]), float(np.sort(high)[::-1][n])
