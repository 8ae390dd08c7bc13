"""How responses behave: loss, slope, curvature, mean and sampling, one file per family."""

from streamlasso.families.base import Family
from streamlasso.families.binomial import Binomial
from streamlasso.families.gamma import Gamma
from streamlasso.families.gaussian import Gaussian
from streamlasso.families.poisson import Poisson

__all__ = ["Binomial", "Family", "Gamma", "Gaussian", "Poisson"]

#: By the word that stands for them.
FAMILIES = {family.name: family for family in (Gaussian, Binomial, Poisson, Gamma)}
#: One setting or more of each part: the contract tests run over them.
EXAMPLES = tuple(family() for family in FAMILIES.values())
