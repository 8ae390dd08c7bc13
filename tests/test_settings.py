"""Every setting, from what a user wrote to what the engine takes: defaults, and refusals that say what is accepted."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from streamlasso import RAPClassifier, RAPRegressor, families, memories, penalties, tuners
from streamlasso.families import Binomial, Family, Gamma, Gaussian, Poisson
from streamlasso.memories import AdaptiveForgetting, Forgetting, Memory, Window
from streamlasso.network import StreamingNetwork
from streamlasso.penalties import L1, ElasticNet, Penalty, Ridge
from streamlasso.run.options import Options
from streamlasso.settings import as_family, as_memory, as_penalty, as_tuner, build_learner, memory_of
from streamlasso.tuners import LARS, SGD, Fixed, LogRMS, Mixture, Tuner

DEFAULTS = RAPRegressor().get_params()


def built(n_features=3, **settings):
    return build_learner(n_features, {**DEFAULTS, **settings}).settings


def test_defaults():
    settings = built()
    parts = {name: settings[name] for name in ("family", "memory", "penalty", "tuner")}
    assert parts == {"family": Gaussian(), "memory": None, "penalty": L1(), "tuner": Mixture()}
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
    assert as_memory(r, LogRMS()) == as_memory(r, Mixture()) == Forgetting(float(r))


@given(st.integers(2, 10**9) | st.just(np.float32(500)) | st.just(500.0))
def test_a_number_above_one_is_a_window(n):
    assert as_memory(n, LogRMS()) == as_memory(n, Mixture()) == Window(int(n))


def test_a_word_of_the_command_line_works_in_python():
    assert (as_tuner("mixture"), as_tuner("logrms")) == (Mixture(), LogRMS())
    assert (as_penalty("l1"), as_penalty("elasticnet"), as_penalty("ridge")) == (L1(), ElasticNet(), Ridge())
    for word in ("0.9", "1", "500"):
        assert as_memory(word, LogRMS()) == as_memory(float(word), LogRMS()) == memory_of(word)
    assert memory_of("auto") is memory_of(None) is None
    assert as_memory("all", LogRMS()) == as_memory("all", Mixture()) == Forgetting(1.0)


@pytest.mark.parametrize("memory", ["0.9", "500", "all", "auto"])
def test_the_command_reads_a_memory_as_python_does(memory):
    assert memory_of(Options("data.csv", "y", memory=memory).settings()["memory"]) == memory_of(memory)


def test_all_rows_are_a_fixed_table():
    """Nothing is forgotten, and nothing is carried from row to row; a factor of 1 only does the former."""
    assert (built(memory="all")["memory"], built(memory="all")["tuner"]) == (Forgetting(1.0), Mixture(carry=False))
    assert built(memory="all", tuner=Mixture(runs=5))["tuner"] == Mixture(runs=5, carry=False)
    assert built(memory="all", tuner="logrms")["tuner"] == LogRMS()
    assert built(memory=1.0)["tuner"] == Mixture()


@pytest.mark.parametrize("memory", ["1.2", "0", "-1", "2.5", "soon", "nan", ""])
def test_the_command_refuses_a_memory_in_the_words_of_python(memory):
    with pytest.raises(ValueError) as in_python:
        memory_of(memory)
    with pytest.raises(ValueError) as on_the_command_line:
        Options("data.csv", "y", memory=memory)
    said, _, advice = str(on_the_command_line.value).partition(" is ")
    assert said == f"--memory {memory}"
    assert str(in_python.value).partition(" is ")[2] == advice


@dataclass(frozen=True)
class Odd(Memory):
    decay: float = 1.0
    length: int = 0


@dataclass(frozen=True)
class OddPenalty(Penalty):
    l1_ratio: float


@pytest.mark.parametrize("memory", [Odd(decay=0.0), Odd(decay=1.1), Odd(length=-1)], ids=str)
def test_a_memory_of_your_own_is_checked(memory):
    with pytest.raises(ValueError, match=r"decay must lie in \(0, 1\]"):
        built(memory=memory, tuner=LogRMS())


@pytest.mark.parametrize("l1_ratio", [-0.1, 1.5, np.nan])
def test_a_penalty_of_your_own_is_checked(l1_ratio):
    with pytest.raises(ValueError, match=r"it must lie in \[0, 1\]"):
        built(penalty=OddPenalty(l1_ratio))


@pytest.mark.parametrize(
    ("convert", "parts"),
    [
        (as_family, families.EXAMPLES),
        (partial(as_memory, tuner=LogRMS()), [*memories.EXAMPLES, AdaptiveForgetting()]),
        (partial(as_memory, tuner=Mixture()), [*memories.EXAMPLES, AdaptiveForgetting()]),
        (as_penalty, penalties.EXAMPLES),
        (as_tuner, [*tuners.EXAMPLES, Mixture()]),
    ],
)
def test_parts_are_taken_as_they_are(convert, parts):
    assert all(convert(part) is part for part in parts)


def test_none_is_the_default_part():
    assert (as_penalty(None), as_tuner(None)) == (L1(), Mixture())


def test_no_memory_is_left_to_a_mixture_and_is_a_factor_for_the_others():
    assert as_memory(None, Mixture()) is None
    assert all(as_memory(None, tuner) == Forgetting(0.99) for tuner in tuners.EXAMPLES)


MEMORIES = ["a forgetting factor in (0, 1]", "a number of rows above 1", "'all' or 'auto', a Memory object or None"]
REFUSED = [
    ("family", "normal", ["family='normal'", "'gaussian'", "'binomial'", "'poisson'", "'gamma'", "a Family object"]),
    ("family", Gaussian, ["family=", "a Family object"]),
    ("family", None, ["family=None"]),
    ("memory", 1.2, ["memory=1.2", "not a forgetting factor", "(0, 1]", "1 never forgets", "rows above 1"]),
    ("memory", 0, ["memory=0", "(0, 1]"]),
    ("memory", -0.5, ["memory=-0.5", "(0, 1]"]),
    ("memory", np.nan, ["memory=nan", "(0, 1]"]),
    ("memory", np.inf, ["memory=inf", "(0, 1]"]),
    ("memory", True, ["memory=True", *MEMORIES]),
    ("memory", np.float64(1.2), ["memory=1.2 is not a forgetting factor: use a number in (0, 1]"]),
    ("memory", "1.2", ["memory=1.2 is not a forgetting factor: use a number in (0, 1]"]),
    ("memory", "none", ["memory='none'", *MEMORIES]),
    ("memory", [0.9], ["memory=[0.9]", *MEMORIES]),
    ("penalty", "l2", ["penalty='l2'", "'l1', 'elasticnet', 'ridge'", "a Penalty object"]),
    ("penalty", L1, ["penalty=", "a Penalty object"]),
    ("penalty", 0.5, ["penalty=0.5", "a Penalty object"]),
    ("tuner", "sgd", ["tuner='sgd'", "a number to choose", "SGD(...)"]),
    ("tuner", "adam", ["tuner='adam'", "'mixture', 'logrms', 'lars', 'sgd', 'fixed'", "a Tuner object"]),
    ("tuner", 0.1, ["tuner=0.1", "a Tuner object"]),
    ("tuner", LogRMS, ["tuner=", "a Tuner object"]),
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
    ("penalty_factor", [[1, 1, 1]], ["penalty_factor=[[1, 1, 1]]", "one number per feature"]),
    ("penalty_factor", [1, -1, 1], ["penalty_factor=[1, -1, 1]", "0 (never penalised) or larger"]),
    ("penalty_factor", [1, np.nan, 1], ["penalty_factor=[1, nan, 1]", "0 (never penalised) or larger"]),
    ("penalty_factor", [1, np.inf, 1], ["penalty_factor=[1, inf, 1]", "0 (never penalised) or larger"]),
    ("penalty_factor", [0, 0, 0], ["penalty_factor=[0, 0, 0]", "not all 0"]),
    ("penalty_factor", ["a", "b", "c"], ["penalty_factor=['a', 'b', 'c']", "use numbers"]),
    ("fit_intercept", 1, ["fit_intercept=1", "True or False"]),
    ("fit_intercept", None, ["fit_intercept=None", "True or False"]),
    ("standardize", "yes", ["standardize='yes'", "True or False"]),
    ("history", 0, ["history=0", "a whole number of rows from 1 to"]),
    ("history", 2.5, ["history=2.5", "a whole number of rows from 1 to"]),
    ("history", True, ["history=True", "a whole number of rows from 1 to"]),
    ("batch_size", -3, ["batch_size=-3", "a whole number of rows from 1 to"]),
    ("batch_size", "8", ["batch_size='8'", "a whole number of rows from 1 to"]),
]


@pytest.mark.parametrize(
    ("name", "value", "words"), REFUSED, ids=lambda value: value[0] if isinstance(value, list) else ""
)
def test_a_bad_setting_is_named_with_its_value_and_what_is_accepted(name, value, words):
    with pytest.raises(ValueError) as error:
        built(**{"tuner": LogRMS(), name: value})
    assert all(word in str(error.value) for word in words), str(error.value)


PARTS = [
    (lambda: Forgetting(0.0), ["Forgetting(r=0.0)", "(0, 1]"]),
    (lambda: Forgetting(1.0001), ["Forgetting(r=1.0001)", "(0, 1]"]),
    (lambda: AdaptiveForgetting(()), ["AdaptiveForgetting(factors=())", "one factor or more", "(0, 1]"]),
    (lambda: AdaptiveForgetting((0.9, 1.5)), ["AdaptiveForgetting(factors=(0.9, 1.5))", "(0, 1]"]),
    (lambda: AdaptiveForgetting((0.0,)), ["AdaptiveForgetting(factors=(0.0,))", "(0, 1]"]),
    (lambda: AdaptiveForgetting((np.nan,)), ["AdaptiveForgetting(factors=(nan,))", "(0, 1]"]),
    (lambda: AdaptiveForgetting((True,)), ["AdaptiveForgetting(factors=(True,))", "(0, 1]"]),
    (lambda: AdaptiveForgetting(0.9), ["AdaptiveForgetting(factors=0.9)", "one factor or more"]),
    (lambda: AdaptiveForgetting(["0.9"]), ["AdaptiveForgetting(factors=['0.9'])", "one factor or more"]),
    (lambda: Mixture(powers=()), ["Mixture(powers=())", "one number or more", "[0, 2]"]),
    (lambda: Mixture(powers=0.1), ["Mixture(powers=0.1)", "one number or more"]),
    (lambda: Mixture(powers=(0.0, -0.1)), ["Mixture(powers=(0.0, -0.1))", "[0, 2]"]),
    (lambda: Mixture(powers=(2.1,)), ["Mixture(powers=(2.1,))", "[0, 2]"]),
    (lambda: Mixture(powers=(np.nan,)), ["Mixture(powers=(nan,))", "[0, 2]"]),
    (lambda: Mixture(powers="1"), ["Mixture(powers='1')", "[0, 2]"]),
    (lambda: Mixture(powers=(0.5, 0.2)), ["Mixture(powers=(0.5, 0.2))", "must be increasing"]),
    (lambda: Mixture(powers=(0.5, 0.5)), ["Mixture(powers=(0.5, 0.5))", "must be increasing"]),
    (lambda: Mixture(factors=(0.9, -1.0)), ["Mixture(factors=(0.9, -1.0))", "forgetting factors", "(0, 1]"]),
    (lambda: Mixture(factors=0.9), ["Mixture(factors=0.9)", "forgetting factors"]),
    (lambda: Mixture(runs=-1), ["Mixture(runs=-1)", "0, or a whole number from 4 to 1000"]),
    (lambda: Mixture(runs=2.0), ["Mixture(runs=2.0)", "a whole number"]),
    (lambda: Mixture(runs=3), ["Mixture(runs=3)", "from 4 to 1000"]),
    (lambda: Mixture(runs=1001), ["Mixture(runs=1001)", "4 to 1000"]),
    (lambda: Mixture(views=["a"]), ["views=['a']", "a dict of names to lists of columns"]),
    (lambda: Mixture(views={"a": [-1]}), ["counted from 0"]),
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
        tuner=LogRMS(),
        history=np.int32(5),
        batch_size=np.int64(2),
        lambda_init=np.float32(0.5),
        fit_intercept=np.bool_(False),
    )
    assert (settings["history"], settings["batch_size"], settings["lambda_init"], settings["fit_intercept"]) == (
        5,
        2,
        0.5,
        False,
    )


@pytest.mark.parametrize("tuner", [None, Mixture(runs=0)], ids=str)
def test_a_mixture_has_no_lambda_to_start_from(tuner):
    with pytest.raises(ValueError, match=r"lambda_init=0.5: Mixture\(.*\) brings its own, so leave it at None"):
        built(tuner=tuner, lambda_init=0.5)


def test_lists_are_tuples():
    assert Mixture(powers=[0, 0.5], factors=[0.9]) == Mixture(powers=(0, 0.5), factors=(0.9,))
    assert AdaptiveForgetting([0.9, 1]) == AdaptiveForgetting((0.9, 1))


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
    "part",
    [
        *families.EXAMPLES,
        *memories.EXAMPLES,
        *penalties.EXAMPLES,
        *tuners.EXAMPLES,
        AdaptiveForgetting((0.9, 1.0)),
        Mixture(factors=(0.9,)),
    ],
    ids=str,
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


# --- parameters of parts ----------------------------------------------------------------------------------------------

EVERY_PART = [
    *families.EXAMPLES,
    *memories.EXAMPLES,
    *penalties.EXAMPLES,
    *tuners.EXAMPLES,
    AdaptiveForgetting(),
    Mixture(),
]


@pytest.mark.parametrize("part", EVERY_PART, ids=str)
def test_a_part_can_be_read_and_rebuilt_by_its_parameters(part):
    assert type(part)(**part.get_params()) == part == part.set_params(**part.get_params())
    assert clone(part) == part
    with pytest.raises(ValueError, match=rf"colour='red' is no parameter of {type(part).__name__}"):
        part.set_params(colour="red")


def test_a_changed_part_is_another_part_and_is_checked():
    part = Fixed(0.1)
    assert (part.set_params(lam=0.2), part) == (Fixed(0.2), Fixed(0.1))
    with pytest.raises(ValueError, match=r"Fixed\(lam=-1\)"):
        part.set_params(lam=-1)


def test_the_parameters_of_parts_are_those_of_the_estimator():
    model = RAPRegressor(tuner=Fixed(0.1), memory=Forgetting(0.9), penalty=ElasticNet(0.5))
    nested = {name: value for name, value in model.get_params().items() if "__" in name}
    assert nested == {"tuner__lam": 0.1, "memory__r": 0.9, "penalty__l1_ratio": 0.5}
    model.set_params(tuner__lam=0.2, memory__r=0.8, penalty=L1(), batch_size=2)
    assert (model.tuner, model.memory, model.penalty, model.batch_size) == (Fixed(0.2), Forgetting(0.8), L1(), 2)


@pytest.mark.parametrize(
    ("settings", "changes", "expected"),
    [
        ({"memory": 0.99}, {"memory__r": 0.9}, {"memory": Forgetting(0.9)}),
        ({"memory": 500}, {"memory__n": 60}, {"memory": Window(60)}),
        ({"tuner": "logrms"}, {"tuner__step_size": 0.2}, {"tuner": LogRMS(0.2)}),
        ({}, {"tuner__runs": 5}, {"tuner": Mixture(runs=5)}),
        ({}, {"tuner": Fixed(1.0), "tuner__lam": 3.0}, {"tuner": Fixed(3.0)}),
    ],
    ids=str,
)
def test_a_word_has_the_parameters_of_its_part(settings, changes, expected):
    for model in (RAPRegressor(**settings), RAPClassifier(**settings), StreamingNetwork(**settings)):
        if isinstance(model, StreamingNetwork) and "tuner__runs" in changes:
            continue
        changed = model.set_params(**changes)
        assert {name: getattr(changed, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"batch_size": 7, "tuner__lam": 1}, "lam=1 is no parameter of Mixture: use powers"),
        ({"batch_size": 7, "memory__r": 0.5}, "memory=None has no parameters"),
        ({"batch_size": 7, "tuner__runs": -1}, "Mixture(runs=-1)"),
        ({"batch_size": 7, "family__x": 1}, "x=1 is no parameter of Gaussian: it has none"),
        ({"colour__x": 1}, "Invalid parameter 'colour'"),
    ],
)
def test_a_refused_change_changes_nothing(changes, words):
    model = RAPRegressor()
    with pytest.raises(ValueError) as error:
        model.set_params(**changes)
    assert words in str(error.value)
    assert model.get_params() == DEFAULTS


class OwnStep(Tuner):
    """A tuner as a user would write it."""

    def __init__(self, share=0.01):
        self.share = share

    def update(self, lam, slope, norm, lam_max, state):
        return lam - self.share * lam_max * np.sign(slope)


def test_parts_of_your_own_have_parameters_too():
    model = RAPRegressor(tuner=OwnStep(0.1), penalty=OddPenalty(0.5), memory=Odd(decay=0.9))
    assert clone(model).set_params(tuner__share=0.2, penalty__l1_ratio=0.7, memory__length=9).get_params() == {
        **model.get_params(),
        "tuner": OwnStep(0.2),
        "penalty": OddPenalty(0.7),
        "memory": Odd(decay=0.9, length=9),
        "tuner__share": 0.2,
        "penalty__l1_ratio": 0.7,
        "memory__length": 9,
    }
    assert model.tuner.share == 0.1


def test_a_fitted_model_is_not_changed_through_its_parts():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = RAPRegressor(tuner=Fixed(0.1)).fit(X, X[:, 0]).set_params(tuner__lam=5.0)
    assert (model.lambda_, model.partial_fit(X, X[:, 0]).lambda_) == (0.1, 0.1)
    assert model.fit(X, X[:, 0]).lambda_ == 5.0


def test_a_grid_over_the_parameters_of_parts_is_one_over_parts():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = X[:, 0] + rng.normal(size=120)
    lams, factors = [0.0, 0.05, 3.0], [0.5, 1.0]
    model = make_pipeline(StandardScaler(), RAPRegressor(tuner=Fixed(1.0), memory=Forgetting(0.9)))
    nested = {"rapregressor__memory__r": factors, "rapregressor__tuner__lam": lams}
    whole = {
        "rapregressor__memory": [Forgetting(r) for r in factors],
        "rapregressor__tuner": [Fixed(lam) for lam in lams],
    }
    scores = [GridSearchCV(model, grid, cv=3).fit(X, y).cv_results_["mean_test_score"] for grid in (nested, whole)]
    np.testing.assert_array_equal(*scores)
    assert len(set(scores[0])) == 6
