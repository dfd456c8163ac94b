// Rows of numbers held in vector registers, on GCC and Clang vector extensions.
//
// Compiled once for each instruction set. KG_ISA names the set; it is the namespace of all that is compiled with its flags,
// so that the linker never mixes code of two sets. KG_REGISTER is the width of its registers in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define KG_INLINE inline __attribute__((always_inline))
#define KG_LAMBDA __attribute__((always_inline))

namespace KG_ISA {

template <class T, int Bytes> struct Types {
  typedef T Vector __attribute__((vector_size(Bytes)));
  typedef std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> Bits __attribute__((vector_size(Bytes)));
};
template <class T, int Bytes> using Vector = typename Types<T, Bytes>::Vector;

// a * b + c with one rounding where the instruction set has it. The compiler never contracts expressions by itself
// (-ffp-contract=off), so that every instance of a template gives the same numbers.
#define KG_FMA(T, BYTES, VALUE) \
  KG_INLINE Vector<T, BYTES> fma(Vector<T, BYTES> a, Vector<T, BYTES> b, Vector<T, BYTES> c) { return VALUE; }
#if defined(__FMA__)
constexpr bool HAS_FMA = true;
KG_FMA(float, 16, _mm_fmadd_ps(a, b, c))
KG_FMA(double, 16, _mm_fmadd_pd(a, b, c))
KG_FMA(float, 32, _mm256_fmadd_ps(a, b, c))
KG_FMA(double, 32, _mm256_fmadd_pd(a, b, c))
#elif defined(__aarch64__)
constexpr bool HAS_FMA = true;
KG_FMA(float, 16, vfmaq_f32(c, a, b))
KG_FMA(double, 16, vfmaq_f64(c, a, b))
#else
constexpr bool HAS_FMA = false;
KG_FMA(float, 16, a * b + c)
KG_FMA(double, 16, a * b + c)
#endif
#if defined(__AVX512F__)
KG_FMA(float, 64, _mm512_fmadd_ps(a, b, c))
KG_FMA(double, 64, _mm512_fmadd_pd(a, b, c))
#endif
KG_INLINE float fma(float a, float b, float c) { return HAS_FMA ? __builtin_fmaf(a, b, c) : a * b + c; }
KG_INLINE double fma(double a, double b, double c) { return HAS_FMA ? __builtin_fma(a, b, c) : a * b + c; }

// `Units` * 32 bytes of numbers: one node's share of a tile. A row of no units is one number.
template <class T_, int Units> struct Row {
  using T = T_;
  static constexpr int bytes = 32 * Units, width = bytes / int(sizeof(T));
  static constexpr int reg = bytes % KG_REGISTER ? 32 : KG_REGISTER, count = bytes / reg, lanes = width / count;
  using V = Vector<T, reg>;
  using Bits = typename Types<T, reg>::Bits;
  V v[count];
};
template <class T_> struct Row<T_, 0> {
  using T = T_;
  using V = T;
  static constexpr int bytes = sizeof(T), width = 1, count = 1, lanes = 1;
  V v[1];
};

#define KG_EACH _Pragma("GCC unroll 8") for (int k = 0; k < R::count; ++k)

template <class R> KG_INLINE R splat(typename R::T x) {
  R r;
  KG_EACH r.v[k] = x - typename R::V{};
  return r;
}
#define KG_OPERATOR(OP) \
  template <class T, int U> KG_INLINE Row<T, U> operator OP(Row<T, U> a, const Row<T, U>& b) { \
    using R = Row<T, U>; \
    KG_EACH a.v[k] = a.v[k] OP b.v[k]; \
    return a; \
  }
KG_OPERATOR(+)
KG_OPERATOR(-)
KG_OPERATOR(*)
template <class T, int U> KG_INLINE Row<T, U> operator-(Row<T, U> a) {
  using R = Row<T, U>;
  KG_EACH a.v[k] = -a.v[k];
  return a;
}
template <class T, int U> KG_INLINE Row<T, U> fma(const Row<T, U>& a, const Row<T, U>& b, Row<T, U> c) {
  using R = Row<T, U>;
  KG_EACH c.v[k] = fma(a.v[k], b.v[k], c.v[k]);
  return c;
}

// Rows anywhere in memory, and the first `count` numbers of one.
template <class R> KG_INLINE R load(const typename R::T* from) {
  R r;
  KG_EACH __builtin_memcpy(&r.v[k], from + k * R::lanes, sizeof(r.v[k]));
  return r;
}
template <class R> KG_INLINE void store(typename R::T* to, const R& r) {
  KG_EACH __builtin_memcpy(to + k * R::lanes, &r.v[k], sizeof(r.v[k]));
}
template <class R> KG_INLINE R load(const typename R::T* from, int64_t count) {
  R r = splat<R>(0);
  __builtin_memcpy(&r, from, count * sizeof(typename R::T));
  return r;
}

// Stores that bypass the caches, for what is not read soon; `settle` makes them visible to other threads.
template <class R> KG_INLINE void stream(R* target, const R& x) {
  KG_EACH {
#if defined(__x86_64__)
    if constexpr (R::reg == 16) _mm_stream_si128(reinterpret_cast<__m128i*>(&target->v[k]), (__m128i)x.v[k]);
#if defined(__AVX2__)
    if constexpr (R::reg == 32) _mm256_stream_si256(reinterpret_cast<__m256i*>(&target->v[k]), (__m256i)x.v[k]);
#endif
#if defined(__AVX512F__)
    if constexpr (R::reg == 64) _mm512_stream_si512(reinterpret_cast<__m512i*>(&target->v[k]), (__m512i)x.v[k]);
#endif
#else
    target->v[k] = x.v[k];
#endif
  }
}
KG_INLINE void settle() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

// Prefetches `count` rows: into all caches, or (Once) for a single use.
template <bool Once = false, class R> KG_INLINE void prefetch(const R* rows, int count = 1) {
  for (int offset = 0; offset < count * R::bytes; offset += 64)
    __builtin_prefetch(reinterpret_cast<const char*>(rows) + offset, 0, Once ? 0 : 3);
}

// Calls f(first column, row of so many columns) for all columns below `count`: wide rows first, single numbers last.
template <class T, class F> KG_INLINE void over_columns(int64_t count, const F& f) {
  int64_t c = 0;
  for (; c + Row<T, 4>::width <= count; c += Row<T, 4>::width) f(c, Row<T, 4>{});
  for (; c + Row<T, 2>::width <= count; c += Row<T, 2>::width) f(c, Row<T, 2>{});
  for (; c + Row<T, 1>::width <= count; c += Row<T, 1>::width) f(c, Row<T, 1>{});
  for (; c < count; ++c) f(c, Row<T, 0>{});
}

// The registers of a row added up, and sum_k a_k b_k over the registers of two rows added to `sum`.
template <class R> KG_INLINE typename R::V folded(const R& r) {
  typename R::V sum = r.v[0];
  for (int k = 1; k < R::count; ++k) sum += r.v[k];
  return sum;
}
template <class R> KG_INLINE typename R::V add_products(const R& a, const R& b, typename R::V sum) {
  KG_EACH sum = fma(a.v[k], b.v[k], sum);
  return sum;
}

// Halves of a vector added up until 16 bytes are left.
template <class V, size_t... I> KG_INLINE auto to_16_bytes(V v, std::index_sequence<I...>);
template <class V> KG_INLINE auto to_16_bytes(V v) {
  if constexpr (sizeof(V) == 16) return v;
  else return to_16_bytes(v, std::make_index_sequence<sizeof(V) / sizeof(v[0]) / 2>{});
}
template <class V, size_t... I> KG_INLINE auto to_16_bytes(V v, std::index_sequence<I...>) {
  return to_16_bytes(__builtin_shufflevector(v, v, I...) + __builtin_shufflevector(v, v, (I + sizeof...(I))...));
}

// The sum of the lanes.
template <class V> KG_INLINE auto total(V v) {
  const auto s = to_16_bytes(v);
  if constexpr (sizeof(s[0]) == 4) return (s[0] + s[2]) + (s[1] + s[3]);
  else return s[0] + s[1];
}

// Two vectors as one: groups of `Size` lanes, in turn from the one and the other, that add up to the same totals.
template <int Size, class V, size_t... I> KG_INLINE V paired(V a, V b, std::index_sequence<I...>) {
  constexpr size_t n = sizeof...(I), block = 16 / sizeof(a[0]), half = block / 2;
  // Lane I of 16 bytes takes lane `low` of a or b (which are counted on from a's), plus the one half a block further on.
#define KG_LOW (I / block * block + (Size == 1 ? I % block / 2 : I % 2) + (I / Size % 2) * n)
  return __builtin_shufflevector(a, b, KG_LOW...) + __builtin_shufflevector(a, b, (KG_LOW + half)...);
#undef KG_LOW
}
template <int Size, class V> KG_INLINE V paired(V a, V b) {
  return paired<Size>(a, b, std::make_index_sequence<sizeof(V) / sizeof(a[0])>{});
}

// sums[0..3] += the totals of four vectors, with less work than four totals.
template <class T, class V> KG_INLINE void add_four_totals(T* sums, V a, V b, V c, V d) {
  typedef T Unaligned __attribute__((vector_size(16), aligned(sizeof(T))));
  Unaligned* target = reinterpret_cast<Unaligned*>(sums);
  if constexpr (sizeof(T) == 4) {
    target[0] += to_16_bytes(paired<2>(paired<1>(a, b), paired<1>(c, d)));
  } else {
    target[0] += to_16_bytes(paired<1>(a, b));
    target[1] += to_16_bytes(paired<1>(c, d));
  }
}

// sum_c a_c b_c
template <class T> KG_INLINE T dot(const T* a, const T* b, int64_t count) {
  using R = Row<T, 1>;
  typename R::V sums{};
  int64_t c = 0;
  for (; c + R::width <= count; c += R::width) sums = add_products(load<R>(a + c), load<R>(b + c), sums);
  T sum = total(sums);
  for (; c < count; ++c) sum = fma(a[c], b[c], sum);
  return sum;
}

}  // namespace KG_ISA
