"""ModelTests: the conformance suite of models."""

from topnrank.testing.files import FileTests
from topnrank.testing.fitting import FittingTests
from topnrank.testing.insight import InsightTests
from topnrank.testing.parameters import ParameterTests
from topnrank.testing.quality import QualityTests
from topnrank.testing.recommending import RecommendingTests
from topnrank.testing.wishes import WishTests


class ModelTests(ParameterTests, FittingTests, RecommendingTests, WishTests, InsightTests, FileTests, QualityTests):
    """All that is expected of a model; a subclass whose name begins with Test sets `model` and `better_than`."""
