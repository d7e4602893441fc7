"""Tests for models of your own; needs pytest.

    from topnrank.testing import ModelTests

    class TestMyModel(ModelTests):
        model = MyModel(factors=8)
        better_than = 0.75

runs everything that is expected of a model: parameters, fitting, recommending, files, quality.
"""

import pytest

pytest.register_assert_rewrite(
    *(f"topnrank.testing.{part}" for part in ("base", "parameters", "fitting", "recommending", "files", "quality"))
)

from topnrank.testing.base import small_data, small_split  # noqa: E402 (after the rewriting of its assertions)
from topnrank.testing.gradients import central_differences  # noqa: E402
from topnrank.testing.model_tests import ModelTests  # noqa: E402

__all__ = ["ModelTests", "central_differences", "small_data", "small_split"]
