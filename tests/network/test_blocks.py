"""What the report concludes about blocks: an effect is found, a drift is not taken for one."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from streamlasso.network.blocks import Difference, blocks_of, conclusion, differences
from streamlasso.network.files import lam_table
from streamlasso.network.group import Group
from streamlasso.network.imaging.events import Event
from streamlasso.network.options import Design
from streamlasso.network.results import Edges, SubjectResult
from streamlasso.report.network.figures import draw_lam, warm_up

N, LENGTH = 400, 20


def made_group(effect, drift, subjects=8, seed=0, names=("rest", "task")):
    """lam by formula: a drift over the scan, an effect in every second block, noise."""
    rng = np.random.default_rng(seed)
    events = tuple(
        Event(float(start), float(LENGTH), names[k % len(names)]) for k, start in enumerate(range(0, N, LENGTH))
    )
    during = np.array([(t // LENGTH) % len(names) == 1 for t in range(N)])
    found = []
    for k in range(subjects):
        lam = 1 + drift * np.arange(N) / N + effect * during + 0.05 * rng.normal(size=N)
        networks = np.zeros((N, 3, 3))
        networks[:, 0, 1] = networks[:, 1, 0] = 0.2 + 0.3 * during
        lams = np.repeat(lam[:, None], 3, axis=1)
        found.append(
            SubjectResult(
                f"sub-{k}", ("a", "b", "c"), np.arange(N), np.arange(float(N)), lams, lams + 1, lams, lams,
                Edges.of(networks), None, events,
            )
        )  # fmt: skip
    return Group(tuple(found), Design(tr=1.0, delay=0.0))


@pytest.mark.parametrize("subjects", [1, 8])
def test_an_effect_is_found_with_its_sign_and_size(subjects):
    first, *others = conclusion(made_group(effect=-0.2, drift=3.0, subjects=subjects))
    assert first.startswith("lam is larger during rest than during task")
    value = float(first.split("by ")[1].split(" ±")[0])
    assert value == pytest.approx(0.2, abs=0.02)
    assert others[0].startswith("The edge that differs most is a – b: +0.20 during rest, +0.50 during task")


def test_a_drift_is_not_taken_for_an_effect():
    group = made_group(effect=0.0, drift=3.0)
    lam = group.subjects[0].lam[:, 0]
    conditions = group.conditions(group.subjects[0])
    assert lam[conditions == "task"].mean() - lam[conditions == "rest"].mean() > 0.1, "the later blocks have more"
    clear = [
        conclusion(made_group(effect=0.0, drift=3.0, seed=seed))[0].startswith("lam is larger") for seed in range(20)
    ]
    assert sum(clear) <= 4


def test_differences_are_clear_as_in_a_t_test():
    rng = np.random.default_rng(0)
    for n in (2, 3, 5, 20):
        for _ in range(50):
            each = rng.normal(0.5, 1.0, size=n)
            assert Difference.of(each).clear == (ttest_1samp(each, 0).pvalue < 0.05)


def test_blocks_are_compared_with_their_neighbours_of_the_other_condition():
    group = made_group(effect=0.3, drift=1.0, subjects=1)
    blocks = blocks_of(group, group.subjects[0])
    lam = group.subjects[0].lam[:, 0]
    first = -(-warm_up(N) // LENGTH)
    means = {k: lam[k * LENGTH : (k + 1) * LENGTH].mean() for k in range(N // LENGTH)}
    expected = [
        (1 if k % 2 else -1) * (means[k] - (means[k - 1] + means[k + 1]) / 2) for k in range(first + 1, N // LENGTH - 1)
    ]
    np.testing.assert_allclose(differences(blocks, "task", "rest", "lam")[-len(expected) :], expected)


def test_of_several_conditions_two_are_named_and_of_one_nothing_is_concluded():
    assert conclusion(made_group(effect=0.5, drift=0.0, names=("only",))) == []
    several = conclusion(made_group(effect=0.5, drift=0.0, names=("rest", "task", "rest", "cue")))
    assert several[0].startswith("Of 3 conditions, those whose lam differs most: lam is larger during task")


def test_lam_stays_within_its_axis_and_the_first_time_points_are_named():
    group = made_group(effect=0.1, drift=0.0, subjects=2)
    for subject in group.subjects:
        subject.lam[:6] = 40.0
    axes = draw_lam(lam_table(group), group.events, 2).axes[0]
    low, high = axes.get_ylim()
    line = axes.get_lines()[0]
    assert line.get_xdata()[0] == 6.0
    assert low <= line.get_ydata().min() <= line.get_ydata().max() <= high < 5
    assert "settling, up to 40" in axes.texts[0].get_text()
