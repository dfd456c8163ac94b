"""Sine, cosine and exponential of lanes, without a branch."""

import math
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from kuramotognn.kernels.cpu.jit import part
from kuramotognn.kernels.cpu.lanes import exact_fma, flip_odd, fma, splat, times_two_to, where_less


class _Precision(NamedTuple):
    """What one floating-point type needs; polynomials in t = r*r for r in [-pi/2, pi/2], lowest coefficient first."""

    real: type
    digits: int  # binary ones, of which adding 1.5 * 2**(digits - 1) leaves the whole part
    pi_rest: float  # pi minus the number nearest to it
    inv_pi_rest: float  # 1/pi minus the number nearest to it
    ln2_rest: float  # ln 2 minus the number nearest to it
    least_exponent: float  # whose exponential is an ordinary number
    exp_terms: int
    sin_over_r: tuple[float, ...]
    cos_of_r: tuple[float, ...]


# Fits at Chebyshev nodes: errors 4e-9 (float32), 2e-19 and 6e-21 (float64). The cosine of float32 has the least largest
# error, 5e-8, among those that are 1 at 0.
_SINGLE = _Precision(
    np.float32,
    24,
    -8.742278000372475e-08,
    1.284127663345183e-08,
    -1.904654299957768e-09,
    -86.0,
    8,
    (
        0.999999995688130649,
        -0.166666579305668334,
        0.008333049751044008727,
        -0.0001980898569453127649,
        2.605034248267146494e-6,
    ),
    (1.0, -0.49999932293057264, 0.0416639894548793, -0.0013855927184574738, 2.3194386491179195e-05),
)
_DOUBLE = _Precision(
    np.float64,
    53,
    1.2246467991473532e-16,
    -1.9678676675182486e-17,
    2.3190468138462996e-17,
    -700.0,
    14,
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


def _horner(real, coefficients):
    """The polynomial with these coefficients, lowest first, as a compiled function of lanes."""
    constant = real(coefficients[0])
    if len(coefficients) == 1:
        return part(lambda t: splat(t, constant))
    rest = _horner(real, coefficients[1:])
    return part(lambda t: fma(rest(t), t, splat(t, constant)))


def _make_sincos(precision):
    """(sin x, cos x): x = q*pi + r, polynomials in r, and the sign (-1)**q.

    Adding 1.5 * 2**(digits - 1) rounds x/pi to q and leaves its parity in the last bit. pi is split into the number
    nearest to it and a rest: with one rounding x - q*pi_hi is exact, for it is a multiple of pi_hi's last digit (or
    half of it) below 2, while |q| < 2**(digits - 2). NaN and inf give NaN.
    """
    real, shift = precision.real, precision.real(1.5 * 2 ** (precision.digits - 1))
    inv_pi, minus_hi, minus_lo = real(1 / math.pi), real(-math.pi), real(-precision.pi_rest)
    sin_over_r, cos_of_r = _horner(real, precision.sin_over_r), _horner(real, precision.cos_of_r)

    @part
    def sincos(x):
        shifted = fma(x, splat(x, inv_pi), splat(x, shift))
        q = shifted - splat(x, shift)
        r = exact_fma(q, splat(x, minus_lo), exact_fma(q, splat(x, minus_hi), x))
        t = r * r
        return flip_odd(r, shifted) * sin_over_r(t), flip_odd(cos_of_r(t), shifted)

    return sincos


def _make_sincos_pi(precision):
    """(sin(pi z), cos(pi z)): the same, where taking off whole half turns is exact by itself."""
    real, shift = precision.real, precision.real(1.5 * 2 ** (precision.digits - 1))
    sin_over_z = _horner(real, [c * math.pi ** (2 * k + 1) for k, c in enumerate(precision.sin_over_r)])
    cos_of_z = _horner(real, [c * math.pi ** (2 * k) for k, c in enumerate(precision.cos_of_r)])

    @part
    def sincos_pi(z):
        shifted = z + splat(z, shift)
        r = z - (shifted - splat(z, shift))
        t = r * r
        return flip_odd(r, shifted) * sin_over_z(t), flip_odd(cos_of_z(t), shifted)

    return sincos_pi


def _make_half_turns(precision):
    """x/pi without whole turns, right to the last digit: in [-1, 1]."""
    real, shift = precision.real, precision.real(1.5 * 2 ** (precision.digits - 1))
    inv_two_pi, minus_hi, minus_lo = real(0.5 / math.pi), real(-2 * math.pi), real(-2 * precision.pi_rest)
    inv_pi, inv_pi_rest = real(1 / math.pi), real(precision.inv_pi_rest)

    @part
    def half_turns(x):
        turns = fma(x, splat(x, inv_two_pi), splat(x, shift)) - splat(x, shift)
        r = exact_fma(turns, splat(x, minus_lo), exact_fma(turns, splat(x, minus_hi), x))
        return exact_fma(r, splat(x, inv_pi), r * splat(x, inv_pi_rest))

    return half_turns


def _make_exp(precision):
    """exp(x) for x up to 0, or a little more; 0 where it would be less than an ordinary number.

    x = n ln 2 + r with |r| <= ln 2 / 2, the series of exp in r, and n added to its exponent. NaN gives NaN.
    """
    real, shift = precision.real, precision.real(1.5 * 2 ** (precision.digits - 1))
    inv_ln2, minus_hi, minus_lo = real(1 / math.log(2)), real(-math.log(2)), real(-precision.ln2_rest)
    least, series = (
        real(precision.least_exponent),
        _horner(real, [1 / math.factorial(k) for k in range(precision.exp_terms)]),
    )

    @part
    def exp(x):
        low = splat(x, least)
        y = where_less(x, low, low, x)
        shifted = fma(y, splat(x, inv_ln2), splat(x, shift))
        n = shifted - splat(x, shift)
        r = exact_fma(n, splat(x, minus_lo), exact_fma(n, splat(x, minus_hi), y))
        return where_less(x, low, splat(x, 0), times_two_to(series(r), shifted))

    return exp


def _of_lanes(make):
    """A function of lanes in either precision; has a meaning inside kernels only."""
    single, double = make(_SINGLE), make(_DOUBLE)

    def function(x):
        raise TypeError(f"{single.__name__} works on lanes inside compiled kernels, got {type(x).__name__}")

    @overload(function)
    def _overload(x):
        chosen = single if x.dtype == types.float32 else double
        return lambda x: chosen(x)

    return function


sincos, sincos_pi, half_turns = _of_lanes(_make_sincos), _of_lanes(_make_sincos_pi), _of_lanes(_make_half_turns)
exp = _of_lanes(_make_exp)
