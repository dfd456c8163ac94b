// Runge-Kutta steps and their adjoints on one tile: some columns of all nodes, a row of registers per node.
//
// Two fields are known, both of the form dx_i/dt = source_i + strength * interaction_i:
//
//   kuramoto  interaction_i = sum_j a_ij sin(x_j - x_i) = c_i (A s)_i - s_i (A c)_i    with s = sin x, c = cos x
//   linear    interaction_i = sum_j a_ij x_j - x_i
//
// Neighbours read a node's features: (s, c) or x. A stage is one pass over the rows: it gathers them, forms the slope, the
// state of the next stage and that state's features. The adjoint of a stage is one pass over the rows of the transpose.
// With kappa = dL/dslope:
//
//   kuramoto  dL/dx_j  += strength (c_j (A^T c kappa)_j + s_j (A^T s kappa)_j - kappa_j g_j),  g = s (A s) + c (A c)
//             dL/da_ij += strength <kappa_i, sin(x_j - x_i)> = strength (<(c kappa)_i, s_j> - <(s kappa)_i, c_j>)
//   linear    dL/dx_j  += strength ((A^T kappa)_j - kappa_j),   dL/da_ij += strength <kappa_i, x_j>
//
// Units save multiplications. Time counts in steps. States of kuramoto are in half turns, x / pi, so that whole ones come
// off exactly; gradients are by x itself. The couplings of kuramoto are multiplied by the strength beforehand, in units of
// the state forward and of x backward; `factor` is the second by the first. Couplings of the linear field are as given,
// and `factor` is the strength.
//
// Row s of `table` [S, S] holds the weights of the slopes k_0..k_s in the state after stage s; the last row gives the next
// step's state. Methods of one stage (OneStage) have the weight 1 and skip all that.
//
// The tape of m passes is [m, n] states, at the beginning of each stage, and then, for kuramoto, [m, n] g.
#pragma once

#include "elementary.h"
#include "layout.h"
#include "threads.h"

namespace KG_ISA {

constexpr int ROWS_AHEAD = 16;  // rows between the prefetch of the tape and its use

template <class T_, int Units, bool Linear, bool OneStage> struct Tile {
  using T = T_;
  using R = Row<T, Units>;
  using V = typename R::V;
  static constexpr int planes = Linear ? 1 : 2;  // of features
  Csr by_row, by_column;
  const T *a, *t_a, *table;  // couplings in the order of by_row, of by_column
  int64_t n, stages;
  T strength, factor;
  bool only_slope;       // the result is the slope at x, not the state after a step
  int row_threads;       // that share the rows of a pass
  const R* source;       // [n]
  R *state, *grad_source;  // [n] forward x, backward its gradient lambda; in place
  T *dots, *own;         // [entries] gradients by the couplings without factors; linear: [n] <kappa_i, x_i>

  // x after some steps, in place; fills the tape unless it is null. `space` has features twice, and slopes [stages - 1, n].
  void steps_forward(int64_t steps, R* x, R* space, R* tape) const {
    for (int64_t i = 0; i < n; ++i) {
      if (tape) stream(tape + i, x[i]);
      store_features(space, i, x[i]);
    }
    for (int64_t pass = 0; pass < steps * stages; ++pass)
      over_rows(by_row, [&](int64_t lo, int64_t hi) { forward_rows(pass, steps * stages, x, space, tape, lo, hi); });
  }

  // Takes lambda back over some steps in place, and adds to the other gradients. `space` has features, weighted kappas
  // ((c kappa, s kappa) or kappa) twice, and mu [stages - 1, n]: the gradients by the states of later stages.
  void steps_backward(int64_t steps, const R* tape, R* space) const {
    const int64_t passes = steps * stages;
    for (int64_t j = 0; j < n; ++j)
      store_adjoint(space, space + planes * n, j, tape[(passes - 1) * n + j], slope_gradient(space, stages - 1, state[j], j));
    for (int64_t pass = passes - 1; pass >= 0; --pass)
      over_rows(by_column, [&](int64_t lo, int64_t hi) { backward_rows(pass, passes, tape, space, lo, hi); });
  }

 private:
  template <class F> void over_rows(const Csr& m, const F& f) const {
    if (row_threads <= 1) return f(0, n);
    parallel(row_threads, m.chunks, [&](int64_t chunk, int) { f(m.bounds[chunk], m.bounds[chunk + 1]); });
  }

  static KG_INLINE void store_features(R* features, int64_t i, const R& x) {
    if constexpr (Linear) features[i] = x;
    else sincos_pi(x, features[2 * i], features[2 * i + 1]);
  }

  void forward_rows(int64_t pass, int64_t passes, R* x, R* space, R* tape, int64_t lo, int64_t hi) const {
    // Copies: the compiler cannot know that what is stored leaves the members alone.
    const int64_t n = this->n, stages = OneStage ? 1 : this->stages, stage = pass % stages, *rowptr = by_row.rowptr;
    const int32_t* col = by_row.col;
    const T *a = this->a, *weights = table + stage * stages;
    const R *source = this->source, *seen = space + pass % 2 * planes * n, strength = splat<R>(this->strength);
    R *shown = pass + 1 < passes ? space + (1 - pass % 2) * planes * n : nullptr, *slopes = space + 2 * planes * n;
    R *states = tape ? tape + (pass + 1) * n : nullptr, *gain = tape ? tape + (passes + pass) * n : nullptr;
    const bool only_slope = this->only_slope;
    int64_t end = rowptr[lo];
    for (int64_t i = lo; i < hi; ++i) {
      int64_t e = end;
      end = rowptr[i + 1];
      R sum = splat<R>(0), sum_cos = sum, slope, next;
      for (; e < end; ++e) {
        prefetch(seen + planes * int64_t(col[e + AHEAD]), planes);
        const R coupling = splat<R>(a[e]), *other = seen + planes * int64_t(col[e]);
        sum = fma(coupling, other[0], sum);
        if constexpr (!Linear) sum_cos = fma(coupling, other[1], sum_cos);
      }
      if constexpr (Linear) {
        slope = fma(strength, sum - seen[i], source[i]);
      } else {
        const R sin = seen[2 * i], cos = seen[2 * i + 1];
        if (gain) stream(gain + i, fma(sin, sum, cos * sum_cos));
        slope = fma(cos, sum, fma(-sin, sum_cos, source[i]));
      }
      if constexpr (OneStage) {
        x[i] = next = only_slope ? slope : x[i] + slope;
      } else {
        next = fma(splat<R>(weights[stage]), slope, x[i]);
        for (int64_t j = 0; j < stage; ++j) next = fma(splat<R>(weights[j]), slopes[j * n + i], next);
        if (stage < stages - 1) slopes[stage * n + i] = slope;
        else x[i] = next;
      }
      if (shown) {
        if (states) stream(states + i, next);
        store_features(shown, i, next);
      }
    }
    settle();
  }

  // dL/dslope of a stage: b_stage lambda + sum over later stages r of A[r, stage] mu_r.
  KG_INLINE R slope_gradient(const R* space, int64_t stage, const R& lambda, int64_t j) const {
    if constexpr (OneStage) return lambda;
    const R* mu = space + 3 * planes * n;
    R kappa = splat<R>(table[(stages - 1) * stages + stage]) * lambda;
    for (int64_t r = stage + 1; r < stages; ++r)
      kappa = fma(splat<R>(table[(r - 1) * stages + stage]), mu[(r - 1) * n + j], kappa);
    return kappa;
  }

  static KG_INLINE void store_adjoint(R* features, R* weighted, int64_t j, const R& x, const R& kappa) {
    R sin = x, cos;
    if constexpr (!Linear) sincos_pi(x, sin, cos);
    features[planes * j] = sin;
    weighted[planes * j] = Linear ? kappa : cos * kappa;
    if constexpr (!Linear) features[2 * j + 1] = cos, weighted[2 * j + 1] = sin * kappa;
  }

  // Sums of one row of the transpose: (A^T c kappa, A^T s kappa), or A^T kappa. Adding an entry returns the products whose
  // total is its share of `dots`.
  struct Gathered {
    R sin, cos, by_cos, by_sin;
    KG_INLINE V add(const T* a, const int32_t* col, const R* seen, int64_t e) {
      prefetch(seen + planes * int64_t(col[e + AHEAD]), planes);
      const R coupling = splat<R>(a[e]), *other = seen + planes * int64_t(col[e]), cos_kappa = other[0];
      by_cos = fma(coupling, cos_kappa, by_cos);
      V product = cos_kappa.v[0] * sin.v[0];
#pragma GCC unroll 8
      for (int k = 1; k < R::count; ++k) product = fma(cos_kappa.v[k], sin.v[k], product);
      if constexpr (!Linear) {
        const R sin_kappa = other[1];
        by_sin = fma(coupling, sin_kappa, by_sin);
        product = add_products(-sin_kappa, cos, product);
      }
      return product;
    }
  };

  void backward_rows(int64_t pass, int64_t passes, const R* tape, R* features, int64_t lo, int64_t hi) const {
    const Tile tile = *this;  // A copy, as above.
    const int64_t n = this->n, stages = OneStage ? 1 : this->stages, stage = pass % stages, *rowptr = by_column.rowptr;
    const int64_t side = (passes - 1 - pass) % 2;
    const int32_t* col = by_column.col;
    const T* a = t_a;
    const R *seen = features + (1 + side) * planes * n, *gain = tape + (passes + pass) * n, factor = splat<R>(this->factor);
    const R* before = pass ? tape + (pass - 1) * n : nullptr;
    R *shown = features + (2 - side) * planes * n, *mu = features + 3 * planes * n, *lambdas = state;
    R* grad_source = this->grad_source;
    T *dots = this->dots, *own = this->own;
    int64_t end = rowptr[lo];
    for (int64_t j = lo; j < hi; ++j) {
      if (before) prefetch<true>(before + j + ROWS_AHEAD);
      if constexpr (!Linear) prefetch<true>(gain + j + ROWS_AHEAD);
      int64_t e = end;
      end = rowptr[j + 1];
      Gathered sums{features[planes * j], features[planes * j + planes - 1], splat<R>(0), splat<R>(0)};
      for (; e + 3 < end; e += 4) {
        const V first = sums.add(a, col, seen, e), second = sums.add(a, col, seen, e + 1);
        const V third = sums.add(a, col, seen, e + 2), fourth = sums.add(a, col, seen, e + 3);
        add_four_totals(dots + e, first, second, third, fourth);
      }
      for (; e < end; ++e) dots[e] += total(sums.add(a, col, seen, e));
      // Loaded only now: while neighbours are gathered, all registers are taken.
      R lambda = lambdas[j];
      const R kappa = tile.slope_gradient(features, stage, lambda, j);
      grad_source[j] = grad_source[j] + kappa;
      const bool later = !OneStage && stage > 0;  // The gradient is by the state of a later stage of the step.
      R sum = later || tile.only_slope ? splat<R>(0) : lambda;
      if constexpr (Linear) {
        own[j] += total(folded(kappa * sums.sin));
        sum = fma(factor, sums.by_cos - kappa, sum);
      } else {
        sum = fma(-gain[j], factor * kappa, sum);
        sum = fma(sums.cos, sums.by_cos, fma(sums.sin, sums.by_sin, sum));
      }
      if (later) {
        mu[(stage - 1) * n + j] = sum;
      } else {
        for (int64_t r = 0; !OneStage && r < stages - 1; ++r) sum = sum + mu[r * n + j];
        lambdas[j] = lambda = sum;
      }
      if (before) {
        const R earlier = tile.slope_gradient(features, stage ? stage - 1 : stages - 1, lambda, j);
        store_adjoint(features, shown, j, before[j], earlier);
      }
    }
  }
};

}  // namespace KG_ISA
