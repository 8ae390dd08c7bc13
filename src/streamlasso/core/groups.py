"""Which groups of experts compete in a mixture: kinds of experts, times memories."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from streamlasso.core.experts import KINDS
from streamlasso.memories import Forgetting
from streamlasso.memories.base import Memory


def competing(memory: Memory | None, tuner: Any) -> tuple[list[Memory], int]:
    """The memories that stay, those of the setting or of the tuner, and how many more restart."""
    if memory is not None:
        return list(memory.members()), 0
    return [_forgetting(1.0), *map(_forgetting, tuner.factors)], tuner.starts


@lru_cache(typed=True)
def _forgetting(r: float) -> Memory:
    """One for all mixtures."""
    return Forgetting(r)


def all_groups(n_features: int, settings: dict[str, Any], stay: Sequence[Memory], starts: int) -> list[Any]:
    """The groups of all kinds, first those that stay; then those that restart, kind by kind."""
    found = [group for kind in KINDS for group in kind.groups(n_features, settings, stay, starts)]
    return sorted(found, key=lambda group: group.restarts)
