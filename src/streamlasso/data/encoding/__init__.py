"""From a table's columns (numbers, text and dates, some missing) to the features and the target of a stream.

`StreamEncoder`, which needs scikit-learn, is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from streamlasso.data.encoding.encoder import Encoder
from streamlasso.data.encoding.first_rows import detect_encoder, encoder_for
from streamlasso.data.encoding.target import Target

if TYPE_CHECKING:
    from streamlasso.data.encoding.transformer import StreamEncoder

__all__ = ["Encoder", "StreamEncoder", "Target", "detect_encoder", "encoder_for"]


def __getattr__(name: str) -> Any:
    if name != "StreamEncoder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("streamlasso.data.encoding.transformer").StreamEncoder
