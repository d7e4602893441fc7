"""exp and ln of arrays, written so that they vectorize: no branches, no calls, bit operations instead of tables.

* ln y = e ln 2 + ln sqrt 2 + 2 artanh s with y = 2^e m, 1 <= m < 2, s = (m - sqrt 2) / (m + sqrt 2), so |s| <= 0.1716. The
  series of artanh is cut after s^17: the rest is below 2 s^19 / (19 (1 - s^2)) < 4e-16.
* e^x = 2^n e^r with n the integer nearest to x / ln 2, so |r| <= 0.3466. The series of e^r is cut after r^13: the
  rest is below r^14 / 14! * 1.03 < 5e-18, and rounding is what remains.

Both are good to about 1e-15 relative; tests hold them to 4e-15.
"""

import numpy as np

from topnrank.kernels.jit import kernel

_SHIFT = np.uint64(52)
_MANTISSA, _ONE = np.uint64(0x000FFFFFFFFFFFFF), np.uint64(0x3FF0000000000000)
_TO_FLOAT = np.uint64(0x4330000000000000)
_LN2, _LN_ROOT, _ROOT = 0.6931471805599453, 0.34657359027997264, 1.4142135623730951
_OFFSET = 4503599627370496.0 + 1023.0
"""2^52, with whose bits a small integer is read, and the exponent's bias."""
_PER_LN2, _LN2_HIGH, _LN2_LOW = 1.4426950408889634, 6.93147180369123816490e-01, 1.90821492927058770002e-10
_ROUND = 6755399441055744.0
"""1.5 * 2^52: adding it rounds to an integer, which is then in the lowest bits."""
LEAST = -708.0
"""Exponents below count as this one: e^-708 is the smallest that keeps all its digits."""


@kernel
def logarithms(y, out, scratch):
    """out = ln y of normal numbers y > 0; `scratch` has the same size, and all three are different arrays."""
    bits, exponents, mantissas = y.view(np.uint64), scratch.view(np.uint64), out.view(np.uint64)
    for i in range(y.size):
        exponents[i] = (bits[i] >> _SHIFT) | _TO_FLOAT
        mantissas[i] = (bits[i] & _MANTISSA) | _ONE
    for i in range(y.size):
        s = (out[i] - _ROOT) / (out[i] + _ROOT)
        q = s * s
        p = 2.0 / 17.0
        p = p * q + 2.0 / 15.0
        p = p * q + 2.0 / 13.0
        p = p * q + 2.0 / 11.0
        p = p * q + 2.0 / 9.0
        p = p * q + 2.0 / 7.0
        p = p * q + 2.0 / 5.0
        p = p * q + 2.0 / 3.0
        p = p * q + 2.0
        out[i] = (scratch[i] - _OFFSET) * _LN2 + (_LN_ROOT + s * p)


@kernel
def exponentials(x, out):
    """out = e^x of numbers x <= 0, in another array; x is used up."""
    bits = out.view(np.uint64)
    for i in range(x.size):
        x[i] = max(x[i], LEAST)
        out[i] = x[i] * _PER_LN2 + _ROUND
    for i in range(x.size):
        n = out[i] - _ROUND
        r = (x[i] - n * _LN2_HIGH) - n * _LN2_LOW
        p = 1.0 / 6227020800.0
        p = p * r + 1.0 / 479001600.0
        p = p * r + 1.0 / 39916800.0
        p = p * r + 1.0 / 3628800.0
        p = p * r + 1.0 / 362880.0
        p = p * r + 1.0 / 40320.0
        p = p * r + 1.0 / 5040.0
        p = p * r + 1.0 / 720.0
        p = p * r + 1.0 / 120.0
        p = p * r + 1.0 / 24.0
        p = p * r + 1.0 / 6.0
        p = p * r + 0.5
        p = p * r + 1.0
        x[i] = p * r + 1.0
    for i in range(x.size):
        bits[i] = (bits[i] << _SHIFT) + _ONE
    for i in range(x.size):
        out[i] *= x[i]
