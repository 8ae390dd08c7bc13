"""The colours of all figures and pages: one dark and one light, which also differ in grey; red for negative edges."""

DARK, LIGHT, RED, GREY = "#0b3c6f", "#e69f00", "#c23b28", "#8a8a8a"
#: Small print, bands behind curves, lines behind the curves, predicted intervals.
NOTE_INK, BAND, LINE, INTERVAL = "#555555", "#dcdcdc", "#e4e4e4", "#b7d0ea"
#: The blocks of a task, in order of appearance; the last one is shared if there are more.
BLOCKS = ("#d5ead5", "#b9b3de", "#f7e3b5", "#c9dcea", "#eec9c2", "#dddddd")
