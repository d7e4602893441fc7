"""Settings for all tests: how Hypothesis searches, and where real data lie."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

TESTS = str(Path(__file__).parent)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [TESTS, os.environ.get("PYTHONPATH", "")]))
"""Processes that tests start find `support`, too."""

settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The folder with ml-100k.parquet and ml-1m.parquet."""
    folder = os.environ.get("TOPNRANK_DATA")
    if not folder:
        pytest.skip("TOPNRANK_DATA is not set: give the folder with ml-100k.parquet and ml-1m.parquet")
    return Path(folder)
