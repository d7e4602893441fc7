"""The examples beside the formulas are true."""

import doctest
from importlib import import_module

import pytest

from topnrank import losses

MODULES = sorted({vars(losses)[name].__module__ for name in losses.__all__ if isinstance(vars(losses)[name], type)})


@pytest.mark.parametrize("module", [name for name in MODULES if name.endswith(".reference")])
def test_each_loss_has_an_example_and_it_is_true(module):
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0
