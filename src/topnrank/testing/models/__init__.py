"""ModelTests: the conformance suite of models."""

from topnrank.testing.models.files import FileTests
from topnrank.testing.models.filters import FilterTests
from topnrank.testing.models.fitting import FittingTests
from topnrank.testing.models.insight import InsightTests
from topnrank.testing.models.parameters import ParameterTests
from topnrank.testing.models.quality import QualityTests
from topnrank.testing.models.recommending import RecommendingTests


class ModelTests(ParameterTests, FittingTests, RecommendingTests, FilterTests, InsightTests, FileTests, QualityTests):
    """All that is expected of a model; a subclass whose name begins with Test sets `model` and `better_than`."""
