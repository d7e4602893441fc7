"""What is in deploy/: linted where the tools are, and in step with the command line."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from topnrank.cli.app import app

DEPLOY = Path(__file__).parents[2] / "deploy"


def tool(*names: str) -> str:
    """The path of the first of these programs that is here; the test is skipped without any."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    found = next(filter(None, (shutil.which(name, path=places) for name in names)), None)
    if found is None:
        pytest.skip(f"NOT LINTED: there is no {' or '.join(names)} on this machine")
    return found


def test_the_dockerfile_is_clean():
    done = subprocess.run([tool("hadolint"), str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_compose_file_is_valid():
    environment = {**os.environ, "TOPNRANK_API_KEYS": "shop read x", "POSTGRES_PASSWORD": "y"}
    command = [tool("docker-compose"), "--file", str(DEPLOY / "compose.yaml"), "config"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    del environment["POSTGRES_PASSWORD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "a password for the database" in done.stderr


def test_the_units_are_valid(tmp_path):
    verify = tool("systemd-analyze")
    for unit in DEPLOY.glob("topnrank*.*"):  # the program itself is not installed here
        text = unit.read_text().replace("/opt/topnrank/bin/topnrank", sys.executable)
        (tmp_path / unit.name).write_text(text)
    units = sorted(map(str, tmp_path.iterdir()))
    assert len(units) == 3
    done = subprocess.run([verify, "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")


def test_options_in_the_files_exist():
    group, used = typer.main.get_command(app), []
    for file in DEPLOY.iterdir():
        for line in file.read_text().splitlines():
            for command, rest in re.findall(r"topnrank\W+(serve|refresh|warmup)\b(.*)", line):
                used += [(command, option) for option in re.findall(r"--[a-z][a-z-]+", rest)]
    assert len(used) >= 5
    for command, option in used:
        parameters = group.get_command(None, command).params
        assert option in {name for one in parameters for name in one.opts}, (command, option)
