"""A model for every key (shop, meter, patient), in one process."""

from streamlasso.keyed.estimators import KeyedClassifier, KeyedRegressor

__all__ = ["KeyedClassifier", "KeyedRegressor"]
