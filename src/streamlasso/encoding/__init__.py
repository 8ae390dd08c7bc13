"""From a table's columns (numbers, text and dates, some missing) to the features and the target of a stream."""

from streamlasso.encoding.encoder import Encoder
from streamlasso.encoding.first_rows import detect_encoder, encoder_for
from streamlasso.encoding.target import Target

__all__ = ["Encoder", "Target", "detect_encoder", "encoder_for"]
