"""How responses behave: loss, slope, curvature, mean and sampling, one file a family."""

from streamlasso.families.base import Family
from streamlasso.families.binomial import Binomial
from streamlasso.families.gamma import Gamma
from streamlasso.families.gaussian import Gaussian
from streamlasso.families.poisson import Poisson

__all__ = ["Binomial", "Family", "Gamma", "Gaussian", "Poisson"]

#: One setting or more of each part: the contract tests run over them.
EXAMPLES = (Gaussian(), Binomial(), Poisson(), Gamma())
