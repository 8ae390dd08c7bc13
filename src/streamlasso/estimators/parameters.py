"""The parameters that all estimators share: named and described once, kept as given, checked by `settings.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from streamlasso.families import FAMILIES

#: What the default does, and what RAP is.
METHOD = """By default (`tuner=Mixture()`) sparse models with different penalties and memories learn side by side. The
    model is their average, weighted by how well each has predicted so far; nothing has to be tuned.

    `tuner=LogRMS()` or `SGD()` is RAP, a single model. After each row its coefficients minimise the penalised loss of
    the rows in memory (docs/method.md), at a lam that has moved down the derivative of that row's loss.
    """

_PARAMETERS = """memory : float, int, str or Memory, default=None
        How the past fades: a forgetting factor up to 1, a number of rows above 1, or one of `streamlasso.memories`.
        "all" is for a fixed table: all rows weigh the same, and predictions take nothing from the rows before. None,
        or "auto", leaves it to `Mixture`, and is 0.99 for other tuners.
    penalty : str or Penalty, default=None
        "l1", "ridge", or one of `streamlasso.penalties`. None is `L1()`.
    tuner : str or Tuner, default=None
        How lam is chosen: "mixture", "logrms", or one of `streamlasso.tuners`. None is `Mixture()`, which chooses lam
        and memory together.
    gradient : {{"exact", "diagonal"}}, default="exact"
        The derivative of the coefficients with the whole Hessian, or with its diagonal (the paper's approximation).
    curvature : {{"updated", "previous"}}, default="updated"
        Whether that Hessian contains the new row. "previous" is Algorithm 1 as printed.
    lambda_init : float, default=None
        Where lam starts. None is a tenth of lam_max at the tenth row (or the first after it where that is not 0), and
        lam_max itself until then. Not with `Mixture`.
    {penalty_factor}
    fit_intercept : bool, default=True
        Fit an intercept, which is not penalised.
    standardize : bool, default=True
        Penalise each coefficient in units of its feature's running standard deviation.
    history : int, default=64
        Rows kept whole before they are folded into a quadratic. No effect for the Gaussian family. With `Mixture` it
        applies to the experts that model the likelihood itself.
    batch_size : int, default=1
        Rows per step, within one call of `{learn}`.
    false_alarms : float, default=None
        How readily a change is found (`changes_`), as the number of alarms per 10,000 rows of a stream that does not
        change. 0 looks for none. None is 1 for the default, and 0 for a single model."""

_BY_COLUMN = """penalty_factor : array-like of shape (n_features,), default=None
        Multiplies lam for each feature. 0 is never penalised."""
_BY_NAME = """penalty_factor : dict, default=None
        Multiplies lam, by the name of the feature. 0 is never penalised; a name that is absent counts as 1."""

FAMILY = f"""family : {{{", ".join(f'"{word}"' for word in FAMILIES)}}} or Family, default="gaussian"
        The distribution of the response, or one of `streamlasso.families`."""
#: For estimators that take arrays, and for those that take rows with names.
PARAMETERS = _PARAMETERS.format(penalty_factor=_BY_COLUMN, learn="partial_fit")
NAMED_PARAMETERS = _PARAMETERS.format(penalty_factor=_BY_NAME, learn="learn_many")
#: Attributes of all estimators, and of those that take arrays.
ATTRIBUTES = """n_seen_ : int
        Rows learnt.
    effective_size_ : float
        The weight omega of the rows in memory.
    changes_ : list of DetectedChange
        The last 32 changes that were found in the stream, and what each did to which coefficients (docs/changes.md).
    on_change : callable, default=None
        Set it, and it is called with each `DetectedChange` when one is found. Not a parameter, and not saved."""
ARRAY_ATTRIBUTES = f"""{ATTRIBUTES}
    n_features_in_, feature_names_in_ : int, ndarray
        The features of the first rows; names only if these had names."""


@dataclass(repr=False, eq=False, match_args=False)
class _Family:
    family: Any = "gaussian"


@dataclass(repr=False, eq=False, match_args=False)
class Parameters:
    """Those of a classifier."""

    memory: Any = None
    penalty: Any = None
    tuner: Any = None
    gradient: str = "exact"
    curvature: str = "updated"
    lambda_init: float | None = None
    penalty_factor: Any = None
    fit_intercept: bool = True
    standardize: bool = True
    history: int = 64
    batch_size: int = 1
    false_alarms: float | None = None

    def __post_init__(self) -> None:
        """What else a new estimator needs, now that its parameters are set."""


@dataclass(repr=False, eq=False, match_args=False)
class FamilyParameters(Parameters, _Family):
    """Those of a regressor, whose first is the family."""
