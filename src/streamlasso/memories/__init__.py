"""How the past fades, one file per memory."""

from streamlasso.memories.adaptive import AdaptiveForgetting
from streamlasso.memories.base import Memory
from streamlasso.memories.forgetting import Forgetting
from streamlasso.memories.window import Window

__all__ = ["AdaptiveForgetting", "Forgetting", "Memory", "Window"]

#: One setting or more of each part that makes one model: the contract tests run over them.
EXAMPLES = (Forgetting(0.95), Forgetting(1.0), Window(15))
