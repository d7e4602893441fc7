"""The short form of `make torture`: a few cases of each campaign, with another seed each."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "torture.py"
CASES = {"input": 400, "damage": 300, "crafted": 200, "writes": 12, "kills": 10, "serving": 2}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("name", CASES)
def test_nothing_fails(tmp_path, name):
    report = tmp_path / "report.md"
    arguments = ["--only", name, "--cases", str(CASES[name]), "--seed", "1", "--folder", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments, "--report", str(report)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing failed." in report.read_text()
