"""The scikit-learn face: validation, attributes, several classes; nothing numerical happens here.

The estimators are imported when they are first used: the river face shares `multiclass` and `parameters`, and does not
need scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlasso.estimators.classifier import RAPClassifier
    from streamlasso.estimators.regressor import RAPRegressor

__all__ = ["RAPClassifier", "RAPRegressor"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{name.removeprefix('RAP').lower()}"), name)
