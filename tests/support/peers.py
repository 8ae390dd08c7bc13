"""Other packages, whichever version is there."""

import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.utils.fixes import parse_version


def sparse_logistic(l1_ratio=1.0, **settings):
    """A sparse logistic regression; before 1.8 scikit-learn wants the name of the penalty, and no ratio with L1."""
    if parse_version(sklearn.__version__) >= parse_version("1.8"):
        return LogisticRegression(l1_ratio=l1_ratio, **settings)
    named = {"penalty": "l1"} if l1_ratio == 1 else {"penalty": "elasticnet", "l1_ratio": l1_ratio}
    return LogisticRegression(**named, **settings)
