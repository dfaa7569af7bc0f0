"""The examples in docstrings run, and every loss has one."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import opencse.losses
from opencse.losses import TERMS

PACKAGES = (opencse.losses,)
MODULES = [m.name for p in PACKAGES for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    assert not doctest.testmod(importlib.import_module(name)).failed


@pytest.mark.parametrize("kind", [kind for kind in TERMS if TERMS[kind].__name__.endswith("Loss")])
def test_every_loss_has_an_example(kind: str) -> None:
    assert ">>>" in (TERMS[kind].__doc__ or "")
