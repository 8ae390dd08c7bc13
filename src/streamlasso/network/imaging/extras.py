"""Optional packages, imported where they are used; the error names the extra to install."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any


def import_fmri(module: str) -> Any:
    """A module of nibabel, nilearn, pydicom or watchdog.

    >>> import_fmri("nosuchmodule")
    Traceback (most recent call last):
    ImportError: images need nosuchmodule: pip install "streamlasso[fmri]"
    """
    try:
        with warnings.catch_warnings():
            # nibabel warns that its DICOM readers are experimental whenever they are imported.
            warnings.simplefilter("ignore", UserWarning)
            return import_module(module)
    except ImportError as error:
        raise ImportError(f'images need {module.split(".")[0]}: pip install "streamlasso[fmri]"') from error
