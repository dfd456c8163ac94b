// Edge attention without temporaries per edge, head and channel.
//
//   score_ij^h = <k_i^h, q_j^h> / sqrt(d_k),   p_ij^h = w_ij exp(score_ij^h) / (sum over row i),   a_ij = mean_h p_ij^h
//
// An edge of weight zero is absent: the maximum that exponents are taken relative to is over w > 0, so that an absent edge
// cannot push the others into underflow. With g = dL/da / heads, the adjoint is
//
//   dL/dscore_ij^h = p_ij^h (g_ij - sum_l p_il^h g_il),   dL/dw_ij = (sum_h dL/dscore_ij^h) / w_ij
#pragma once

#include "elementary.h"
#include "sparse.h"

namespace KG_ISA {

template <class T> class Attention {
 public:
  explicit Attention(const AttentionJob& job) : job(job), layout(job.layout) {}

  void forward() const {
    const Csr& m = layout.by_row;
    parallel(threads, m.chunks, [&](int64_t chunk, int) {
      const int64_t lo = m.bounds[chunk], hi = m.bounds[chunk + 1], first = m.rowptr[lo], last = m.rowptr[hi];
      for (int64_t i = lo; i < hi; ++i) score(i);
      for (T* s = shares; s < shares + heads * entries; s += entries) {
        for (int64_t i = lo; i < hi; ++i) shift(m.rowptr[i], m.rowptr[i + 1], s);
        exponentials(s + first, last - first);
        for (int64_t i = lo; i < hi; ++i) normalise(m.rowptr[i], m.rowptr[i + 1], s);
      }
      for (int64_t e = first; e < last; ++e) {
        T sum = 0;
        for (int64_t h = 0; h < heads; ++h) sum += shares[h * entries + e];
        a[e] = mean * sum;
      }
    });
  }

  void backward() const {
    const Csr &rows = layout.by_row, &columns = layout.by_column;
    parallel(threads, rows.chunks, [&](int64_t chunk, int) {
      for (int64_t i = rows.bounds[chunk]; i < rows.bounds[chunk + 1]; ++i) {
        score_gradients(rows.rowptr[i], rows.rowptr[i + 1]);
        sum_heads(rows, i, queries, grad_keys);
      }
    });
    parallel(threads, columns.chunks, [&](int64_t chunk, int) {
      for (int64_t j = columns.bounds[chunk]; j < columns.bounds[chunk + 1]; ++j)
        sum_heads(columns, j, keys, grad_queries);
    });
  }

 private:
  const AttentionJob& job;
  const Layout layout;
  const int64_t heads = job.heads, width = job.width, all = heads * width, entries = layout.entries;
  const int threads = worth_sharing(job.threads, entries * all);
  const T scale = T(1 / __builtin_sqrt(double(width))), mean = T(1.0 / double(heads));
  const T *keys = static_cast<const T*>(job.keys), *queries = static_cast<const T*>(job.queries);
  const T *weight = static_cast<const T*>(job.weight), *grad_a = static_cast<const T*>(job.grad_a);
  T *a = static_cast<T*>(job.a), *shares = static_cast<T*>(job.shares);  // [entries], [heads, entries]
  T *grad_keys = static_cast<T*>(job.grad_keys), *grad_queries = static_cast<T*>(job.grad_queries);
  T *grad_weight = static_cast<T*>(job.grad_weight), *grad_score = static_cast<T*>(job.scratch);

  void score(int64_t i) const {
    const Csr& m = layout.by_row;
    for (int64_t e = m.rowptr[i]; e < m.rowptr[i + 1]; ++e) {
      const T *key = keys + i * all, *query = queries + m.col[e] * all, *soon = queries + m.col[e + AHEAD] * all;
      for (int64_t h = 0, c = 0; h < heads; ++h, c += width) {
        __builtin_prefetch(soon + c);
        shares[h * entries + e] = scale * dot(key + c, query + c, width);
      }
    }
  }

  // Scores of a row minus the largest of those present; NaN becomes the largest, so that it reaches every share.
  void shift(int64_t first, int64_t last, T* s) const {
    T top = -__builtin_inf();
    for (int64_t e = first; e < last; ++e)
      if (weight[e] > 0 && !(s[e] <= top)) top = s[e];
    for (int64_t e = first; e < last; ++e) s[e] -= top;
  }

  static void exponentials(T* s, int64_t count) {
    using R = Row<T, 2>;
    for (; count >= R::width; s += R::width, count -= R::width) store(s, exponential(load<R>(s)));
    const R rest = exponential(load<R>(s, count));
    __builtin_memcpy(s, &rest, count * sizeof(T));
  }

  // All edges absent: the row attends to nothing. A product with 1 / sum would overflow for tiny weights.
  void normalise(int64_t first, int64_t last, T* s) const {
    T sum = 0;
    for (int64_t e = first; e < last; ++e) sum += s[e] = weight[e] > 0 ? weight[e] * s[e] : T(0);
    if (sum == 0) sum = 1;
    for (int64_t e = first; e < last; ++e) s[e] /= sum;
  }

  void score_gradients(int64_t first, int64_t last) const {
    for (int64_t e = first; e < last; ++e) grad_weight[e] = 0;
    for (int64_t h = 0; h < heads; ++h) {
      const T* p = shares + h * entries;
      T average = 0;
      for (int64_t e = first; e < last; ++e) average += p[e] * (mean * grad_a[e]);
      for (int64_t e = first; e < last; ++e) {
        const T gradient = p[e] * (mean * grad_a[e] - average);
        grad_score[h * entries + e] = scale * gradient;
        grad_weight[e] += gradient;
      }
    }
    for (int64_t e = first; e < last; ++e) grad_weight[e] = weight[e] > 0 ? grad_weight[e] / weight[e] : T(0);
  }

  // out_i = for every head, the sum over the entries of row i of their score's gradient times the neighbour's row.
  void sum_heads(const Csr& m, int64_t i, const T* rows, T* out) const {
    for (int64_t h = 0, c = 0; h < heads; ++h, c += width)
      sum_neighbours(m, i, grad_score + h * entries, rows + c, all, out + i * all + c, width);
  }
};

}  // namespace KG_ISA
