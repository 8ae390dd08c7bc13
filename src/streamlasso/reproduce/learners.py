"""The learners of the non-stationary study, in groups that are run and saved together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from streamlasso import RAPRegressor, progressive
from streamlasso.reproduce.offline import Run, cross_validated_lam, fixed, regimes, stepwise
from streamlasso.reproduce.smbo import smbo_lam
from streamlasso.simulate import Stream
from streamlasso.tuners import LARS, SGD, LogRMS, Mixture

#: Rows that are learnt but not scored: a fixed lam is at a disadvantage there.
WARM_UP = 20
#: Learner, setting and run.
Named = tuple[str, str, Run]
FLOOR, ALL_FEATURES = "noise floor", "all features"
STEPWISE, FIXED, SMBO = "Stepwise (CV)", "Fixed (CV)", "Fixed (SMBO)"
RAP, APPROXIMATE, NORMALISED = "RAP", "RAP (approximate)", "LARS"
PRINTED, ALGORITHM_1 = "RAP, the paper's r and step", "RAP, Algorithm 1 as printed"
LOG_RMS, LOG_RMS_DEFAULT = "LogRMS, best r", "LogRMS, its default r"
MIXTURE, SELECTED = "Mixture", "Mixture, its single model"

MEMORIES = (0.9, 0.93, 0.95, 0.97, 0.98, 0.99)
#: The memories around the best one, for Gaussian and for binomial responses: for what is too slow to run with all.
BEST_MEMORIES = {"gaussian": (0.93, 0.95), "binomial": (0.97, 0.98)}
#: The one of them at which SMBO also weights the rows.
SMBO_MEMORY = {"gaussian": 0.93, "binomial": 0.97}
LOOKS = 4
#: The memory of LogRMS where none is given.
LOG_RMS_MEMORY = 0.99
#: Step sizes, for Gaussian and for binomial responses: they have units. The best ones are inside.
SGD_STEPS = {"gaussian": (0.001, 0.0025, 0.005, 0.01), "binomial": (0.00001, 0.00003, 0.0001, 0.0003)}
LARS_STEPS = {"gaussian": (0.005, 0.01, 0.025, 0.05), "binomial": (0.0001, 0.0003, 0.001, 0.003)}
#: The paper states r and the step size only for its fMRI study.
PAPER_MEMORY, PAPER_STEP = 0.95, 0.025


def online(stream: Stream, **settings: Any) -> Run:
    """A RAPRegressor of these settings over the stream."""
    trace = progressive(RAPRegressor(family=stream.family, **settings), stream.X, stream.y, coef=True)
    return Run(trace.loss, trace["lam"], trace["coef"])


def _truth(stream: Stream) -> Iterator[Named]:
    """The noise floor; and the support of a model with all features, which has no loss of its own."""
    nothing = np.zeros(len(stream.y))
    yield FLOOR, "", Run(stream.floor, nothing, stream.beta)
    yield ALL_FEATURES, "", Run(np.full(len(stream.y), np.nan), nothing, np.ones_like(stream.X))


# --- offline ----------------------------------------------------------------------------------------------------------


def _cross_validated(stream: Stream) -> Iterator[Named]:
    """Offline, with the change points known: the paper's baselines, as strong as we could make them."""
    X, y, family = stream.X, stream.y, stream.family
    lams = [cross_validated_lam(X[rows], y[rows], family) for rows in regimes(stream)]
    lam = cross_validated_lam(X, y, family)
    for r in MEMORIES:
        yield STEPWISE, f"r={r}", stepwise(stream, lams, r)
        yield FIXED, f"r={r}", fixed(stream, lam, r)
    for r in BEST_MEMORIES[stream.family.name]:
        weighted = [cross_validated_lam(X[rows], y[rows], family, r=r, looks=LOOKS) for rows in regimes(stream)]
        yield STEPWISE, f"r={r}, weighted", stepwise(stream, weighted, r)
        yield FIXED, f"r={r}, weighted", fixed(stream, cross_validated_lam(X, y, family, r=r, looks=LOOKS), r)


def _smbo(stream: Stream) -> Iterator[Named]:
    X, y, family = stream.X, stream.y, stream.family
    lam = smbo_lam(X, y, family)
    for r in BEST_MEMORIES[stream.family.name]:
        yield SMBO, f"r={r}", fixed(stream, lam, r)
    r = SMBO_MEMORY[stream.family.name]
    yield SMBO, f"r={r}, weighted", fixed(stream, smbo_lam(X, y, family, r=r, looks=LOOKS), r)


# --- online -----------------------------------------------------------------------------------------------------------


def _rap(stream: Stream) -> Iterator[Named]:
    """The paper's rule over a grid of memories and step sizes, with either derivative; and as the paper has it."""
    family = stream.family.name
    for step in SGD_STEPS[family]:
        for r in BEST_MEMORIES[family]:
            setting = f"r={r}, step={step:g}"
            yield RAP, setting, online(stream, tuner=SGD(step), memory=r)
            yield APPROXIMATE, setting, online(stream, tuner=SGD(step), memory=r, gradient="diagonal")
        run = online(stream, tuner=SGD(step), memory=PAPER_MEMORY, curvature="previous")
        yield ALGORITHM_1, f"r={PAPER_MEMORY}, step={step:g}", run
    printed = online(stream, tuner=SGD(PAPER_STEP), memory=PAPER_MEMORY)
    yield PRINTED, f"r={PAPER_MEMORY}, step={PAPER_STEP}", printed


def _lars(stream: Stream) -> Iterator[Named]:
    for r in BEST_MEMORIES[stream.family.name]:
        for step in LARS_STEPS[stream.family.name]:
            yield NORMALISED, f"r={r}, step={step:g}", online(stream, tuner=LARS(step), memory=r)


def _log_rms(stream: Stream) -> Iterator[Named]:
    for r in MEMORIES:
        run = online(stream, tuner=LogRMS(), memory=r)
        yield LOG_RMS, f"r={r}", run
        if r == LOG_RMS_MEMORY:
            yield LOG_RMS_DEFAULT, f"r={r}", run


def _mixture(stream: Stream) -> Iterator[Named]:
    """The averaged prediction; and the selected model, evaluated on the next row."""
    yield MIXTURE, "", online(stream, tuner=Mixture())
    model = RAPRegressor(family=stream.family, tuner=Mixture())
    coef, eta, lam = np.zeros_like(stream.X), np.zeros(len(stream.y)), np.zeros(len(stream.y))
    for t in range(len(stream.y)):
        selected = model.partial_fit(stream.X[t : t + 1], stream.y[t : t + 1]).selected_
        coef[t], lam[t] = selected.coef, model.lambda_
        eta[t + 1 : t + 2] = selected.intercept + stream.X[t + 1 : t + 2] @ selected.coef
    yield SELECTED, "", Run(stream.family.loss(stream.y, eta), lam, coef)


#: A group is run and saved by itself: a new group adds its own parts only.
GROUPS: dict[str, Callable[[Stream], Iterator[Named]]] = {
    "truth": _truth,
    "cross-validation": _cross_validated,
    "smbo": _smbo,
    "rap": _rap,
    "lars": _lars,
    "log-rms": _log_rms,
    "mixture": _mixture,
}
