// Sine, cosine and exponential of rows, without a branch.
#pragma once

#include "vector.h"

namespace KG_ISA {

constexpr double PI = 3.14159265358979323846, LN2 = 0.69314718055994530942;

// Coefficients of sin(r)/r and cos(r) in t = r * r for r in [-pi/2, pi/2], lowest first: fits at Chebyshev nodes with errors
// of 4e-9 (float) and 2e-19, 6e-21 (double). The cosine of float has the least largest error, 5e-8, of those that are 1 at 0.
// A `rest` is a constant minus the number nearest to it.
template <class T> struct Precision;
template <> struct Precision<float> {
  static constexpr int digits = 24, sin_terms = 5, cos_terms = 5, exp_terms = 8;
  static constexpr double pi_rest = -8.742278000372475e-08, inv_pi_rest = 1.284127663345183e-08;
  static constexpr double ln2_rest = -1.904654299957768e-09, least_exponent = -86;  // whose exponential is a normal number
  static constexpr double sin[] = {0.999999995688130649, -0.166666579305668334, 0.008333049751044008727,
                                   -0.0001980898569453127649, 2.605034248267146494e-6};
  static constexpr double cos[] = {1, -0.49999932293057264, 0.0416639894548793, -0.0013855927184574738,
                                   2.3194386491179195e-05};
};
template <> struct Precision<double> {
  static constexpr int digits = 53, sin_terms = 9, cos_terms = 10, exp_terms = 14;
  static constexpr double pi_rest = 1.2246467991473532e-16, inv_pi_rest = -1.9678676675182486e-17;
  static constexpr double ln2_rest = 2.3190468138462996e-17, least_exponent = -700;
  static constexpr double sin[] = {0.9999999999999999998, -0.166666666666666653, 0.008333333333333185871,
                                   -0.0001984126984120849224, 2.755731921119784581e-6, -2.505210688759581108e-8,
                                   1.605894072515584725e-10, -7.643022462141452568e-13, 2.721530691642784666e-15};
  static constexpr double cos[] = {1, -0.4999999999999999995, 0.04166666666666665972, -0.001388888888888852845,
                                   0.00002480158730149235845, -2.755731920961878687e-7, 2.087675566395046893e-9,
                                   -1.147067005298305486e-11, 4.776869669997733618e-14, -1.511958196472096724e-16};
};

// Adding it to a number below 2^(digits - 2) rounds to an integer and leaves that in the last bits.
template <class T> constexpr T ROUND = T(1.5) * T(int64_t(1) << (Precision<T>::digits - 1));

// The coefficients as constants of the compiled code: of sin(x)/x and cos(x), of sin(pi z)/z and cos(pi z), of exp(x).
template <class T> struct Series {
  T sin[16]{}, cos[16]{}, sin_pi[16]{}, cos_pi[16]{}, exp[16]{};
  constexpr Series() {
    using P = Precision<T>;
    double power = 1, factorial = 1;  // pi^(2k), k!
    for (int k = 0; k < 16; ++k, power *= PI * PI, factorial *= k) {
      if (k < P::sin_terms) sin[k] = T(P::sin[k]), sin_pi[k] = T(P::sin[k] * power * PI);
      if (k < P::cos_terms) cos[k] = T(P::cos[k]), cos_pi[k] = T(P::cos[k] * power);
      exp[k] = T(1 / factorial);
    }
  }
};
template <class T> constexpr Series<T> SERIES{};

// sum_k coefficient[k] t^k
template <int Terms, class R> KG_INLINE R polynomial(const R& t, const typename R::T (&coefficient)[16]) {
  R sum = splat<R>(coefficient[Terms - 1]);
#pragma GCC unroll 16
  for (int k = Terms - 2; k >= 0; --k) sum = fma(sum, t, splat<R>(coefficient[k]));
  return sum;
}

// x with its sign flipped where the last bit of `whole` is set.
template <class R> KG_INLINE R flip_odd(R x, const R& whole) {
  using Bits = typename R::Bits;
  KG_EACH x.v[k] = (typename R::V)((Bits)x.v[k] ^ ((Bits)whole.v[k] << (8 * int(sizeof(typename R::T)) - 1)));
  return x;
}

// a * b + c, exact but for the last rounding, on any processor.
template <class R> KG_INLINE R exact_fma(const R& a, const R& b, R c) {
  if constexpr (HAS_FMA) return fma(a, b, c);
  KG_EACH for (int i = 0; i < R::lanes; ++i) c.v[k][i] = typename R::T(__builtin_fma(a.v[k][i], b.v[k][i], c.v[k][i]));
  return c;
}

// (sin(pi z), cos(pi z)). Whole half turns come off exactly; their parity is the sign. NaN and infinity give NaN.
template <class R> KG_INLINE void sincos_pi(const R& z, R& sin, R& cos) {
  using T = typename R::T;
  const R round = splat<R>(ROUND<T>), shifted = z + round, r = z - (shifted - round), t = r * r;
  sin = flip_odd(r, shifted) * polynomial<Precision<T>::sin_terms>(t, SERIES<T>.sin_pi);
  cos = flip_odd(polynomial<Precision<T>::cos_terms>(t, SERIES<T>.cos_pi), shifted);
}

// x minus the nearest multiple of a period, exact while that is below 2^(digits - 2) times the period = hi + lo.
template <class R> KG_INLINE R reduce(const R& x, double inverse, double hi, double lo, R& shifted) {
  using T = typename R::T;
  shifted = fma(x, splat<R>(T(inverse)), splat<R>(ROUND<T>));
  const R whole = shifted - splat<R>(ROUND<T>);
  return exact_fma(whole, splat<R>(T(-lo)), exact_fma(whole, splat<R>(-T(hi)), x));
}

// (sin x, cos x)
template <class R> KG_INLINE void sincos(const R& x, R& sin, R& cos) {
  using T = typename R::T;
  R shifted;
  const R r = reduce(x, 1 / PI, PI, Precision<T>::pi_rest, shifted), t = r * r;
  sin = flip_odd(r, shifted) * polynomial<Precision<T>::sin_terms>(t, SERIES<T>.sin);
  cos = flip_odd(polynomial<Precision<T>::cos_terms>(t, SERIES<T>.cos), shifted);
}

// x / pi without whole turns, right to the last digit: in [-1, 1].
template <class R> KG_INLINE R half_turns(const R& x) {
  using T = typename R::T;
  R shifted;
  const R r = reduce(x, 0.5 / PI, 2 * PI, 2 * Precision<T>::pi_rest, shifted);
  return exact_fma(r, splat<R>(T(1 / PI)), r * splat<R>(T(Precision<T>::inv_pi_rest)));
}

// exp(x) for x up to 0, or a little more; 0 below the least exponent. NaN gives NaN.
template <class R> KG_INLINE R exponential(const R& x) {
  using T = typename R::T;
  using P = Precision<T>;
  const R least = splat<R>(T(P::least_exponent));
  R y = x, shifted;
  KG_EACH y.v[k] = x.v[k] < least.v[k] ? least.v[k] : x.v[k];
  const R r = reduce(y, 1 / LN2, LN2, P::ln2_rest, shifted);
  R e = polynomial<P::exp_terms>(r, SERIES<T>.exp);
  KG_EACH {  // times 2 to the integer in `shifted`
    const auto scaled = (typename R::Bits)e.v[k] + ((typename R::Bits)shifted.v[k] << (P::digits - 1));
    e.v[k] = x.v[k] < least.v[k] ? typename R::V{} : (typename R::V)scaled;
  }
  return e;
}

}  // namespace KG_ISA
