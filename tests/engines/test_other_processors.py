"""Another processor, or a BLAS for another: the last digits may differ, and no more."""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from topnrank import EASE, TopNRank, synthetic

pytestmark = [
    pytest.mark.slow,
    pytest.mark.process,
    pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of processors are those of x86"),
]
SCRIPT = """
import json
from topnrank import EASE, TopNRank, synthetic
model = {}.fit(synthetic(100, 60, 2000, seed=2))
print(json.dumps(model.score_block(range(100)).tolist()))
"""


def scores_there(model: str, **variables: str) -> np.ndarray:
    """(users, items) scores of a process with these variables."""
    command = [sys.executable, "-c", SCRIPT.format(model)]
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.array(json.loads(done.stdout))


def test_scores_of_a_processor_without_wide_registers_differ_in_the_last_digits_only():
    """Five epochs with kernels for a plain x86-64: no AVX, no fused multiplication."""
    there = scores_there("TopNRank(factors=8, epochs=5)", NUMBA_CPU_NAME="x86-64", NUMBA_CPU_FEATURES="")
    here = TopNRank(factors=8, epochs=5).fit(synthetic(100, 60, 2000, seed=2)).score_block(np.arange(100))
    np.testing.assert_allclose(there, here, atol=1e-3)


@pytest.mark.parametrize("core", ["Nehalem", "Haswell", "SkylakeX"])
def test_scores_by_the_blas_of_another_processor_differ_in_the_last_digits_only(core):
    """NumPy's and SciPy's OpenBLAS take the code for this processor; other BLAS libraries pass over the variable."""
    there = scores_there("EASE()", OPENBLAS_CORETYPE=core)
    here = EASE().fit(synthetic(100, 60, 2000, seed=2)).score_block(np.arange(100))
    np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-4 * np.abs(here).max())
