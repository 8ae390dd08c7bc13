"""What coefficients cost, one file per penalty."""

from streamlasso.penalties.base import Penalty
from streamlasso.penalties.elastic_net import ElasticNet
from streamlasso.penalties.l1 import L1
from streamlasso.penalties.ridge import Ridge

__all__ = ["L1", "ElasticNet", "Penalty", "Ridge"]

#: By the word that stands for them.
PENALTIES = {penalty.name: penalty for penalty in (L1, ElasticNet, Ridge)}
#: One setting or more of each part: the contract tests run over them.
EXAMPLES = (L1(), ElasticNet(0.5), Ridge())
