"""Millions of sparse features: text, clicks, logs.

Names are imported when they are first used: the river face does without scikit-learn.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlasso.wide.estimators import WideClassifier, WideRegressor

__all__ = ["WideClassifier", "WideRegressor"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from streamlasso.wide import estimators

    return getattr(estimators, name)
