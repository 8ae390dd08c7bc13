"""What the figures of the studies share."""

from __future__ import annotations

from matplotlib.figure import Figure

#: File name -> figure and caption.
Figures = dict[str, tuple[Figure, str]]
#: Family -> its name in titles.
REGRESSIONS = {"gaussian": "linear", "binomial": "logistic"}
