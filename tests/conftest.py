"""Settings for all tests: tiers, how Hypothesis searches, where real data lie, nothing left behind."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["support.nothing_left"]

TESTS = Path(__file__).parent
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH", "")]))
"""Processes that tests start find `support`, too."""

TIERS = {
    "cluster": ["spark", "io/test_s3.py"],
    "process": [
        "cli/test_process.py",
        "cli/test_reproduce.py",
        "engines/test_interrupts.py",
        "experiments/compare/test_folder.py",
        "kernels/test_forks_and_threads.py",
        "kernels/test_kernel_cache.py",
        "training/test_checkpoint.py",
    ],
}
"""What a whole folder or file belongs to; single tests are marked where they stand. `make test` leaves all of these out."""

settings.register_profile("local", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("local"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


def pytest_configure() -> None:
    missing = [place for places in TIERS.values() for place in places if not (TESTS / place).exists()]
    if missing:
        raise pytest.UsageError(f"tests/conftest.py: TIERS names what is not there: {', '.join(missing)}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Adds the marks of the tiers, and a group for pytest-xdist: one cluster serves all tests that need it."""
    for item in items:
        for tier, places in TIERS.items():
            if any(item.path.is_relative_to(TESTS / place) for place in places):
                item.add_marker(tier)
        if "run_process" in getattr(item, "fixturenames", ()):
            item.add_marker("process")
        item.add_marker(pytest.mark.xdist_group("cluster" if item.get_closest_marker("cluster") else str(item.path)))


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The folder with ml-100k.parquet and ml-1m.parquet."""
    folder = os.environ.get("TOPNRANK_DATA")
    if not folder:
        pytest.skip("TOPNRANK_DATA is not set: give the folder with ml-100k.parquet and ml-1m.parquet")
    return Path(folder)
