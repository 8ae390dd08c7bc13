"""Time-varying conditional-dependence networks.

estimator.py, nodes.py    StreamingNetwork, and the engines of its nodes
cli.py -> command.py      `streamlasso network` and `replay`: their options (options.py), and what they print
recorded.py               files of subjects (subjects.py) -> results (results.py) -> report
live.py                   a scanner's folder -> a scan in progress (scan.py) -> report
group.py, blocks.py       results -> what subjects have in common, and what differs between blocks
files.py, page.py         tables, figures and the page of a run, and how to read them again
imaging/                  region series, NIfTI, DICOM, BIDS, atlases

The names below are imported when they are first used, so that the command line lists its options quickly.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamlasso.network.estimator import NetworkTrace, StreamingNetwork
    from streamlasso.network.files import read_networks

__all__ = ["NetworkTrace", "StreamingNetwork", "read_networks"]

_MODULES = {"NetworkTrace": "estimator", "StreamingNetwork": "estimator", "read_networks": "files"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
