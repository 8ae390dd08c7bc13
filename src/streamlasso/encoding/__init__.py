"""From a table's columns, numbers, text and dates with holes in them, to the features and the target of a stream."""

from streamlasso.encoding.encoder import Encoder
from streamlasso.encoding.target import Target

__all__ = ["Encoder", "Target"]
