"""Every public name says what it is with an example, and every example in the package shows what really happens.

The modules are the installed ones, compiled or not, so this does what `pytest --doctest-modules` cannot.
"""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import streamlasso

MODULES = ["streamlasso", *(module.name for module in pkgutil.walk_packages(streamlasso.__path__, "streamlasso."))]


def public_names():
    """All names that a package or module lists in `__all__`."""
    for name in MODULES:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", []):
            yield pytest.param(getattr(module, public), id=f"{name}.{public}")


def examples():
    """All docstrings with an example, each once: Cython lists those of its extension types twice."""
    seen = set()
    for name in MODULES:
        for test in doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), name):
            if test.examples and test.docstring not in seen:
                seen.add(test.docstring)
                yield pytest.param(test, id=test.name)


@pytest.mark.parametrize("thing", list(public_names()))
def test_public_name_has_an_example(thing):
    if inspect.isclass(thing) or inspect.isroutine(thing):
        assert ">>>" in (inspect.getdoc(thing) or "")


@pytest.mark.parametrize("example", list(examples()))
def test_example_is_true(example):
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
