"""Rows from files and pipes: one file a format. A new format is one more file and its line in `opening.py`."""

from streamlasso.sources.base import Complaints
from streamlasso.sources.opening import open_source

__all__ = ["Complaints", "open_source"]
