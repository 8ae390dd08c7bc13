"""Sparse linear models on streams that never stop changing, tuned by nobody."""

from streamlasso.estimators import RAPClassifier, RAPRegressor
from streamlasso.progressive import Trace, progressive

__version__ = "0.1.0"

__all__ = ["RAPClassifier", "RAPRegressor", "Trace", "progressive"]
