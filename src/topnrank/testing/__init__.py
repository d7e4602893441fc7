"""Tests for models and objectives of your own; needs pytest.

    from topnrank.testing import ModelTests, ObjectiveTests

    class TestMyModel(ModelTests):
        model = MyModel(factors=8)
        better_than = 0.75

    class TestMyLoss(ObjectiveTests):
        objectives = (MyLoss(), MyLoss(sharp=True))

`ModelTests` runs everything that is expected of a model: parameters, fitting, recommending with all
options, explaining, files, quality.
`ObjectiveTests` does so for an objective: its gradient, hazards, symmetries.
"""

import pytest

_PARTS = ("base", "parameters", "fitting", "recommending", "wishes", "insight", "files", "quality", "objectives")
pytest.register_assert_rewrite(*(f"topnrank.testing.{part}" for part in _PARTS))

from topnrank.testing.base import small_data, small_split  # noqa: E402 (after the rewriting of their assertions)
from topnrank.testing.losses import (
    ObjectiveTests,  # noqa: E402
    central_differences,  # noqa: E402
)
from topnrank.testing.models import ModelTests  # noqa: E402

__all__ = ["ModelTests", "ObjectiveTests", "central_differences", "small_data", "small_split"]
