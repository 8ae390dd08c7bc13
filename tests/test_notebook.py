"""In a notebook, run by a kernel: what the last line of a cell shows."""

import nbformat
import pytest
from nbclient import NotebookClient

LEARN = """
import numpy as np, pandas as pd
from streamlasso import RAPRegressor, progressive
X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["sun", "wind", "rain"])
model = RAPRegressor()
trace = progressive(model, X, 2 * X["wind"])
"""
BEFORE = {
    "nothing else": "",
    "pyplot": "import matplotlib.pyplot as plt",
    "inline": "%matplotlib inline\nimport matplotlib.pyplot as plt",
    "svg": "%matplotlib inline\n%config InlineBackend.figure_formats = ['svg']\nimport matplotlib.pyplot as plt",
}


def outputs(*cells):
    """What each cell shows: one dict, by type, per thing shown."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    return [[output["data"] for output in cell.outputs] for cell in notebook.cells]


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_a_plot_is_shown_once(before):
    *_, shown, kept, after = outputs(before, LEARN, "trace.plot()", "figure = trace.plot()", "trace.plot();")
    assert len(shown) == 1
    assert {"image/png", "image/svg+xml"} & shown[0].keys()
    assert kept == after == []


def test_a_trace_and_a_selected_model_show_themselves():
    _, (trace,), (selected,), (coef,) = outputs(LEARN, "trace", "model.selected_", "model.selected_.coef")
    assert "<img" in trace["text/html"]
    assert "wind" in selected["text/html"]
    assert "wind: " in coef["text/plain"]
