"""The inverse of a large symmetric positive definite matrix in the memory of the matrix."""

import numpy as np

from topnrank._typing import FloatArray
from topnrank.errors import DivergenceError

BLOCK = 512
"""Columns or rows at a time in plain NumPy."""


def invert_in_place(matrix: FloatArray) -> None:
    """Overwrites `matrix`, (m, m) in C order, with its inverse: by Cholesky where SciPy is there, else by sweeps."""
    try:
        from scipy.linalg import get_lapack_funcs
    except ImportError:
        return invert_by_sweeps(matrix)
    factor, invert = get_lapack_funcs(("potrf", "potri"), (matrix,))
    # LAPACK counts by columns: its lower triangle of the transposed view is our upper one.
    triangle, failed = factor(matrix.T, lower=1, clean=0, overwrite_a=1)
    if not failed:
        triangle, failed = invert(triangle, lower=1, overwrite_c=1)
    if failed:
        raise _not_definite()
    if not np.shares_memory(triangle, matrix):
        matrix.T[...] = triangle
    _mirror_upper(matrix)
    return None


def invert_by_sweeps(matrix: FloatArray, block: int = BLOCK) -> None:
    """The same in plain NumPy, with twice the work: one block of columns after the other is swept (Gauss and Jordan).

    A sweep of the block k turns A_kk into -D with D = A_kk^-1, A_ik into A_ik D and A_ij into A_ij - A_ik D A_kj; after
    all of them the matrix is minus its inverse.
    """
    for first in range(0, len(matrix), block):
        chosen = slice(first, min(first + block, len(matrix)))
        square = matrix[chosen, chosen].astype(np.float64)  # in single precision the errors of pivots would grow
        try:
            np.linalg.cholesky(square)  # refuses what is not positive definite
        except np.linalg.LinAlgError:
            raise _not_definite() from None
        pivot = np.linalg.inv(square)
        panel = matrix[:, chosen].copy()
        panel[chosen] = 0.0
        scaled = (panel @ pivot).astype(matrix.dtype)
        for start in range(0, len(matrix), block):
            matrix[start : start + block] -= scaled[start : start + block] @ panel.T
        matrix[:, chosen], matrix[chosen, :] = scaled, scaled.T
        matrix[chosen, chosen] = -pivot
    np.negative(matrix, out=matrix)


def _mirror_upper(matrix: FloatArray) -> None:
    """Copies the upper triangle onto the lower one."""
    for first in range(0, len(matrix), BLOCK):
        last = min(first + BLOCK, len(matrix))
        matrix[first:last, :first] = matrix[:first, first:last].T
        square = matrix[first:last, first:last]
        below = np.tril_indices(last - first, -1)
        square[below] = square.T[below]


def _not_definite() -> DivergenceError:
    return DivergenceError(
        "the system cannot be solved in single precision: the regularization is too small for these data; set it higher"
    )
