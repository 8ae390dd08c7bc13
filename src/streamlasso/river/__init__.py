"""The river face: names become columns and labels become classes; nothing numerical happens here."""

try:
    import pandas  # noqa: F401
    import river.base  # noqa: F401
except ImportError as error:
    raise ImportError('streamlasso.river needs river and pandas: pip install "streamlasso[river]"') from error

from streamlasso.river.classifier import RAPClassifier
from streamlasso.river.detector import ChangeDetector
from streamlasso.river.encoder import StreamEncoder
from streamlasso.river.intervals import IntervalRegressor
from streamlasso.river.regressor import RAPRegressor
from streamlasso.wide.named import WideClassifier, WideRegressor

__all__ = [
    "ChangeDetector",
    "IntervalRegressor",
    "RAPClassifier",
    "RAPRegressor",
    "StreamEncoder",
    "WideClassifier",
    "WideRegressor",
]
