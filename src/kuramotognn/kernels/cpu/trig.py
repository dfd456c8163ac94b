"""Sine and cosine of lanes, without a branch."""

import math

import numpy as np
from numba import types
from numba.extending import overload

from kuramotognn.kernels.cpu.jit import part
from kuramotognn.kernels.cpu.lanes import exact_fma, flip_odd, fma, splat


def _horner(real, coefficients):
    """The polynomial with these coefficients, lowest first, as a compiled function of lanes."""
    constant = real(coefficients[0])
    if len(coefficients) == 1:
        return part(lambda t: splat(t, constant))
    rest = _horner(real, coefficients[1:])
    return part(lambda t: fma(rest(t), t, splat(t, constant)))


def _make_sincos(real, digits, pi_rest, sin_poly, cos_poly):
    """Branch-free (sin x, cos x) of lanes of numbers with so many binary `digits`.

    x = q*pi + r with r in [-pi/2, pi/2]. Adding 1.5 * 2**(digits - 1) rounds x/pi to q and leaves its parity in the
    last bit. pi is split into the number nearest to it and `pi_rest`: with one rounding x - q*pi_hi is exact, for it is
    a multiple of pi_hi's last digit (or half of it) below 2, while |q| < 2**(digits - 2). Then odd and even polynomials
    in r, and the sign (-1)**q. NaN and inf give NaN.
    """
    inv_pi, shift = real(1 / math.pi), real(1.5 * 2 ** (digits - 1))
    minus_hi, minus_lo = real(-math.pi), real(-pi_rest)
    sin_over_r, cos_of_r = _horner(real, sin_poly), _horner(real, cos_poly)

    @part
    def sincos(x):
        shifted = fma(x, splat(x, inv_pi), splat(x, shift))
        q = shifted - splat(x, shift)
        r = exact_fma(q, splat(x, minus_lo), exact_fma(q, splat(x, minus_hi), x))
        t = r * r
        return flip_odd(r, shifted) * sin_over_r(t), flip_odd(cos_of_r(t), shifted)

    return sincos


# Fits at Chebyshev nodes in t = r*r: errors 4e-9 / 2e-10 (float32), 2e-19 / 6e-21 (float64).
_sincos32 = _make_sincos(
    np.float32,
    24,
    -8.742278000372475e-08,
    (
        0.999999995688130649,
        -0.166666579305668334,
        0.008333049751044008727,
        -0.0001980898569453127649,
        2.605034248267146494e-6,
    ),
    (
        0.9999999997784951794,
        -0.4999999935383794524,
        0.04166663609926837028,
        -0.001388835950103166314,
        0.00002476006888276961414,
        -2.604992321272223676e-7,
    ),
)
_sincos64 = _make_sincos(
    np.float64,
    53,
    1.2246467991473532e-16,
    (
        0.9999999999999999998,
        -0.166666666666666653,
        0.008333333333333185871,
        -0.0001984126984120849224,
        2.755731921119784581e-6,
        -2.505210688759581108e-8,
        1.605894072515584725e-10,
        -7.643022462141452568e-13,
        2.721530691642784666e-15,
    ),
    (
        1.0,
        -0.4999999999999999995,
        0.04166666666666665972,
        -0.001388888888888852845,
        0.00002480158730149235845,
        -2.755731920961878687e-7,
        2.087675566395046893e-9,
        -1.147067005298305486e-11,
        4.776869669997733618e-14,
        -1.511958196472096724e-16,
    ),
)


def sincos(x):
    """(sin, cos) of lanes, in their precision; has a meaning inside kernels only."""
    raise TypeError(f"sincos works on lanes inside compiled kernels, got {type(x).__name__}")


@overload(sincos)
def _sincos_overload(x):
    kernel = _sincos32 if x.dtype == types.float32 else _sincos64
    return lambda x: kernel(x)
