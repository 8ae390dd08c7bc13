"""The report of a run: results and history as sections of a page, and the figures that stand in it."""
