"""How lam moves, one file per rule."""

from collections.abc import Callable

from streamlasso.tuners.base import Tuner
from streamlasso.tuners.fixed import Fixed
from streamlasso.tuners.lars import LARS
from streamlasso.tuners.log_rms import LogRMS
from streamlasso.tuners.mixture import Mixture
from streamlasso.tuners.sgd import SGD

__all__ = ["LARS", "SGD", "Fixed", "LogRMS", "Mixture", "Tuner"]

#: By the word that stands for them.
TUNERS: dict[str, Callable[..., Tuner]] = {tuner.name: tuner for tuner in (Mixture, LogRMS, LARS, SGD, Fixed)}
#: One setting or more of each part that makes one model: the contract tests run over them.
EXAMPLES = (Fixed(0.1), SGD(0.01), LARS(0.01), LogRMS())
