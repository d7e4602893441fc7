"""Executors get exactly the driver's package, and compile its kernels once for all applications."""

import json
import os
import site
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import topnrank
from topnrank import ParameterError
from topnrank.spark.session import shipping
from topnrank.spark.session.shipping import package_archive, package_digest, ship_package

SUPPORT = Path(__file__).parents[2] / "support"
SIGMOID_OF_0_AND_1 = [0.5, 0.7310585786300049]


@pytest.fixture
def without_topnrank(tmp_path):
    """Settings of executors whose Python sees every installed package but topnrank."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for folder in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}:
        for entry in Path(folder).iterdir():
            if "topnrank" not in entry.name and not (packages / entry.name).exists():
                (packages / entry.name).symlink_to(entry)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')  # -S: no .pth files, which lead to this checkout
    python.chmod(0o755)
    return python, {
        "spark.executorEnv.PYTHONPATH": str(packages),
        "spark.executorEnv.TOPNRANK_CACHE": str(tmp_path / "cache"),
    }


def test_executors_without_the_package_get_it_and_keep_what_they_compile(cluster, without_topnrank, tmp_path):
    python, conf = without_topnrank
    driver = cluster.driver(
        [SUPPORT / "shipping_driver.py", cluster.master, json.dumps(conf)], PYSPARK_PYTHON=str(python)
    )
    out, err = driver.communicate(timeout=600)
    assert driver.returncode == 0, err
    story = json.loads(out)
    assert story["not shipped"] is None
    assert "topnrank cannot be imported on the executor at " in story["error"]
    assert "No module named 'topnrank'" in story["error"]
    name = f"topnrank-{story['digest']}"
    assert story["shipped"] == [f"{name}.zip"] * 2
    assert story["files"] == 1
    assert story["path is as before"]
    for place, digest, _, values, _ in story["first"] + story["second"]:
        assert place == str(tmp_path / "cache" / "packages" / name / "topnrank")
        assert digest == story["digest"]
        assert values == pytest.approx(SIGMOID_OF_0_AND_1)
    assert [hits for _, _, hits, _, _ in story["second"]] == [1, 1]
    first, second = ({pid for *_, pid in story[which]} for which in ("first", "second"))
    assert len(first) == 2
    assert not first & second
    assert [entry.name for entry in (tmp_path / "cache" / "packages").iterdir()] == [name]


def test_the_setting_has_three_values(spark):
    before = spark.conf.get("spark.topnrank.ship")
    spark.conf.set("spark.topnrank.ship", "allways")
    try:
        with pytest.raises(
            ParameterError, match="must be one of 'auto', 'always', 'never', got 'allways'; did you mean"
        ):
            ship_package(spark)
    finally:
        spark.conf.set("spark.topnrank.ship", before)


def test_executors_with_another_version_are_refused_when_training_starts(spark, monkeypatch):
    monkeypatch.setattr(shipping, "_checked", set())
    topnrank.TopNRank(engine="spark", factors=2, epochs=1).fit(topnrank.synthetic(20, 10, seed=1))
    assert shipping._checked == {spark.sparkContext.applicationId}  # asked once for each application
    monkeypatch.setattr(shipping, "package_digest", lambda: "another")
    topnrank.TopNRank(engine="spark", factors=2, epochs=1).fit(topnrank.synthetic(20, 10, seed=1))
    shipping._checked.clear()
    with pytest.raises(ParameterError, match=r"the executor at .* has another topnrank than the driver \(version"):
        topnrank.TopNRank(engine="spark", factors=2, epochs=1).fit(topnrank.synthetic(20, 10, seed=1))
    assert not shipping._checked


def test_the_archive_is_the_package_and_always_the_same(tmp_path, monkeypatch):
    monkeypatch.setenv("TOPNRANK_CACHE", str(tmp_path / "one"))
    one = package_archive()
    monkeypatch.setenv("TOPNRANK_CACHE", str(tmp_path / "two"))
    two = package_archive()
    assert one.name == two.name == f"topnrank-{package_digest()}.zip"
    assert one.read_bytes() == two.read_bytes()
    root = Path(topnrank.__file__).parent
    files = {file for file in root.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    with zipfile.ZipFile(one) as archive:
        assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        inside = {name for name in archive.namelist() if name.startswith("package/")}
        assert inside == {f"package/topnrank/{file.relative_to(root).as_posix()}" for file in files}
        for file in files:
            assert archive.read(f"package/topnrank/{file.relative_to(root).as_posix()}") == file.read_bytes()


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    monkeypatch.setenv("TOPNRANK_CACHE", str(no_folder(tmp_path)))
    archive = package_archive()
    assert archive.name == f"topnrank-{package_digest()}.zip"
    with zipfile.ZipFile(archive) as content:
        assert content.testzip() is None


def no_folder(folder):
    """A place where nobody, not even root, can make a folder."""
    file = folder / "file"
    file.write_text("a file where a folder should be")
    return file


IN_ARCHIVE = """
import sys
sys.path.insert(1, sys.argv[1])
import numpy as np, topnrank
from topnrank.kernels import jit
from topnrank.losses._links_kernel import apply_link
from topnrank.spark.session.shipping import package_digest
s, slope = np.empty(2), np.empty(2)
apply_link(True, np.array([0.0, 1.0]), s, slope)
print(topnrank.__path__[0], jit.kernel_folder(), package_digest(), *s)
"""


def run_in_archive(archive, cache):
    """Uses the archive as an executor does, in a process that has no home to write to."""
    environment = {**os.environ, "TOPNRANK_CACHE": str(cache), "HOME": "/nonexistent", "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", IN_ARCHIVE, str(archive)], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_where_nothing_can_be_written_the_package_works_from_inside_the_archive(tmp_path, monkeypatch):
    monkeypatch.setenv("TOPNRANK_CACHE", str(tmp_path))
    archive = package_archive()
    place, kernels, digest, *values = run_in_archive(archive, no_folder(tmp_path))
    assert place == str(archive / "package" / "topnrank")
    assert kernels == "None"
    assert digest == package_digest()
    assert [float(value) for value in values] == pytest.approx(SIGMOID_OF_0_AND_1)


def test_a_plain_archive_given_to_spark_submit_works_and_caches_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TOPNRANK_CACHE", str(tmp_path))
    plain = package_archive() / "package"
    place, kernels, digest, *values = run_in_archive(plain, tmp_path / "cache")
    assert (place, kernels, digest) == (str(plain / "topnrank"), "None", package_digest())
    assert [float(value) for value in values] == pytest.approx(SIGMOID_OF_0_AND_1)


def test_two_versions_lie_side_by_side(tmp_path, monkeypatch):
    monkeypatch.setenv("TOPNRANK_CACHE", str(tmp_path))
    archive = package_archive()
    other = archive.with_name("topnrank-0000.zip")
    other.write_bytes(archive.read_bytes())
    places = [run_in_archive(file, tmp_path / "cache")[0] for file in (archive, other)]
    assert places == [str(tmp_path / "cache" / "packages" / file.stem / "topnrank") for file in (archive, other)]


@pytest.mark.parametrize("inside", [".", "packages"])
def test_packages_are_not_imported_from_a_folder_that_others_can_write(tmp_path, monkeypatch, inside):
    monkeypatch.setenv("TOPNRANK_CACHE", str(tmp_path))
    archive = package_archive()
    run_in_archive(archive, tmp_path / "cache")
    (tmp_path / "cache" / inside).chmod(0o777)
    assert run_in_archive(archive, tmp_path / "cache")[0] == str(archive / "package" / "topnrank")
