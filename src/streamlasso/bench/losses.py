"""How predictions are scored: clipped alike for all methods, half the deviance of each row, means after a burn-in."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

#: Rows that are learnt but not scored.
BURN_IN = 50
#: The scored rows are cut into so many blocks, for standard errors and for the loss over time.
N_BLOCKS = 20
#: Probabilities are kept this far from 0 and 1, rates this far from 0.
LEAST_SHARE, LEAST_RATE = 1e-4, 0.1
#: The loss of each family that peers have too.
LOSS_NAMES = {"gaussian": "half squared error", "binomial": "log loss", "poisson": "Poisson deviance"}
FAMILIES = tuple(LOSS_NAMES)


def mean_loss(family: str, y: np.ndarray, means: np.ndarray) -> float:
    """Half squared error, log loss or Poisson deviance of the clipped predictions, over the rows after the 50th.

    >>> import numpy as np
    >>> y = np.arange(60.0)
    >>> mean_loss("gaussian", y, y - 2)
    2.0
    """
    if len(y) <= BURN_IN:
        return float("nan")
    return float(_scored(family, y, means).mean())


def block_losses(family: str, y: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The mean loss of each of 20 blocks of rows, all about as long, which together are the rows after the 50th.

    >>> import numpy as np
    >>> y = np.arange(90.0)
    >>> block_losses("gaussian", y, np.where(y < 70, y, y - 2))[[0, 9, 10, 19]]
    array([0., 0., 2., 2.])
    """
    scored = _scored(family, y, means)
    return np.array([block.mean() for block in np.array_split(scored, min(N_BLOCKS, len(scored)) or 1) if len(block)])


def _scored(family: str, y: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The loss of each row after the burn-in."""
    loss = half_deviance(family, y, clipped(family, y, means))[BURN_IN:]
    return 2 * loss if family == "poisson" else loss


def half_deviance(family: str, y: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Half squared error, log loss, or half the Poisson deviance, of each row.

    >>> import numpy as np
    >>> half_deviance("poisson", np.array([0.0, 2.0]), np.array([1.0, 2.0]))
    array([1., 0.])
    """
    if family == "gaussian":
        return (y - means) ** 2 / 2
    if family == "binomial":
        return -np.where(y > 0, np.log(means), np.log1p(-means))
    return xlogy(y, y / means) - y + means


def clipped(family: str, y: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Predictions within the range of the responses before, widened by half on each side.

    Rates are at least 0.1 and at most twice the largest count plus one; probabilities are in [1e-4, 1 - 1e-4]. No
    method is ruined by one extreme prediction, and none gains from it.

    >>> import numpy as np
    >>> clipped("gaussian", np.array([0.0, 2.0, 0.0]), np.array([0.0, 9.0, 9.0]))
    array([0., 0., 3.])
    """
    if family == "binomial":
        return np.clip(means, LEAST_SHARE, 1 - LEAST_SHARE)
    highest, lowest = _before(np.maximum.accumulate(y)), _before(np.minimum.accumulate(y))
    if family == "poisson":
        return np.clip(means, LEAST_RATE, 2 * highest + 1)
    half = (highest - lowest) / 2
    return np.clip(means, lowest - half, highest + half)


def _before(values: np.ndarray) -> np.ndarray:
    """The values one row earlier, 0 at the first."""
    return np.concatenate([[0.0], values[:-1]])
