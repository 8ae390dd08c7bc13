"""The stationary study: its norms against scikit-learn, its lams against the estimator, its summary by hand."""

import numpy as np
import pyarrow
import pytest
from sklearn.linear_model import Lasso

from streamlasso import RAPRegressor, progressive
from streamlasso.reproduce.learners import RAP
from streamlasso.reproduce.offline import cross_validated_lam
from streamlasso.reproduce.stationary import Distances, as_markdown, draw, l1_norms, rules, summaries
from streamlasso.tuners import SGD


def test_a_draw_is_300_rows_of_which_a_fifth_of_the_features_matter():
    starts = []
    for i in range(50):
        stream, lam = draw(i, 0, 25, "binomial")
        assert stream.X.shape == (300, 25)
        assert np.count_nonzero(stream.beta[0]) == 5
        assert (stream.beta == stream.beta[0]).all()
        starts.append(lam)
    assert 0 <= min(starts) < 0.1
    assert 0.9 < max(starts) <= 1
    one, same = draw(7, 1, 10, "gaussian"), draw(7, 1, 10, "gaussian")
    np.testing.assert_array_equal(one[0].y, same[0].y)
    assert one[1] == same[1]


def test_norms_are_those_of_scikit_learn_in_the_order_asked():
    stream, _ = draw(0, 0, 10, "gaussian")
    sd = stream.X.std(axis=0)
    Z = (stream.X - stream.X.mean(axis=0)) / sd
    lams = [0.05, 0.4, 0.01, 0.05]
    expected = [np.abs(Lasso(lam, tol=1e-12, max_iter=100_000).fit(Z, stream.y).coef_ / sd).sum() for lam in lams]
    np.testing.assert_allclose(l1_norms(stream, lams), expected, rtol=1e-6)


def test_the_lines_of_a_draw_are_what_the_estimator_does():
    stream, lam_init = draw(1, 4, 10, "gaussian")
    lines = Distances(4, 1, 2, "gaussian", 10).run()["draws"].to_pylist()
    assert len(lines) == len(list(rules()))
    line = next(line for line in lines if (line["rule"], line["step"]) == (RAP, 0.001))
    model = RAPRegressor(tuner=SGD(0.001), memory=1.0, lambda_init=lam_init)
    assert line["lam"] == progressive(model, stream.X, stream.y).lam[-1]
    assert line["lam_cv"] == cross_validated_lam(stream.X, stream.y, stream.family)
    np.testing.assert_array_equal([line["norm_cv"], line["norm"]], l1_norms(stream, [line["lam_cv"], line["lam"]]))


def made_up(deltas, step):
    return [
        dict(family="gaussian", p=10, draw=i, rule=RAP, step=step, lam=0.2, lam_cv=0.1, norm=5.0 - delta, norm_cv=5.0)
        for i, delta in enumerate(deltas)
    ]


def test_summary_is_quartiles_means_and_the_best_step():
    deltas = np.random.default_rng(0).normal(0.5, 1, 41)
    rows = made_up(deltas, 0.1) + made_up(deltas + 9, 0.2)
    near, far = summaries(pyarrow.Table.from_pylist(rows))
    assert (near.best, far.best) == (True, False)
    assert [near.low, near.median, near.high] == pytest.approx(np.percentile(deltas, [25, 50, 75]))
    assert near.mean == pytest.approx(deltas.mean())
    assert near.mean_se == pytest.approx(deltas.std(ddof=1) / np.sqrt(41))
    assert near.size == pytest.approx(np.median(np.abs(deltas)))
    assert near.near == np.mean(np.abs(deltas) <= 1)
    assert near.lam_ratio == 2
    text = as_markdown([near, far], 41, 0)
    assert f"| 10 | RAP | 0.1 | 5.00 | {near.low:.2f} / {near.median:.2f} / {near.high:.2f}" in text
    assert "| 0.2 |" not in text
