"""Dates and times: how they are written, over how many columns they are spread, and how far apart rows are."""
