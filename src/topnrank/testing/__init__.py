"""Tests for models and objectives of your own; needs pytest.

    from topnrank.testing import ModelTests, ObjectiveTests

    class TestMyModel(ModelTests):
        model = MyModel(factors=8)
        better_than = 0.75

    class TestMyLoss(ObjectiveTests):
        objectives = (MyLoss(), MyLoss(sharp=True))

`ModelTests` tests a model: parameters, fitting, recommending with all options, explaining, files, quality.
`ObjectiveTests` tests an objective: its gradient, extreme inputs, symmetries.
"""

try:
    import pytest
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("topnrank.testing needs pytest; install it with: pip install pytest") from error

pytest.register_assert_rewrite("topnrank.testing.base", "topnrank.testing.losses", "topnrank.testing.models")

from topnrank.testing.base import small_data, small_split  # noqa: E402 (pytest must rewrite their assertions first)
from topnrank.testing.losses import ObjectiveTests, central_differences  # noqa: E402
from topnrank.testing.models import ModelTests  # noqa: E402

__all__ = ["ModelTests", "ObjectiveTests", "central_differences", "small_data", "small_split"]
