"""Numbers and rules that stand twice: kernels import nothing of ours."""

from hypothesis import given
from hypothesis import strategies as st

from topnrank.losses import _shaping_kernel as shaping
from topnrank.losses import shaping as reference_shaping
from topnrank.losses.pairwise import kernel as pairs
from topnrank.losses.pairwise import reference as reference_pairs
from topnrank.losses.xclimf import kernel as xclimf
from topnrank.losses.xclimf import reference as reference_xclimf


def test_kernels_and_references_call_the_same_gradient_faint():
    assert shaping.FAINT == reference_shaping.FAINT


def test_kernels_and_references_give_each_row_the_same_draws():
    assert pairs.STRIDE == reference_pairs.STRIDE


def test_kernels_and_references_clip_at_the_same_gain():
    assert xclimf.LARGEST == reference_xclimf.LARGEST


@given(n=st.integers(1, 30), m=st.integers(1, 60), anneal_n=st.floats(0, 1), progress=st.floats(0, 1))
def test_kernels_and_references_anneal_alike(n, m, anneal_n, progress):
    assert shaping.annealed_n(float(n), m, anneal_n, progress) == reference_shaping.annealed_n(n, m, anneal_n, progress)
