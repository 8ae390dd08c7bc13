"""Time-varying conditional-dependence networks: the estimator, and the command with its tables, figures and page.

`StreamingNetwork` is imported when it is first used, so that the command line can list its options quickly.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlasso.network.estimator import NetworkTrace, StreamingNetwork

__all__ = ["NetworkTrace", "StreamingNetwork"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from streamlasso.network import estimator

    return getattr(estimator, name)
