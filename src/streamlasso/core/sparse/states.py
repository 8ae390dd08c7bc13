"""The state of a sparse model as arrays: what may be in it, and that of the model of 1 - y."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: Numbers in front of a record's state, and experts side by side in it: z of so many, then their r.
HEAD, LANES = 4, 8
#: What is not in double precision.
TYPES = {"counts": np.int64, "names": np.uint64}
#: Rows are counted in whole numbers that are floats as well.
MOST_ROWS = 2**53
#: Of the blend (`blend.py`).
N_MIXTURES, N_STACKS = 2, 2


def refuse_misfit(state: Mapping[str, np.ndarray], n_experts: int, n_blend: int) -> None:
    """A state that a model of these settings cannot have made."""
    sums, n = state["sums"], n_experts
    refuse_other_shapes(state, {"counts": 3, "sums": 1 + 2 * n, "units": 6, "blend": n_blend, "names": 2})
    if not (sums[0] >= state["counts"][0] and np.all(sums[1 + n :] >= 0)):
        raise ValueError("the sums do not fit the settings")
    _refuse_weights(state["blend"], n)
    _refuse_records(state["records"], HEAD + 2 * n)


def refuse_other_shapes(state: Mapping[str, np.ndarray], lengths: Mapping[str, int]) -> None:
    """Numbers that are too many, too few, not finite, or counts that no stream has."""
    for name, length in lengths.items():
        if np.shape(state[name]) != (length,) or state[name].dtype != TYPES.get(name, np.float64):
            raise ValueError(f"{name} does not fit the settings")
    if not 0 <= state["counts"][0] <= MOST_ROWS:
        raise ValueError("the counts do not fit the settings")
    weight, _, squares, pearson, least, largest = state["units"]
    if not (weight >= 0 and squares >= 0 and pearson >= 0 and (least <= largest or weight == 0)):
        raise ValueError("units does not fit the settings")
    # Before the first row the least response is infinite.
    finite = {"units": 6 if weight > 0 else 4}
    if not all(np.all(np.isfinite(state[name][: finite.get(name)])) for name in lengths):
        raise ValueError("numbers that no row can have made")


def _refuse_weights(blend: np.ndarray, n: int) -> None:
    """Those of the experts, and last those of the outputs and a count, are not negative."""
    if np.any(blend[: N_MIXTURES * n] < 0) or np.any(blend[-1 - N_MIXTURES - N_STACKS :] < 0):
        raise ValueError("weights that no row can have made")


def _refuse_records(records: np.ndarray, width: int) -> None:
    """They are finite, roots are not negative, largest values positive."""
    if records.ndim != 2 or records.shape[1] != width or records.dtype != np.float32:
        raise ValueError("the features do not fit the settings")
    evidence = _evidence(records)
    if not (np.all(np.isfinite(evidence)) and np.all(evidence[:, :, 1] >= 0)):
        raise ValueError("the features hold numbers that no row can have made")
    if not np.all((records[:, 2] > 0) & np.isfinite(records[:, 2])):
        raise ValueError("the features hold numbers that no row can have made")


def _evidence(records: np.ndarray) -> Any:
    """(feature, group of experts, z and r, expert), within the records."""
    return records[:, HEAD:].reshape(len(records), (records.shape[1] - HEAD) // (2 * LANES), 2, LANES)


def mirror(state: dict[str, np.ndarray], n_experts: int) -> dict[str, np.ndarray]:
    """That of the model that says -eta; the arrays themselves are turned."""
    n, d = n_experts, n_experts + 2
    state["sums"][1 : 1 + n] *= -1
    _evidence(state["records"])[:, :, 0] *= -1
    state["candidates"][:, 1] *= -1
    turned = np.ones(d)
    turned[1] = -1
    blend = state["blend"]
    theta = blend[N_MIXTURES * n :][: N_STACKS * d].reshape(N_STACKS, d)
    theta *= turned
    P = blend[N_MIXTURES * n + N_STACKS * d :][: N_STACKS * d * (d + 1) // 2].reshape(N_STACKS, d * (d + 1) // 2)
    P *= np.outer(turned, turned)[np.tril_indices(d)]
    return state
