"""Packages that only some need: asked for when they are needed, with the words that say how to get them."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any


def needs_fmri(module: str) -> Any:
    """A module of nibabel, nilearn, pydicom or watchdog.

    >>> needs_fmri("nosuchmodule")
    Traceback (most recent call last):
    ImportError: images need nosuchmodule: pip install "streamlasso[fmri]"
    """
    try:
        with warnings.catch_warnings():
            # nibabel calls its DICOM readers experimental whenever they are loaded.
            warnings.simplefilter("ignore", UserWarning)
            return import_module(module)
    except ImportError as error:
        raise ImportError(f'images need {module.split(".")[0]}: pip install "streamlasso[fmri]"') from error
