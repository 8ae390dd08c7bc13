"""Mixtures for the contract tests, and their rules written out plainly: the weights, and what is within bounds.

One row at a time: every expert's coefficients are read off the state before it, and what should be after it follows.
"""

import math

import numpy as np
from scipy.special import logit

from streamlasso.core.mixture import MixtureLearner
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
    "few": (None, Mixture(powers=(0.0, 0.4, 0.9), factors=(0.9,), starts=3)),
    "forgetting": (Forgetting(0.95), Mixture()),
    "window": (Window(30), Mixture(powers=(0.0, 0.5, 1.0))),
    "factors x powers": (AdaptiveForgetting((0.9, 1.0)), Mixture(powers=(0.3, 0.7))),
    "factors x tuner": (AdaptiveForgetting((0.9, 0.98, 1.0)), LogRMS()),
}

#: The same where the last residuals move no prediction: the rules of experts and weights alone.
UNCARRIED = {name: (memory, uncarried(tuner)) for name, (memory, tuner) in COMPETITIONS.items()}

FIRST_ROWS, YOUNG, CAP, FADE = 10, 12, 6.0, 0.98
ALPHA = 4.0 ** -np.array([1, 2, 3, 4, 5, 7, 2, 4])
#: What a group that begins anew has at once, for each row on which it could have begun.
HAZARD = np.array([0, 0, 0, 0, 0, 0, 0.01, 0.01])
LEAST_PI = 1e-200


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


def experts(model, state=None):
    """(group, penalty, b0 and b) of all experts; no number where there is none."""
    state = model.state() if state is None else state
    found = np.full((*model.weights.shape, model.n_features + 1), np.nan)
    for m in np.flatnonzero(state["began"] >= 0):
        group = f"experts{m}/"
        if f"{group}P" in state:
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


def there(model):
    """(group, penalty): whether there is such an expert, in a group that may not be there now."""
    sizes = np.array([group.n for group in model.experts])
    return np.arange(sizes.max()) < sizes[:, None]


def spread_out(model, flat):
    """(share, group, penalty) of numbers by expert and share; 0 where there is no expert."""
    found = np.zeros((flat.shape[1], *there(model).shape))
    found[:, there(model)] = flat.T
    return found


def pools(model):
    """Of each kind of group that restarts: which, and how many rows lie between two restarts: four, or as many as leave
    half of the groups not young."""
    kinds = [group.kind if group.restarts else "" for group in model.experts]
    names = sorted(set(kinds) - {""})
    return [(np.array([k == name for k in kinds]), every(kinds.count(name))) for name in names]


def every(starts):
    return max(4, math.ceil(2 * YOUNG / starts))


# --- shares ---------------------------------------------------------------------------------------------------------


def levelled(alive, places):
    """Equal weights for all groups that are there; `places`: (group, penalty), where there are experts."""
    return np.outer(alive / alive.sum(), np.ones(places.shape[1])) * places / places.sum(axis=1, keepdims=True)


def updated_shares(pi, w, alive, loss, share_loss, places=None):
    """pi (share), w (share, group, penalty) after a row with these losses (group, penalty) and (share)."""
    places = np.ones(w.shape[1:], dtype=bool) if places is None else places
    single = ~places.all(axis=1)
    likely = np.where(places, w * np.exp(-loss) * alive[:, None], 0.0)
    kept = likely.sum(axis=(1, 2))
    new = np.empty_like(w)
    for h, alpha in enumerate(ALPHA):
        u = likely[h] / kept[h] if kept[h] > 0 else levelled(alive, places)
        # A group of one is as many equal models, one for each penalty.
        u = np.where(single[:, None], u.sum(axis=1, keepdims=True) / w.shape[2], u)
        left = np.column_stack([u[:, :1], u[:, :-1]])
        right = np.column_stack([u[:, 1:], u[:, -1:]])
        others = alive[:, None] * u.sum(axis=0) / alive.sum()
        new[h] = (1 - alpha) * u + alpha / 2 * others + alpha / 2 * (left + right) / 2
        together = new[h].sum(axis=1)
        new[h] = np.where(single[:, None], 0.0, new[h])
        new[h, :, 0] += np.where(single, together, 0.0)
    pi = pi * np.exp(-share_loss)
    return np.maximum(pi / pi.sum(), LEAST_PI), new


def with_nothing(w, odds, evidence):
    """The weights (group, penalty) of a mixture beside the first expert alone, at these odds after this evidence."""
    against = 1 / (1 + odds * math.exp(evidence))
    w = against * w
    w[0, 0] += 1 - against
    return w


def without(w, alive, m, places):
    """The shares' weights when group m has gone; `alive`: those left."""
    w = w.copy()
    w[:, m] = 0.0
    kept = w.sum(axis=(1, 2), keepdims=True)
    return np.where(kept > 0, w / np.where(kept > 0, kept, 1.0), levelled(alive, places))


def with_new(w, m, rows):
    """The shares' weights when group m, of one expert, has begun anew, this many rows after the last that did."""
    part = np.minimum(rows * HAZARD, 0.5)
    w = w * (1 - part)[:, None, None]
    w[:, m, 0] = part
    return w


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


def squared_odds(zeros, ones):
    """Where eta may be after so many rows of each class: at most the square of the odds of Krichevsky and Trofimov."""
    return 2 * np.log(0.5 / (zeros + 0.5)), 2 * np.log((ones + 0.5) / 0.5)


def trust(x, low, high):
    """What is left of a row's weight: 1/k for the value that lies furthest beyond its bound, k times."""
    reach = high - low
    away = np.abs(x - (low + high) / 2)
    beyond = np.where(reach > 0, away / np.where(reach > 0, reach, 1.0), 0.0)
    return 1 / max(1.0, beyond.max())


# --- one row --------------------------------------------------------------------------------------------------------


class Row:
    """What a row of weight `weight` does to the weights, the noise and the bounds of a mixture in this state."""

    def __init__(self, model, state, x, y, weight):
        self.family, self.n = model.settings["family"], int(state["seen"][0])
        self.low, self.high = state["bounds/features"]
        self.y_low, self.y_high, self.eta_low, self.eta_high = state["bounds/response"]
        early = self.n < FIRST_ROWS
        ranges = np.append(self.low, self.y_low), np.append(self.high, self.y_high)
        self.weight = weight * (1.0 if early else trust(np.append(x, y), *ranges))
        self.x = held(x, self.low, self.high, self.n)
        self.y = float(held(y, self.y_low, self.y_high, self.n))
        self.pi, self.alive = state["shares/pi"], (state["began"] >= 0).astype(float)
        self.odds, self.evidence = state["shares/nothing"]
        self.doubts = "experts0/solutions" in state and model.settings["tuner"].powers_for(self.family)[0] == 0
        self.w, self.places = spread_out(model, state["shares/w"]), there(model)
        self.exact = np.array(
            [f"experts{m}/solutions" not in state and group.sparse for m, group in enumerate(model.experts)]
        )
        self.etas = self.held_back(experts(model, state) @ np.append(1.0, self.x), state["experience"])
        self.phi, self.phi_weight = state["dispersion"]

    def held_back(self, etas, experience):
        """Within what each group has seen, or up to what the first group predicts."""
        classes = type(self.family) is Binomial
        out = etas.copy()
        if classes and experience[0, 2] > 0 and not self.exact[0]:
            out[0] = np.clip(etas[0], *squared_odds(*experience[0, :2]))
        first = self.total[0]
        bounded = np.clip(np.where(np.isnan(out[0]), 0.0, out[0]), self.eta_low, self.eta_high)
        reference = first @ bounded / first.sum() if first.sum() > 0 else bounded[0]
        for m, (low, high, rows) in enumerate(experience):
            if m > 0 and rows > 0 and not (classes and self.exact[m]):
                ends = squared_odds(low, high) if classes else self.a_fifth_wider(low, high, rows, reference)
                out[m] = np.clip(etas[m], min(ends[0], reference), max(ends[1], reference))
        return out

    def a_fifth_wider(self, low, high, rows, reference):
        """Of the responses seen and the mean that the first group predicts; with a link no further than the bounds."""
        room = 0.2 * (high - low) + (self.y_high - self.y_low) / rows**2
        mean = float(self.family.mean(reference))
        ends = np.array([min(low, mean) - room, max(high, mean) + room])
        if type(self.family) is Gaussian:
            return ends
        bounds = self.family.mean(np.array([self.eta_low, self.eta_high]))
        return np.log(np.clip(ends, *bounds))

    @property
    def total(self):
        """The weights that count."""
        return with_nothing(np.tensordot(self.pi, self.w, 1), self.odds, self.evidence)

    @property
    def eta(self):
        """The average prediction, each held within one width outside the bounds, and the average within them."""
        return self.average(self.total) if self.n else 0.0

    def average(self, w):
        return np.clip(self.unclipped(w), self.eta_low, self.eta_high)

    def unclipped(self, w):
        width = self.eta_high - self.eta_low
        pulls = np.clip(self.etas, self.eta_low - width, self.eta_high + width)
        return np.nansum(w * pulls, axis=(-2, -1))

    def excess(self, eta):
        """Loss less the least that any eta within the bounds could have had."""
        with np.errstate(all="ignore"):
            best = np.clip(link(self.family, self.y), self.eta_low, self.eta_high)
            return self.family.loss(self.y, eta) - self.family.loss(self.y, best)

    def dispersion(self):
        if not self.n or type(self.family) is Binomial:
            return self.phi, self.phi_weight
        deviance = 2 * max(float(self.excess(self.eta)), 0.0)
        if self.phi > 0:
            deviance = min(deviance, 2 * CAP * self.phi)
        weight = FADE * self.phi_weight + 1
        return self.phi + (deviance - self.phi) / weight, weight

    def nothing(self):
        """The odds of nothing to learn, three tenths or, where rows say little, more; and the evidence, 3 at most."""
        phi = self.dispersion()[0]
        if not self.doubts or not self.n or not phi > 0 or not np.isfinite(self.etas).any():
            return self.odds, self.evidence
        cap = CAP if self.family.has_scale else np.inf
        empty = np.clip(self.etas[0, 0], self.eta_low, self.eta_high)
        together = np.clip(self.pi @ self.unclipped(self.w), self.eta_low, self.eta_high)
        with_it, without_it = (self.weight * min(self.excess(eta) / phi, cap) for eta in (together, empty))
        mean = float(self.family.mean(empty))
        says = {"Binomial": mean * (1 - mean), "Poisson": mean}.get(type(self.family).__name__, 1.0)
        gain = with_it - without_it
        evidence = min(self.evidence + gain, 3.0) if np.isfinite(gain) else self.evidence
        return 0.3 / min(max(4 * says, 1e-6), 1) ** 2, evidence

    def shares(self):
        phi = self.dispersion()[0]
        if not self.n or not phi > 0:
            return self.pi, self.w
        there = (self.alive[:, None] > 0) & np.isfinite(self.etas)
        if not there.any():
            return self.pi, self.w
        cap = CAP if self.family.has_scale else np.inf
        etas = np.where(there, self.etas, 0.0), self.average(self.w)
        loss, share_loss = (self.weight * np.minimum(self.excess(eta) / phi, cap) for eta in etas)
        loss = np.where(there, loss, np.inf)
        loss, share_loss = loss - loss.min(), share_loss - share_loss.min()
        return updated_shares(self.pi, self.w, self.alive, loss, share_loss, self.places)

    def bounds(self):
        """(features, response) after the row; eta's bounds move when the response's do, and when n doubles."""
        first = self.n == 0
        low, high = (self.x, self.x) if first else (np.minimum(self.low, self.x), np.maximum(self.high, self.x))
        y_low, y_high = (self.y, self.y) if first else (min(self.y_low, self.y), max(self.y_high, self.y))
        etas = self.eta_low, self.eta_high
        moved = (y_low, y_high) != (self.y_low, self.y_high)
        if first or moved or (self.n + 1).bit_count() == 1:
            etas = eta_bounds(self.family, y_low, y_high, self.n + 1)
        return np.array([low, high]), np.array([y_low, y_high, *etas])
