"""The encoder of `streamlasso run` as a scikit-learn transformer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from streamlasso._files import write_whole
from streamlasso.data.encoding.encoder import Encoder
from streamlasso.data.encoding.first_rows import without_target
from streamlasso.data.encoding.frames import table_of
from streamlasso.estimators.turns import learning
from streamlasso.estimators.validation import NOTED, checked_array

FORMAT = "streamlasso encoder"


class StreamEncoder(TransformerMixin, BaseEstimator):
    """Numbers, text, dates and missing values as features, as `streamlasso run` encodes them.

    What a column holds is detected from the first rows. A number is a feature; text and categories are one feature per
    level, up to 30; dates are calendar features. A missing value is replaced by the last one before it, and a feature
    marks it. Numbers may be written as text, such as `1,234.5` or `12 %`. A column of text that differs in nearly every
    row is left out, with a note.

    `fit` learns all rows, `partial_fit` further ones: new levels get features, which come last. `transform` takes rows
    as if they followed the last one learnt, and keeps nothing of them: a level without a feature is 0 in all of them.

    Parameters
    ----------
    keep : list of str, default=None
        Use only these columns, also those of text that differs in nearly every row. None uses all.
    drop : list of str, default=None
        Leave these columns out.
    time : str, default=None
        The column with the time of each row. None is the first column of dates.

    Attributes
    ----------
    encoder_ : Encoder
        What has been learnt.
    notes_ : list of str
        What is unusual: columns that are left out, and formats of numbers.
    n_features_in_, feature_names_in_ : int, ndarray
        The columns; names only if these had names.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from streamlasso import RAPRegressor
    >>> from streamlasso.data.encoding import StreamEncoder
    >>> X = pd.DataFrame({"city": ["Rome", "Oslo", None, "Rome"], "price": ["1,200.5", "900", "1,000", None]})
    >>> encoder = StreamEncoder()
    >>> encoder.fit_transform(X)
    array([[1.0000e+00, 0.0000e+00, 0.0000e+00, 1.2005e+03, 0.0000e+00],
           [0.0000e+00, 1.0000e+00, 0.0000e+00, 9.0000e+02, 0.0000e+00],
           [0.0000e+00, 1.0000e+00, 1.0000e+00, 1.0000e+03, 0.0000e+00],
           [1.0000e+00, 0.0000e+00, 0.0000e+00, 1.0000e+03, 1.0000e+00]])
    >>> encoder.get_feature_names_out().tolist()
    ['city = Rome', 'city = Oslo', 'city missing', 'price', 'price missing']
    >>> model = make_pipeline(StreamEncoder(), RAPRegressor()).fit(X, [1.0, 2.0, 2.0, 1.5])
    """

    encoder_: Encoder
    n_features_in_: int

    def __init__(
        self, keep: Iterable[str] | None = None, drop: Iterable[str] | None = None, time: str | None = None
    ) -> None:
        self.keep = keep
        self.drop = drop
        self.time = time

    # --- learning -----------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything, detect what the columns hold, and learn the rows in order."""
        self._learn(X, reset=True)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Learn the rows in order, and return them: a missing value is filled with the last one before it."""
        return self._learn(X, reset=True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn further rows: the last value of each column, and new levels. A refused row changes nothing."""
        self._learn(X)
        return self

    def _learn(self, X: Any, *, reset: bool = False) -> np.ndarray:
        with learning(self):
            reset = reset or not hasattr(self, "encoder_")
            rows, labels = self._table(X, reset=reset)
            encoder = without_target(rows, **self.get_params()) if reset else self.encoder_.ahead()
            found = encoder.encode(encoder.read(rows, needs_target=False), grow=True).X
            self.__dict__.update(labels, encoder_=encoder)
            if "feature_names_in_" not in labels:
                self.__dict__.pop("feature_names_in_", None)
        return found

    # --- encoding -----------------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """The features (row, feature) of rows that follow the last one learnt, in order."""
        check_is_fitted(self)
        encoder = self.encoder_.ahead()
        return encoder.encode(encoder.read(self._table(X, reset=False)[0], needs_target=False), grow=False).X

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the features so far."""
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return np.array(self.encoder_.features, dtype=object)

    @property
    def notes_(self) -> list[str]:
        check_is_fitted(self)
        return list(self.encoder_.notes)

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _table(self, X: Any, *, reset: bool) -> tuple[pyarrow.RecordBatch, dict[str, Any]]:
        """The rows by the names of their columns, of a frame, or x0, x1, ...; and what is noted of these."""
        if issparse(X):
            raise TypeError("X is a sparse matrix, which holds numbers only: give it to the model without an encoder")
        if isinstance(X, pyarrow.RecordBatch):
            X = pyarrow.Table.from_batches([X])
        framed = hasattr(X, "columns") and hasattr(X, "shape")
        checks: dict[str, Any] = {"skip_check_array": True} if framed else {"dtype": None, "ensure_all_finite": False}
        X, labels = checked_array(self, X, reset=reset, **checks)
        if framed and not all(X.shape):
            raise ValueError(f"X has the shape {X.shape}: at least one row and one column are needed")
        labels = self._labels() if labels is None else labels
        names = _names(labels)
        if len(set(names)) < len(names):
            raise ValueError("X has two columns of the same name: rename one of them")
        return table_of(X, list(map(str, names))), labels

    def _labels(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name in NOTED}

    # --- checkpoints --------------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the encoder to `path` (JSON); the file appears whole or not at all."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        record = {
            "format": FORMAT,
            "settings": {name: value and list(value) for name, value in self.get_params().items() if name != "time"},
            "time": self.time,
            "n_features_in": self.n_features_in_,
            "feature_names_in": None if names is None else list(names),
            "encoder": self.encoder_.state(),
        }
        write_whole(path, json.dumps(record, allow_nan=False).encode())

    @classmethod
    def load(cls, path: Any) -> Self:
        """The encoder that `save` wrote. Loading runs no code of the file's."""
        try:
            text = Path(path).read_bytes()
            record = json.loads(text)
            if record["format"] != FORMAT:
                raise ValueError(f"format {record['format']!r}")
            encoder = cls(**record["settings"], time=record["time"])
            encoder.encoder_ = Encoder.from_state(record["encoder"])
            encoder.n_features_in_ = int(record["n_features_in"])
            if not 1 <= encoder.n_features_in_ <= len(text):
                raise ValueError(f"{encoder.n_features_in_} columns")
            if record["feature_names_in"] is not None:
                encoder.feature_names_in_ = np.array(record["feature_names_in"], dtype=object)
            encoder._refuse_misfit(record)
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise ValueError(f"{str(path)!r} was not written by StreamEncoder.save, or was altered: {error}") from error
        return encoder

    def _refuse_misfit(self, record: dict[str, Any]) -> None:
        """What was loaded must be what was saved, and take a row: one in which everything is missing."""
        encoder, names = self.encoder_.ahead(), _names(self._labels())
        words = [*names, *encoder.features, *encoder.notes, *(column.name for column in encoder.columns)]
        if len(names) != self.n_features_in_ or not all(isinstance(word, str) for word in words):
            raise ValueError("names that are no names")
        if json.dumps(encoder.state()) != json.dumps(record["encoder"]) or len(encoder.place) < len(encoder.features):
            raise ValueError("columns that are none")
        if encoder.time is not None and encoder.time_column is None:
            raise ValueError("a time without its column")
        for column in filter(None, [*encoder.columns, encoder.time_column]):
            column.read(pyarrow.array(["1"]))
        row = pyarrow.RecordBatch.from_pydict({name: pyarrow.nulls(1) for name in names})
        with np.errstate(all="ignore"):
            encoder.encode(encoder.read(row, needs_target=False), grow=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def _names(labels: dict[str, Any]) -> list[Any]:
    """Of the columns."""
    names = labels.get("feature_names_in_")
    return [f"x{j}" for j in range(labels["n_features_in_"])] if names is None else names.tolist()
