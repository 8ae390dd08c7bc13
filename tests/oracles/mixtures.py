"""Mixtures for the contract tests, and their rules written out plainly: the averages, and what is within bounds.

One row at a time: every expert's coefficients are read off the state before it, and what should be after it follows.
"""

import numpy as np
from scipy.special import logit

from streamlasso.core.mixture.mixture import MixtureLearner
from streamlasso.families import Binomial, Gaussian
from streamlasso.memories import AdaptiveForgetting, Forgetting, Window
from streamlasso.penalties import L1
from streamlasso.tuners import LogRMS, Mixture

#: Parts that are no rule for one model, but are composed of many by the engine: not among the EXAMPLES of their room,
#: which drive a single Learner. Theirs are COMPETITIONS, and core/test_mixture.py holds their contract.
COMPOSED = (Mixture, AdaptiveForgetting)


def uncarried(tuner):
    """The tuner, without what the last residuals add."""
    return Mixture(**{**tuner.settings(), "carry": False}) if tuner.competes else tuner


#: (memory, tuner): one setting or more of each kind of mixture.
COMPETITIONS = {
    "default": (None, Mixture()),
    "few": (None, Mixture(powers=(0.0, 0.4, 0.9), factors=(0.9,), runs=4)),
    "no ridges": (None, Mixture(powers=(0.3, 0.7), factors=(0.95,), runs=0)),
    "forgetting": (Forgetting(0.95), Mixture()),
    "window": (Window(30), Mixture(powers=(0.0, 0.5, 1.0))),
    "factors x powers": (AdaptiveForgetting((0.9, 1.0)), Mixture(powers=(0.3, 0.7))),
    "factors x tuner": (AdaptiveForgetting((0.9, 0.98, 1.0)), LogRMS()),
}

#: The same where the last residuals move no prediction: the rules of experts and weights alone.
UNCARRIED = {name: (memory, uncarried(tuner)) for name, (memory, tuner) in COMPETITIONS.items()}

FIRST_ROWS = 10
#: The most that a row may count against an expert, in units of the noise.
CAP = 6.0


def mixture(stream, **settings):
    """A mixture as wide as the stream, with the estimators' defaults."""
    p = stream.X.shape[1]
    defaults = dict(
        memory=None,
        tuner=Mixture(carry=False),
        penalty=L1(),
        gradient="exact",
        curvature="updated",
        lambda_init=None,
        penalty_factor=np.ones(p),
        fit_intercept=True,
        standardize=True,
        history=64,
    )
    return MixtureLearner(p, **{**defaults, **settings})


def is_ridge(state, m):
    return f"experts{m}/P" in state


def experts(model, state=None):
    """(memory, penalty, b0 and b) of all experts; no number where there is none."""
    state = model.state() if state is None else state
    found = np.full((*model.weights.shape, model.n_features + 1), np.nan)
    for m in range(len(found)):
        group = f"experts{m}/"
        if is_ridge(state, m):
            if state[f"{group}prior"][0] > 0:
                found[m, 0] = state[f"{group}b"]
                found[m, 0, 0] -= state[f"{group}b"] @ state[f"{group}centre"]
            continue
        one_lam = f"{group}solutions" not in state
        for k in range(model.experts[m].n):
            active = f"{group}active{'' if one_lam else k or ''}"
            found[m, k] = 0.0
            found[m, k, 0] = state[f"{group}point"][0] if one_lam else state[f"{group}solutions"][k, 1]
            found[m, k, 1 + state[f"{active}.members"]] = state[f"{active}.solution"][:, 0]
    return found


def used(hedge, w, prior=None):
    """Of weights, what has not just leaked back to the prior, of equal parts by default."""
    prior = np.ones(len(w)) / len(w) if prior is None else prior
    left = np.maximum(w - 2 * hedge.share * prior, 0.0) if hedge.share > 0 else w
    return left / left.sum()


def weights_in(model, group, state):
    """Of a group's experts, in its average: a ridge that has had no row yet counts for nothing."""
    w = used(group.hedge, state[f"{group.name}/hedge/w"])
    if group.name != "restarting":
        return w
    judged = w * (state["restarting/began"] < state["seen"][0])
    return judged / judged.sum() if judged.sum() > 0 else w


def flat(model, by_memory):
    """Numbers by memory and penalty, in one row: the places that groups speak of."""
    return np.concatenate([by_memory[m, : each.n] for m, each in enumerate(model.experts)])


def averaged(model):
    """(b0, b) of the mixture without a carry: each group's average of the experts, averaged by the gate."""
    each, state, found = flat(model, experts(model)), model.state(), np.zeros(model.n_features + 1)
    for group in model.groups:
        w = weights_in(model, group, state)
        there = w > 0
        found += model.group_weights[group.name] * (w[there] @ each[group.first : group.first + group.n][there])
    return found


# --- bounds ---------------------------------------------------------------------------------------------------------


def widened(low, high):
    return low - 0.5 * (high - low), high + 0.5 * (high - low)


def held(values, low, high, n):
    """Values within the widened range; whatever they are in the first rows, or where there is no range."""
    return np.where((n < FIRST_ROWS) | (low == high), values, np.clip(values, *widened(low, high)))


def link(family, mean):
    if type(family) is Gaussian:
        return mean
    return logit(mean) if type(family) is Binomial else np.log(mean)


def eta_bounds(family, y_low, y_high, n):
    """Where the mean is at its bounds, after n rows."""
    end_low, end_high = {"Gaussian": (-np.inf, np.inf), "Binomial": (0.0, 1.0)}.get(type(family).__name__, (0, np.inf))
    low, high = widened(y_low, y_high)
    never = ((y_high - y_low) or 1.0) / (2 * (n + 1))
    if low <= end_low:
        low = (y_low + end_low) / 2 if y_low > end_low else end_low + never
    if high >= end_high:
        high = (y_high + end_high) / 2 if y_high < end_high else end_high - never
    if y_low == y_high:  # one response only
        low = high = high if y_low == end_high else low
    return link(family, low), link(family, high)


def trust(x, low, high):
    """What is left of a row's weight: 1/k for the value that lies furthest beyond its bound, k times."""
    reach = high - low
    away = np.abs(x - (low + high) / 2)
    beyond = np.where(reach > 0, away / np.where(reach > 0, reach, 1.0), 0.0)
    return 1 / max(1.0, beyond.max())


# --- one row --------------------------------------------------------------------------------------------------------


class Row:
    """A row of weight `weight`, and what a mixture that is in this state, without a carry, makes of it."""

    def __init__(self, model, state, x, y, weight):
        self.family, self.n = model.settings["family"], int(state["seen"][0])
        self.low, self.high = state["bounds/features"]
        self.y_low, self.y_high, self.eta_low, self.eta_high = state["bounds/response"]
        early = self.n < FIRST_ROWS
        ranges = np.append(self.low, self.y_low), np.append(self.high, self.y_high)
        self.weight = weight * (1.0 if early else trust(np.append(x, y), *ranges))
        self.x = held(x, self.low, self.high, self.n)
        self.y = float(held(y, self.y_low, self.y_high, self.n))
        self.groups, self.gate, self.total = model.groups, model.group_weights, model.weights
        self.w = {group.name: weights_in(model, group, state) for group in model.groups}
        self.etas = experts(model, state) @ np.append(1.0, self.x)
        self.each = flat(model, self.etas)
        self.phi, self.phi_weight = state["dispersion"]

    @property
    def averages(self):
        """What each group predicts: its experts held within one width outside the bounds, their average within them."""
        width = self.eta_high - self.eta_low
        pulls = np.clip(self.each, self.eta_low - width, self.eta_high + width) if np.isfinite(width) else self.each
        return {
            group.name: float(
                np.clip(
                    np.nansum(self.w[group.name] * pulls[group.first : group.first + group.n]),
                    self.eta_low,
                    self.eta_high,
                )
            )
            for group in self.groups
        }

    @property
    def eta(self):
        """The average prediction, and that within the bounds."""
        if not self.n:
            return 0.0
        return float(
            np.clip(sum(self.gate[name] * eta for name, eta in self.averages.items()), self.eta_low, self.eta_high)
        )

    def excess(self, eta):
        """Loss less the least that any eta within the bounds could have had."""
        with np.errstate(all="ignore"):
            best = np.clip(link(self.family, self.y), self.eta_low, self.eta_high)
            return self.family.loss(self.y, eta) - self.family.loss(self.y, best)

    def loss(self, eta, phi):
        """In units of the noise."""
        return self.weight * np.minimum(self.excess(eta) / phi, CAP if self.family.has_scale else np.inf)

    def dispersion(self):
        """The recent mean deviance, of the first rows about by the squares of their numbers; its weight."""
        if self.n < 2 or not self.family.has_scale:
            return self.phi, self.phi_weight
        deviance = 2 * max(float(self.excess(self.eta)), 0.0)
        if self.phi > 0:
            rounding = (1e-14 * self.y) ** 2 if self.family.quadratic else 0.0
            deviance = max(min(deviance, 2 * CAP * self.phi), rounding)
        weight = min(0.98, self.phi_weight / (self.phi_weight + 2 / 3)) * self.phi_weight + 1
        return self.phi + (deviance - self.phi) / weight, weight

    def bounds(self):
        """(features, response) after the row; eta's bounds move when the response's do, and when n doubles. Those of
        a linear model begin with FIRST_ROWS rows."""
        first, n = self.n == 0, self.n + 1
        low, high = (self.x, self.x) if first else (np.minimum(self.low, self.x), np.maximum(self.high, self.x))
        y_low, y_high = (self.y, self.y) if first else (min(self.y_low, self.y), max(self.y_high, self.y))
        etas = self.eta_low, self.eta_high
        moved = (y_low, y_high) != (self.y_low, self.y_high)
        if type(self.family) is Gaussian and n < FIRST_ROWS:
            etas = -np.inf, np.inf
        elif first or moved or n.bit_count() == 1 or n == FIRST_ROWS:
            etas = eta_bounds(self.family, y_low, y_high, n)
        return np.array([low, high]), np.array([y_low, y_high, *etas])
