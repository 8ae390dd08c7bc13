"""How the past fades, one file a memory."""

from streamlasso.memories.forgetting import Forgetting
from streamlasso.memories.window import Window

__all__ = ["Forgetting", "Window"]
