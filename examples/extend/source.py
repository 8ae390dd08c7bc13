"""A source of your own: a file format for `streamlasso run`. Copy this file and change the class.

This one reads NumPy's .npy files: a matrix of numbers, or a structured array with names.
"""

import numpy as np
import pyarrow

from streamlasso.data.sources.base import BLOCK_ROWS, FIRST_ROWS, Block, row_places


class Npy:
    """Rows in order, in blocks that fit into memory."""

    #: What messages call the format.
    format = "NumPy"
    #: A file with this ending has to be of this format.
    extensions = (".npy",)
    #: How many rows are looked at to recognise what the columns hold.
    n_first = FIRST_ROWS

    @staticmethod
    def recognises(start):
        """Whether a file that starts with these bytes is of this format."""
        return start.startswith(b"\x93NUMPY")

    def __init__(self, stream, bad_rows, *, live):
        """Read what is needed to know the columns. A text format reports lines that it cannot read
        with `bad_rows.add(where, reason)`; `live` says that rows may come slowly."""
        table = np.load(stream)
        if table.dtype.names:
            self.columns = list(table.dtype.names)
            self._values = [table[name] for name in self.columns]
        elif table.ndim == 2:
            self.columns = [f"x{j}" for j in range(table.shape[1])]
            self._values = list(table.T)
        else:
            raise ValueError(f"an array of shape {table.shape} is not a table: use two dimensions")
        self._n_rows = len(table)

    def blocks(self):
        """All rows. A block is a batch of rows, how messages name each, and their numbers."""
        for start in range(0, self._n_rows, BLOCK_ROWS):
            stop = min(start + BLOCK_ROWS, self._n_rows)
            arrays = [pyarrow.array(values[start:stop]) for values in self._values]
            rows = pyarrow.RecordBatch.from_arrays(arrays, names=self.columns)
            yield Block(rows, row_places(start), np.arange(start, stop))
