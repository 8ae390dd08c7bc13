"""The experts of the sparse engine: what they differ in (`lanes.pxd` has the formulas)."""

from typing import Any

#: The half-lives of experts that forget, in rows.
FAST, SLOW = 400.0, 4000.0


def ftrl(alpha: float, beta: float = 0.3, lam: float = 0.6, half_life: float | None = None) -> dict[str, Any]:
    return {"kind": "ftrl", "alpha": alpha, "beta": beta, "lam": lam, "half_life": half_life}


def implicit(alpha: float, beta: float = 0.3) -> dict[str, Any]:
    return {"kind": "implicit", "alpha": alpha, "beta": beta, "lam": 0.0, "half_life": None}


def coin(wealth: float, lam: float = 0.0) -> dict[str, Any]:
    return {"kind": "coin", "alpha": wealth, "beta": 0.3, "lam": lam, "half_life": None}


#: The experts, by their number. Eager ones take a feature seriously when it is first seen, cautious ones when its
#: evidence is 1.2 standard errors, which takes two sights; each with steps over two orders of magnitude. (At lam = 1 a
#: first sight would lie on the threshold, and rounding would decide.)
EXPERTS = {
    16: [
        *(ftrl(alpha, beta=0.3, lam=0.3) for alpha in (0.03125, 0.125, 0.5, 2.0)),
        *(ftrl(alpha, beta=10.0, lam=1.2) for alpha in (0.625, 2.5, 10.0, 40.0)),
        *(ftrl(alpha, half_life=life) for alpha in (0.25, 4.0) for life in (FAST, SLOW)),
        *(implicit(alpha) for alpha in (0.5, 2.0)),
        coin(4.0),
        coin(16.0, lam=0.6),
    ],
    8: [
        *(ftrl(alpha, beta=0.3, lam=0.3) for alpha in (0.125, 1.0)),
        *(ftrl(alpha, beta=10.0, lam=1.2) for alpha in (2.5, 10.0)),
        ftrl(0.5, half_life=SLOW),
        ftrl(4.0, half_life=FAST),
        implicit(2.0),
        coin(8.0, lam=0.6),
    ],
}
