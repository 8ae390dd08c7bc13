"""The colours of all figures: one dark and one light, so that they also differ in grey."""

DARK, LIGHT, GREY = "#0b3c6f", "#e69f00", "#8a8a8a"
