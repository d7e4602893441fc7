"""Kernels are compiled by one process at a time, however many start together."""

import os
import subprocess
import sys

import pytest

from support.two_kernels import TWO_KERNELS

SCRIPT = f"""
import numba, sys, time
{TWO_KERNELS}
compile_inner = inner._compiler.compile
def slowly(*arguments):
    time.sleep(1.0)
    return compile_inner(*arguments)
inner._compiler.compile = slowly

kind = sys.argv[1]
print(outer(np.float64(2)) if kind == "float" else outer(np.int64(2)), *inner._cache_misses.values())
"""


@pytest.mark.process
def test_processes_that_start_together_compile_a_kernel_once(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    started = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "script.py"), kind],
            env=os.environ | {"TOPNRANK_CACHE": str(tmp_path / "cache")},
            stdout=subprocess.PIPE,
            text=True,
        )
        for kind in ("float", "float", "int", "int")
    ]
    said = [process.communicate(timeout=600)[0].split() for process in started]
    assert [words[0] for words in said] == ["9.0", "9.0", "9", "9"]
    assert sorted(len(words) for words in said) == [1, 1, 2, 2]  # one of each two compiled
    assert sorted(file.name.split(".")[-2] for file in tmp_path.rglob("script.inner-*.nbc")) == ["1", "2"]
