"""Sparse, self-tuning linear models on streams that never stop changing.

Names are imported when they are first used, so that `streamlasso --help` does not wait for scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlasso._merge import merge
    from streamlasso._progressive import progressive
    from streamlasso.estimators import RAPClassifier, RAPRegressor
    from streamlasso.trace import Trace
    from streamlasso.wide import WideClassifier, WideRegressor

__version__ = "0.1.0"

__all__ = ["RAPClassifier", "RAPRegressor", "Trace", "WideClassifier", "WideRegressor", "merge", "progressive"]

_MODULES = {
    "RAPClassifier": "streamlasso.estimators",
    "RAPRegressor": "streamlasso.estimators",
    "Trace": "streamlasso.trace",
    "WideClassifier": "streamlasso.wide",
    "WideRegressor": "streamlasso.wide",
    "merge": "streamlasso._merge",
    "progressive": "streamlasso._progressive",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_MODULES]
