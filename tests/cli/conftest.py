"""Fixtures of the command line's tests: runners, and small real files."""

import os
import subprocess
from pathlib import Path

import pytest

import topnrank as tnr
from support.cli_runner import Outcome, Run, command_line, ratings_text
from topnrank.cli import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], model_file: Path) -> Run:
    """Runs a command inside this process; with kernels compiled by then, no training says that it compiles them."""

    def call(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


@pytest.fixture
def run_process() -> Run:
    """Runs a command as a process of its own."""

    def call(*arguments: object, **variables: str) -> Outcome:
        done = subprocess.run(
            command_line(arguments),
            capture_output=True,
            text=True,
            env=os.environ | variables,
            timeout=600,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(scope="session")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV of ratings with text ids."""
    path = tmp_path_factory.mktemp("data") / "ratings.csv"
    path.write_text(ratings_text())
    return path


@pytest.fixture(scope="session")
def model_file(ratings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small trained model of those ratings."""
    path = tmp_path_factory.mktemp("model") / "small.safetensors"
    tnr.TopNRank(factors=4, epochs=3, num_threads=1).fit(tnr.read(ratings)).save(path)
    return path
