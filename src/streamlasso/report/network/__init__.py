"""Networks as figures, and the script of the page on which one can move through their time."""
