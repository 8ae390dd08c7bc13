"""A figure that a notebook shows."""

from __future__ import annotations

from matplotlib.figure import Figure

from streamlasso.report.page import drawn


class ShownFigure(Figure):
    """As the last line of a cell it is the picture. pyplot does not know it, and so does not show it again.

    >>> ShownFigure(figsize=(4, 3))._repr_png_()[1]
    {'width': 400, 'height': 300}
    """

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = (round(100 * inches) for inches in self.get_size_inches())
        return drawn(self, "png"), {"width": width, "height": height}
