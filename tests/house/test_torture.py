"""The short form of `make torture`: a few cases of each campaign, with another seed each."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "torture.py"
CASES = {
    "input": 1000,
    "damage": 500,
    "crafted": 500,
    "checkpoints": 50,
    "crafted-checkpoints": 50,
    "writes": 25,
    "kills": 25,
    "serving": 1,
}


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("name", CASES)
def test_nothing_fails(tmp_path, name):
    if name in ("writes", "kills") and (sys.platform != "linux" or shutil.which("cc") is None):
        pytest.skip("faults at writes need Linux and a C compiler")
    report = tmp_path / "report.md"
    arguments = ["--only", name, "--cases", str(CASES[name]), "--seed", "1", "--folder", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments, "--report", str(report)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing failed." in report.read_text()
