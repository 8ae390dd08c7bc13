"""A network that changes over time: which nodes depend on which, given all others.

Each node is regressed on all others (neighbourhood selection), with its own lam. A pair has an edge if at least one of
its two coefficients is not zero (`rule="or"`), or if both are not (`rule="and"`). From node i's regression, with
residual standard deviation s_i, the partial correlation of i and j is  b_ij s_j / s_i;  of a pair's two estimates "or"
takes the larger, "and" the smaller. So a pair has an edge exactly if its partial correlation is not zero.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from streamlasso.core.base.record import RECORD
from streamlasso.estimators.face import Saved
from streamlasso.estimators.nested import NestedParts
from streamlasso.estimators.turns import behind_the_gate_of, between_rows, counting, learning, publish
from streamlasso.estimators.validation import NOTED, checked_features
from streamlasso.network.nodes import Nodes
from streamlasso.settings import checked, one_of
from streamlasso.tuners import LogRMS

if TYPE_CHECKING:
    import pyarrow

#: Time points learnt at a time, which bounds the memory for their record.
CHUNK = 64
RULES = ("and", "or")


@dataclass(frozen=True)
class NetworkTrace:
    """A network while it learnt: one row per time point, one column per node.

    >>> import numpy as np
    >>> from streamlasso.network import StreamingNetwork
    >>> X = np.random.default_rng(0).normal(size=(50, 3))
    >>> trace = StreamingNetwork().follow(X)
    >>> trace.networks.shape, trace.lam.shape
    ((50, 3, 3), (50, 3))
    """

    names: list[str]
    networks: np.ndarray  #: (time, node, node): the partial correlations after each time point; 0 without an edge
    lam: np.ndarray
    lam_max: np.ndarray
    loss: np.ndarray  #: of each node's prediction, made before the time point was learnt
    n_active: np.ndarray


class StreamingNetwork(Saved, NestedParts):
    """A self-tuning sparse conditional-dependence network of p nodes, learnt one time point at a time.

    Parameters
    ----------
    family : {"gaussian", "binomial"} or another family, default="gaussian"
        "binomial" for nodes that are 0 or 1: votes, spikes.
    memory : float, Forgetting, Window or AdaptiveForgetting, default=0.95
        How the past is forgotten; a float is a forgetting factor.
    tuner : LogRMS, LARS, SGD, Fixed, Mixture or a Tuner of your own, default=None
        How each node's lam moves; None is `LogRMS()`.
    rule : {"and", "or"}, default="and"
        Whether an edge needs both coefficients of a pair, or one of them.
    penalty, gradient, curvature, lambda_init, fit_intercept, standardize, history
        As in `streamlasso.RAPRegressor`.
    n_jobs : int, default=None
        Number of threads; None is one per core if there are enough nodes. The results do not depend on it.

    Attributes
    ----------
    coef_, intercept_ : (p, p) and (p,); row i is the regression of node i on all others
    adjacency_, partial_correlation_ : (p, p), symmetric; whether there is an edge, and its strength (for families other
        than the Gaussian: the coefficient)
    edges_ : a table of the edges, strongest first: source, target, sign, strength
    lambda_, lambda_max_ : (p,), the penalty of each node, and the smallest one that leaves it without edges
    n_seen_, effective_size_ : the number of time points learnt, and the total weight of those in memory
    constant_ : the names of the nodes that are constant over the whole memory

    Examples
    --------
    >>> import numpy as np
    >>> from streamlasso.network import StreamingNetwork
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4))
    >>> X[:, 1] += X[:, 0]
    >>> X[:, 2] -= X[:, 1]
    >>> model = StreamingNetwork(memory=0.99).partial_fit(X)
    >>> model.partial_correlation_.round(1) + 0.0
    array([[ 0. ,  0.5,  0. ,  0. ],
           [ 0.5,  0. , -0.7,  0. ],
           [ 0. , -0.7,  0. ,  0. ],
           [ 0. ,  0. ,  0. ,  0. ]])
    >>> model.edges_["sign"].to_pylist()[:2]
    ['-', '+']
    """

    learners_: list[Nodes]
    n_features_in_: int

    def __init__(
        self,
        family: Any = "gaussian",
        memory: Any = 0.95,
        penalty: Any = None,
        tuner: Any = None,
        rule: str = "and",
        gradient: str = "exact",
        curvature: str = "updated",
        lambda_init: float | None = None,
        fit_intercept: bool = True,
        standardize: bool = True,
        history: int = 64,
        n_jobs: int | None = None,
    ) -> None:
        self.family = family
        self.memory = memory
        self.penalty = penalty
        self.tuner = tuner
        self.rule = rule
        self.gradient = gradient
        self.curvature = curvature
        self.lambda_init = lambda_init
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.history = history
        self.n_jobs = n_jobs

    # --- learning -----------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Reset the model, then learn the time points in order."""
        return self._learn(X, reset=True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn each time point once, in order; a vector is one time point. A refused batch changes nothing."""
        return self._learn(_as_rows(X))

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Reset the model, learn the time points, and return the network after each: (time, p, p)."""
        return self._follow(X, reset=True).networks

    def follow(self, X: Any) -> NetworkTrace:
        """`partial_fit` that returns the network, lam and the loss at each time point."""
        return self._follow(_as_rows(X))

    def _follow(self, X: Any, *, reset: bool = False) -> NetworkTrace:
        records, networks = [], []

        def keep(nodes: Nodes, record: np.ndarray, coef: np.ndarray, variance: np.ndarray) -> None:
            records.append(record)
            networks.append(_strengths(coef, variance, self.rule, nodes.most))

        self._learn(X, reset=reset, keep=keep)
        record = np.concatenate(records)
        columns = {name: record[:, :, RECORD.index(name)] for name in ("lam", "lam_max", "loss", "n_active")}
        return NetworkTrace(self._names, np.concatenate(networks), **columns)

    def _learn(self, X: Any, *, reset: bool = False, keep: Callable[..., None] | None = None) -> Self:
        """Learn the time points in pieces; `keep` takes what is noted of each.

        Between two pieces other threads read the network, and Ctrl-C is heard. A family or tuner written in Python may
        raise: then nothing is learnt.
        """
        with learning(self):
            X, nodes, labels = self._ready(X, reset=reset or not hasattr(self, "learners_"))
            before = None if nodes.learners[0].compiled else nodes.pack()
            with counting(len(X)) as learnt:
                try:
                    for start in range(0, len(X), CHUNK):
                        found = nodes.learn(X[start : start + CHUNK], traced=keep is not None, learnt=learnt)
                        if keep is not None:
                            keep(nodes, *found)
                except BaseException:
                    if before is not None:
                        nodes.unpack(before)
                        learnt[:] = 0
                    raise
                finally:
                    if learnt[0]:
                        self._settle(nodes, labels)
        return self

    def _ready(self, X: Any, *, reset: bool) -> tuple[np.ndarray, Nodes, dict[str, Any] | None]:
        """The validated time points, the engine that learns them, a new one if `reset`, and its labels."""
        one_of("rule", self.rule, RULES)
        X, labels = checked_features(self, X, reset=reset, least=2 if reset else 1)
        nodes = self._new_nodes(X.shape[1]) if reset else self.learners_[0]
        nodes.refuse_unfit(X)
        return X, nodes, labels

    def _new_nodes(self, p: int) -> Nodes:
        if self.n_jobs is not None and (type(self.n_jobs) is not int or self.n_jobs < 1):
            raise ValueError(
                f"n_jobs={self.n_jobs!r} is not a number of threads: use 1 or more, or None for one per core"
            )
        settings = {**self.get_params(deep=False), "penalty_factor": None, "batch_size": 1}
        if self.tuner is None:
            settings["tuner"] = LogRMS()
        nodes = Nodes(p, checked(p, settings), self.n_jobs)
        return behind_the_gate_of(self, [nodes])[0]

    def _settle(self, nodes: Nodes, labels: dict[str, Any] | None) -> None:
        if labels is not None:
            publish(self, [nodes], labels, gone=tuple(name for name in NOTED if name not in labels))
        if nodes.newly_constant():
            warnings.warn(
                f"constant so far, and therefore without edges: {', '.join(self.constant_)}", UserWarning, stacklevel=3
            )

    # --- the network now ----------------------------------------------------------------------------------------

    def _fitted(self) -> list[Nodes]:
        if not hasattr(self, "learners_"):
            raise NotFittedError("This StreamingNetwork has learnt no time points yet: call fit or partial_fit first.")
        return self.learners_

    @property
    def _nodes(self) -> Nodes:
        return self._fitted()[0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "learners_")

    @property
    def _names(self) -> list[str]:
        return [str(name) for name in getattr(self, "feature_names_in_", range(self.n_features_in_))]

    @property
    @between_rows
    def coef_(self) -> np.ndarray:
        return self._nodes.now()[0][:, 1:]

    @property
    @between_rows
    def intercept_(self) -> np.ndarray:
        return self._nodes.now()[0][:, 0]

    @property
    @between_rows
    def lambda_(self) -> np.ndarray:
        return np.array([learner.lam for learner in self._nodes.learners])

    @property
    @between_rows
    def lambda_max_(self) -> np.ndarray:
        return np.array([learner.lam_max for learner in self._nodes.learners])

    @property
    @between_rows
    def partial_correlation_(self) -> np.ndarray:
        coef, variance = self._nodes.now()
        return _strengths(coef[None], variance[None], self.rule, self._nodes.most)[0]

    @property
    def adjacency_(self) -> np.ndarray:
        return self.partial_correlation_ != 0

    @property
    @between_rows
    def edges_(self) -> pyarrow.Table:
        import pyarrow

        source, target, strength = sorted_edges(self.partial_correlation_)
        names = np.array(self._names)
        return pyarrow.table(
            {
                "source": pyarrow.array(names[source].tolist(), pyarrow.string()),
                "target": pyarrow.array(names[target].tolist(), pyarrow.string()),
                "sign": pyarrow.array(np.where(strength > 0, "+", "-").tolist(), pyarrow.string()),
                "strength": np.abs(strength),
            }
        )

    @property
    @between_rows
    def constant_(self) -> list[str]:
        """Nodes that are constant over the whole memory."""
        return [name for name, still in zip(self._names, self._nodes.constant(), strict=True) if still]

    @property
    @between_rows
    def n_seen_(self) -> int:
        return self._nodes.n_seen

    @property
    @between_rows
    def effective_size_(self) -> float:
        return self._nodes.learners[0].effective_size

    # --- files --------------------------------------------------------------------------------------------------

    @staticmethod
    def _build(n_features: int, settings: dict[str, Any]) -> Nodes:
        """The engine that a checkpoint fills."""
        return Nodes(n_features, checked(n_features, settings))

    def _whole(self) -> bool:
        p = self.learners_[0].n_features
        return len(self.learners_) == 1 and self.n_features_in_ == p == len(self._names)


def _as_rows(X: Any) -> Any:
    """A vector of numbers is one time point; a pandas Series is not, since its index may be time or nodes."""
    vector = getattr(X, "ndim", None) == 1 or (isinstance(X, list | tuple) and np.ndim(X) == 1)
    return np.asarray(X)[None] if vector and not hasattr(X, "iloc") else X


def _strengths(coef: np.ndarray, variance: np.ndarray, rule: str, most: float) -> np.ndarray:
    """(time, p, p) partial correlations, at most `most`, from (time, node, p + 1) coefficients and residual variances.

    For families other than the Gaussian, whose variances are 1, these are the coefficients.
    """
    one_of("rule", rule, RULES)
    spread = np.sqrt(variance)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = coef[:, :, 1:] * (spread[:, None, :] / spread[:, :, None])
    found = np.clip(np.nan_to_num(found, posinf=most, neginf=-most), -most, most)
    mirror = found.transpose(0, 2, 1)
    larger = np.abs(found) >= np.abs(mirror)
    chosen = np.where(larger == (rule == "or"), found, mirror)
    # If the two estimates differ only in sign, both halves take the upper one's.
    return np.triu(chosen, 1) + np.triu(chosen, 1).transpose(0, 2, 1)


def sorted_edges(network: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Source, target and signed strength of each edge of a (p, p) network, strongest first.

    >>> import numpy as np
    >>> sorted_edges(np.array([[0.0, 0.2, 0.0], [0.2, 0.0, -0.5], [0.0, -0.5, 0.0]]))
    (array([1, 0]), array([2, 1]), array([-0.5,  0.2]))
    """
    upper = np.triu(network, 1)
    source, target = np.nonzero(upper)
    strength = upper[source, target]
    order = np.argsort(-np.abs(strength), kind="stable")
    return source[order], target[order], strength[order]
