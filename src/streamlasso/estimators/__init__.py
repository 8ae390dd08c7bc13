"""The scikit-learn face: validation, attributes, several classes; nothing numerical happens here."""

from streamlasso.estimators._estimators import RAPClassifier, RAPRegressor

__all__ = ["RAPClassifier", "RAPRegressor"]
