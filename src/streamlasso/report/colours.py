"""The colours of all figures: one dark and one light, so that they also differ in grey."""

DARK, LIGHT, GREY = "#0b3c6f", "#e69f00", "#8a8a8a"
#: Of frames and letters, of small print, of a band, and of lines behind the curves.
INK, NOTE_INK, BAND, LINE = "#000000", "#555555", "#dcdcdc", "#e4e4e4"
#: Of predicted intervals.
INTERVAL = "#b7d0ea"
#: Of the blocks of a task.
BLOCKS = ("#d5ead5", "#b9b3de", "#f7e3b5", "#c9dcea", "#eec9c2", "#dddddd")
#: What takes their place on a dark screen.
ON_DARK = {
    DARK: "#7db4ec",
    LIGHT: "#f0b23c",
    GREY: "#a0a0a0",
    INK: "#e8e8e8",
    NOTE_INK: "#b0b0b0",
    BAND: "#3c4045",
    LINE: "#383c40",
    INTERVAL: "#24466b",
    **dict(zip(BLOCKS, ("#2c4a2e", "#3b3568", "#5a4a1c", "#2b4558", "#5c332b", "#3c4045"), strict=True)),
}
