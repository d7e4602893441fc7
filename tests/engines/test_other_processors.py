"""Another processor: the last digits may differ, and no more."""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest

from topnrank import TopNRank, synthetic

SCRIPT = """
import json
from topnrank import TopNRank, synthetic
model = TopNRank(factors=8, epochs=5).fit(synthetic(100, 60, 2000, seed=2))
print(json.dumps(model.score_block(range(100)).tolist()))
"""


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names of processors are those of x86")
def test_scores_of_a_processor_without_wide_registers_differ_in_the_last_digits_only():
    """Five epochs with kernels for a plain x86-64: no AVX, no fused multiplication."""
    environment = os.environ | {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": ""}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = TopNRank(factors=8, epochs=5).fit(synthetic(100, 60, 2000, seed=2)).score_block(np.arange(100))
    np.testing.assert_allclose(np.array(json.loads(done.stdout)), here, atol=1e-3)
