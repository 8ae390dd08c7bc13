"""Rows from files and pipes: one file per format. A new format is one more file and its line in `opening.SOURCES`."""

from streamlasso.data.sources.base import BadRows
from streamlasso.data.sources.opening import open_source

__all__ = ["BadRows", "open_source"]
