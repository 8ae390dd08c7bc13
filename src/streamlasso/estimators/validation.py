"""X, y and weights as the engine takes them, or an error that names the value; nothing is learnt from a refused row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _get_feature_names, check_array, column_or_1d, validate_data

from streamlasso.core.base.checks import LARGEST, first_unfit
from streamlasso.families import Family

#: The largest sparse matrix that is taken, in numbers when dense: 400 MB.
LARGEST_SPARSE = 50_000_000
#: What turns anything into numbers.
ENCODER = "streamlasso.data.encoding.StreamEncoder"
#: What scikit-learn notes of the columns of X.
NOTED = ("n_features_in_", "feature_names_in_")


def checked_array(estimator: Any, X: Any, *, reset: bool, **checks: Any) -> tuple[Any, dict[str, Any] | None]:
    """X after scikit-learn's checks, and what is to be noted of the columns of a new model: nothing is written here.

    Without `reset` X has the columns of this model, and there is nothing to note.
    """
    if not reset:
        return validate_data(estimator, X, reset=False, **checks), None
    names = _get_feature_names(X)
    if not checks.get("skip_check_array"):
        X = check_array(X, input_name="X", estimator=estimator, **checks)
    return X, {"n_features_in_": X.shape[1], **({} if names is None else {"feature_names_in_": names})}


# --- X and weights ----------------------------------------------------------------------------------------------------


def features_of(estimator: Any, X: Any) -> np.ndarray:
    """Rows for this model."""
    return checked_features(estimator, dense(X), reset=False)[0]


def checked_features(
    estimator: Any, X: Any, *, reset: bool, least: int = 1
) -> tuple[np.ndarray, dict[str, Any] | None]:
    """X as the engine takes it, `least` columns or more, and what is to be noted of its columns.

    A plain array of the right shape goes straight through. Categories are not numbers, even if they look so.
    """
    labels, named = None, hasattr(estimator, "feature_names_in_")
    if reset or named or not _is_plain(X, 2) or X.shape != (X.shape[0] or None, estimator.n_features_in_):
        _refuse_categories(X)
        numbers = {"dtype": np.float64, "order": "C", "ensure_all_finite": False, "ensure_min_features": least}
        with _named_if_no_number("X"):
            X, labels = checked_array(estimator, X, reset=reset, **numbers)
    bad = first_unfit(X)
    if bad >= 0:
        refuse_value("X", X, *divmod(bad, X.shape[1]))
    return X, labels


def names_with_new(estimator: Any, X: Any) -> list[str]:
    """The names of the columns of X, if they are those of the model and more after them; otherwise none."""
    if type(X) is np.ndarray or not hasattr(X, "columns"):
        return []
    known, names = list(getattr(estimator, "feature_names_in_", [])), list(X.columns)
    return names if 0 < len(known) < len(names) and names[: len(known)] == known else []


def refuse_forged(X: Any) -> None:
    """A matrix whose arrays were changed after scipy had checked them: its compiled code trusts what they say."""
    try:
        if X.format in ("csr", "csc", "bsr"):
            type(X)((X.data, X.indices, X.indptr), shape=X.shape).check_format()
        elif X.format == "coo":
            type(X)((X.data, (X.row, X.col)), shape=X.shape)
    except ValueError as error:
        raise ValueError(f"X is not a valid sparse matrix: {error}; no row was learnt.") from None


def dense(X: Any) -> Any:
    """A sparse matrix as an array, if that is not too large; anything else as it is."""
    if type(X) is np.ndarray or not issparse(X):
        return X
    refuse_forged(X)
    if np.prod(X.shape, dtype=float) > LARGEST_SPARSE:
        rows, columns = X.shape
        fewer = f"learn {LARGEST_SPARSE // columns:,} rows at a time with partial_fit, or " * (
            columns <= LARGEST_SPARSE
        )
        raise ValueError(
            f"X is sparse, {rows:,} x {columns:,}, and is used as a dense array of at most {LARGEST_SPARSE:,} numbers: "
            f"{fewer}select columns. No row was learnt."
        )
    return X.toarray()


def _refuse_categories(X: Any) -> None:
    """pandas and scikit-learn take categories that look like numbers for numbers, which they are not."""
    names = [name for name, kind in _dtypes(X) if kind in ("category", "Categorical", "Enum")]
    if names:
        raise ValueError(
            f"X: column {names[0]!r} holds categories, and numbers are needed: use {ENCODER} in front, or turn codes "
            "that are amounts into numbers. No row was learnt."
        )


def _dtypes(X: Any) -> list[tuple[Any, str]]:
    """Names and types of the columns of a frame of pandas or polars."""
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not hasattr(X, "columns"):
        return []
    return [(name, str(kind).partition("(")[0]) for name, kind in zip(X.columns, dtypes, strict=False)]


def weights_of(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """One weight per row, or None."""
    if sample_weight is None:
        return None
    with _named_if_no_number("sample_weight"):
        weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim > 0 and weights.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: use one weight per row")
    if not np.all((weights >= 0) & (weights <= LARGEST)):
        raise ValueError(f"sample_weight: use weights from 0 (the row is skipped) to {LARGEST:g}")
    return np.ascontiguousarray(np.broadcast_to(weights, n_rows))


def refuse_no_weight(sample_weight: Any) -> None:
    """For `fit`, which would have nothing to start from."""
    if sample_weight is not None and not np.any(np.asarray(sample_weight)):
        raise ValueError("sample_weight: all weights are zero, so there is nothing to fit")


# --- y ----------------------------------------------------------------------------------------------------------------


def refuse_no_target(estimator: Any, y: Any) -> None:
    """In the words that scikit-learn's checks look for."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")


def numbers_of(y: Any, n_rows: int, family: Family) -> np.ndarray:
    """Responses of a family."""
    if not _is_plain(y, 1):
        with _named_if_no_number("y"):
            y = np.ascontiguousarray(column_or_1d(y, warn=True, dtype=np.float64))
    _refuse_length(y, n_rows)
    bad = first_unfit(y.reshape(-1, 1))
    if bad >= 0:
        refuse_value("y", y, bad)
    complaint = family.check_target(y)
    if complaint:
        raise ValueError(f"y: {complaint}; family={family!r}. No row was learnt.")
    return y


def classes_of(y: Any, classes: Any) -> np.ndarray:
    """The classes of a new model: as given, or as the rows show them."""
    with _named_if_mixed("y"):
        check_classification_targets(y)
        found = np.unique(column_or_1d(y, warn=True)) if classes is None else named_classes(classes)
    if len(found) < 2:
        name = "y" if classes is None else "classes"
        raise ValueError(
            f"{name} holds one class only, {found.tolist()}, and two are needed: if others come later, name all with "
            "partial_fit(X, y, classes=[...])"
        )
    return found


def named_classes(classes: Any) -> np.ndarray:
    """A list of classes, sorted."""
    if isinstance(classes, str) or np.ndim(classes) != 1:
        raise ValueError(f"classes={classes!r} is not a list: use a list of all classes")
    with _named_if_mixed("classes"):
        return np.unique(classes)


def places_of(y: Any, n_rows: int, classes: np.ndarray) -> np.ndarray:
    """The place of each label among the classes."""
    labels = column_or_1d(y, warn=True)
    _refuse_length(labels, n_rows)
    with _named_if_mixed("y"):
        unknown = np.setdiff1d(labels, classes)
    if len(unknown):
        raise ValueError(f"y holds {unknown.tolist()}, not among the classes {classes.tolist()}; no row was learnt.")
    return (labels[:, None] == classes).argmax(axis=1)


# --- what an error says -----------------------------------------------------------------------------------------------


def _is_plain(values: Any, ndim: int) -> bool:
    """Is it an array as the engine takes it? Converting what is one already takes longer than learning a row."""
    return (
        type(values) is np.ndarray and values.dtype == np.float64 and values.ndim == ndim and values.flags.c_contiguous
    )


def _refuse_length(y: np.ndarray, n_rows: int) -> None:
    if len(y) != n_rows:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[n_rows, len(y)]}")


def refuse_value(name: str, values: Any, *where: int, most: float = LARGEST) -> None:
    """Name the value and its place."""
    value = values[where]
    place = f"{name}[{', '.join(map(str, where))}] = {value}"
    if np.isnan(value):
        encoder = f", or use {ENCODER} in front" if name == "X" else ""
        raise ValueError(
            f"Input {name} contains NaN: {place}. Fill in or drop missing values{encoder}; no row was learnt."
        )
    if np.isinf(value):
        raise ValueError(f"Input {name} contains infinity: {place}; no row was learnt.")
    raise ValueError(f"{place}: so that sums are finite, values lie within +-{most:g}; rescale it. No row was learnt.")


@contextmanager
def _named_if_no_number(name: str) -> Iterator[None]:
    """numpy's error names the text that is not a number, but not the argument that holds it."""
    try:
        yield
    except np.exceptions.DTypePromotionError:
        raise ValueError(
            f"{name}: numbers are needed, but there are dates among them; {_encode(name)}. No row was learnt."
        ) from None
    except ValueError as error:
        if "could not convert" not in str(error):
            raise
        raise ValueError(f"{name}: numbers are needed, but {error}; {_encode(name)}. No row was learnt.") from None


def _encode(name: str) -> str:
    """What to do about text and dates."""
    return f"use {ENCODER} in front" if name == "X" else "turn it into numbers first"


@contextmanager
def _named_if_mixed(name: str) -> Iterator[None]:
    """Labels are sorted, and those of different types cannot be."""
    try:
        yield
    except TypeError as error:
        if "not supported between" not in str(error):
            raise
        raise ValueError(
            f"{name}: labels of one type are needed, all text or all numbers; no row was learnt."
        ) from None
