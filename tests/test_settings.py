"""Every setting, from what a user wrote to what the engine takes: defaults, and refusals that say what is accepted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlasso import RAPClassifier, RAPRegressor, families, memories, penalties, tuners
from streamlasso.families import Binomial, Family, Gamma, Gaussian, Poisson
from streamlasso.memories import Forgetting, Window
from streamlasso.penalties import L1, ElasticNet
from streamlasso.settings import as_family, as_memory, as_penalty, as_tuner, build_learner
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS, Tuner

DEFAULTS = RAPRegressor().get_params()


def built(n_features=3, **settings):
    return build_learner(n_features, {**DEFAULTS, **settings}).settings


def test_defaults():
    settings = built()
    parts = {name: settings[name] for name in ("family", "memory", "penalty", "tuner")}
    assert parts == {"family": Gaussian(), "memory": Forgetting(0.99), "penalty": L1(), "tuner": LogRMS(0.05)}
    assert settings["penalty_factor"].tolist() == [1.0, 1.0, 1.0]
    assert (settings["gradient"], settings["curvature"]) == ("exact", "updated")
    assert (settings["fit_intercept"], settings["standardize"]) == (True, True)
    assert (settings["history"], settings["batch_size"], settings["lambda_init"]) == (64, 1, None)


def test_both_estimators_have_the_same_defaults():
    assert RAPClassifier().get_params() == {name: value for name, value in DEFAULTS.items() if name != "family"}


@pytest.mark.parametrize(
    ("name", "family"), [("gaussian", Gaussian), ("binomial", Binomial), ("poisson", Poisson), ("gamma", Gamma)]
)
def test_a_family_by_name(name, family):
    assert as_family(name) == family()


@given(st.floats(0, 1, exclude_min=True) | st.just(1) | st.just(np.float32(0.5)) | st.just(np.int64(1)))
def test_a_number_is_a_forgetting_factor(r):
    assert as_memory(r) == Forgetting(float(r))


@pytest.mark.parametrize(
    ("convert", "examples"), [(as_family, families), (as_memory, memories), (as_penalty, penalties), (as_tuner, tuners)]
)
def test_parts_are_taken_as_they_are(convert, examples):
    assert all(convert(part) is part for part in examples.EXAMPLES)


def test_none_is_the_default_part():
    assert (as_penalty(None), as_tuner(None)) == (L1(), LogRMS())


REFUSED = [
    ("family", "normal", ["family='normal'", "'gaussian'", "'binomial'", "'poisson'", "'gamma'", "a Family object"]),
    ("family", Gaussian, ["family=", "a Family object"]),
    ("family", None, ["family=None"]),
    ("memory", 1.2, ["memory=1.2", "a forgetting factor lies in (0, 1]", "1 never forgets"]),
    ("memory", 0, ["memory=0", "(0, 1]"]),
    ("memory", -0.5, ["memory=-0.5", "(0, 1]"]),
    ("memory", np.nan, ["memory=nan", "(0, 1]"]),
    ("memory", np.inf, ["memory=inf", "(0, 1]"]),
    ("memory", True, ["memory=True", "Forgetting(r) or Window(n)"]),
    ("memory", "0.9", ["memory='0.9'", "Forgetting(r) or Window(n)"]),
    ("memory", None, ["memory=None", "Forgetting(r) or Window(n)"]),
    ("memory", [0.9], ["memory=[0.9]", "Forgetting(r) or Window(n)"]),
    ("penalty", "l1", ["penalty='l1'", "L1()", "ElasticNet(l1_ratio)", "Ridge()"]),
    ("penalty", L1, ["penalty=", "L1()"]),
    ("penalty", 0.5, ["penalty=0.5", "L1()"]),
    ("tuner", "sgd", ["tuner='sgd'", "LogRMS()", "Fixed(lam)"]),
    ("tuner", 0.1, ["tuner=0.1", "Fixed(lam)"]),
    ("tuner", LogRMS, ["tuner=", "LogRMS()"]),
    ("gradient", "approximate", ["gradient='approximate'", "'exact'", "'diagonal'"]),
    ("gradient", None, ["gradient=None", "'exact'", "'diagonal'"]),
    ("curvature", "new", ["curvature='new'", "'updated'", "'previous'"]),
    ("lambda_init", -0.1, ["lambda_init=-0.1", "0 or larger", "None"]),
    ("lambda_init", np.inf, ["lambda_init=inf", "0 or larger"]),
    ("lambda_init", np.nan, ["lambda_init=nan", "0 or larger"]),
    ("lambda_init", "1", ["lambda_init='1'", "0 or larger"]),
    ("lambda_init", True, ["lambda_init=True", "0 or larger"]),
    ("penalty_factor", [1, 1], ["penalty_factor=[1, 1]", "3 here", "not 2"]),
    ("penalty_factor", 1.0, ["penalty_factor=1.0", "3 here"]),
    ("penalty_factor", [[1, 1, 1]], ["penalty_factor=[[1, 1, 1]]", "one number a feature"]),
    ("penalty_factor", [1, -1, 1], ["penalty_factor=[1, -1, 1]", "0 (never penalised) or larger"]),
    ("penalty_factor", [1, np.nan, 1], ["penalty_factor=[1, nan, 1]", "0 (never penalised) or larger"]),
    ("penalty_factor", [1, np.inf, 1], ["penalty_factor=[1, inf, 1]", "0 (never penalised) or larger"]),
    ("penalty_factor", [0, 0, 0], ["penalty_factor=[0, 0, 0]", "not all 0"]),
    ("penalty_factor", ["a", "b", "c"], ["penalty_factor=['a', 'b', 'c']", "numbers are needed"]),
    ("fit_intercept", 1, ["fit_intercept=1", "True or False"]),
    ("fit_intercept", None, ["fit_intercept=None", "True or False"]),
    ("standardize", "yes", ["standardize='yes'", "True or False"]),
    ("history", 0, ["history=0", "a whole number of rows, from 1 to"]),
    ("history", 2.5, ["history=2.5", "a whole number of rows, from 1 to"]),
    ("history", True, ["history=True", "a whole number of rows, from 1 to"]),
    ("batch_size", -3, ["batch_size=-3", "a whole number of rows, from 1 to"]),
    ("batch_size", "8", ["batch_size='8'", "a whole number of rows, from 1 to"]),
]


@pytest.mark.parametrize(
    ("name", "value", "words"), REFUSED, ids=lambda value: value[0] if isinstance(value, list) else ""
)
def test_a_bad_setting_is_named_with_its_value_and_what_is_accepted(name, value, words):
    with pytest.raises(ValueError) as error:
        built(**{name: value})
    assert all(word in str(error.value) for word in words), str(error.value)


PARTS = [
    (lambda: Forgetting(0.0), ["memory=0.0", "(0, 1]"]),
    (lambda: Forgetting(1.0001), ["memory=1.0001", "1 never forgets"]),
    (lambda: Window(0), ["Window(n=0)", "from 1 to"]),
    (lambda: Window(2.5), ["Window(n=2.5)", "whole number"]),
    (lambda: Window(True), ["Window(n=True)", "whole number"]),
    (lambda: ElasticNet(0), ["ElasticNet(l1_ratio=0)", "(0, 1]", "Ridge()"]),
    (lambda: ElasticNet(1.5), ["ElasticNet(l1_ratio=1.5)", "(0, 1]"]),
    (lambda: Fixed(-1), ["Fixed(lam=-1", "0 or larger"]),
    (lambda: Fixed(np.inf), ["Fixed(lam=inf", "0 or larger"]),
    (lambda: SGD(0), ["SGD(step_size=0", "positive"]),
    (lambda: LARS(-1), ["LARS(step_size=-1", "positive"]),
    (lambda: LogRMS(np.nan), ["LogRMS(step_size=nan", "positive"]),
]


@pytest.mark.parametrize(("make", "words"), PARTS, ids=lambda value: value[0] if isinstance(value, list) else "")
def test_a_part_refuses_bad_values_of_its_own(make, words):
    with pytest.raises(ValueError) as error:
        make()
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    "factor", [[0, 1, 2], (0.5, 1, 1), np.array([1, 2, 3]), np.array([1, 0, 3], dtype=np.float32)], ids=str
)
def test_penalty_factors_of_all_kinds(factor):
    assert built(penalty_factor=factor)["penalty_factor"].tolist() == [float(value) for value in factor]


def test_numpy_scalars_are_numbers():
    settings = built(
        history=np.int32(5), batch_size=np.int64(2), lambda_init=np.float32(0.5), fit_intercept=np.bool_(False)
    )
    assert (settings["history"], settings["batch_size"], settings["lambda_init"], settings["fit_intercept"]) == (
        5,
        2,
        0.5,
        False,
    )


class Unfinished(Family):
    def loss(self, y, eta):
        return 0.0


def test_a_family_that_is_half_written_is_refused():
    with pytest.raises(
        TypeError, match="Unfinished: a family gives loss, slope, curvature, mean; missing: slope, curvature, mean"
    ):
        built(family=Unfinished())


class Silent(Tuner):
    pass


def test_a_tuner_without_a_rule_is_refused():
    with pytest.raises(TypeError, match="Silent: a tuner gives update"):
        RAPRegressor(tuner=Silent()).fit(np.random.default_rng(0).normal(size=(30, 2)), np.arange(30.0))


@pytest.mark.parametrize(
    "part", [*families.EXAMPLES, *memories.EXAMPLES, *penalties.EXAMPLES, *tuners.EXAMPLES], ids=str
)
def test_parts_are_frozen_values(part):
    """Equal to their likes, hashable, and not to be changed."""
    arguments = part.settings() if hasattr(part, "settings") else vars(part)
    twin = type(part)(**arguments)
    assert twin == part
    assert hash(twin) == hash(part)
    for name in arguments:
        with pytest.raises(AttributeError):
            setattr(part, name, 0.5)
