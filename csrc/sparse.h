// Products of a sparse matrix whose values change and whose pattern stays.
//
//   product          out = A dense            out_i  = sum_j a_ij dense_j        (of A^T where `transposed`)
//   sampled product  out_ij = <left_i, dense_j> for every stored entry: the gradient of the product by the values
#pragma once

#include "api.h"
#include "layout.h"
#include "threads.h"
#include "vector.h"

namespace KG_ISA {

// out[c] = sum over the entries of row i of their value times the neighbour's rows[col * pitch + c], for c < count.
template <class T>
KG_INLINE void sum_neighbours(const Csr& m, int64_t i, const T* values, const T* rows, int64_t pitch, T* out, int64_t count) {
  const int64_t begin = m.rowptr[i], end = m.rowptr[i + 1];
  const int32_t *col = m.col, *place = m.place;
  over_columns<T>(count, [=](int64_t c, auto part) KG_LAMBDA {
    using R = decltype(part);
    R sum = splat<R>(0);
    for (int64_t e = begin; e < end; ++e) {
      prefetch(reinterpret_cast<const R*>(rows + col[e + AHEAD] * pitch + c));
      sum = fma(splat<R>(values[place[e]]), load<R>(rows + col[e] * pitch + c), sum);
    }
    store(out + c, sum);
  });
}

template <class T> void sparse_product(const SparseJob& job) {
  const Layout layout(job.layout);
  const Csr& m = job.transposed ? layout.by_column : layout.by_row;
  const int64_t d = job.channels;
  const T *values = static_cast<const T*>(job.values), *dense = static_cast<const T*>(job.dense);
  parallel(worth_sharing(job.threads, layout.entries * d), m.chunks, [&](int64_t chunk, int) {
    for (int64_t i = m.bounds[chunk]; i < m.bounds[chunk + 1]; ++i)
      sum_neighbours(m, i, values, dense, d, static_cast<T*>(job.out) + i * d, d);
  });
}

template <class T> void sampled_product(const SparseJob& job) {
  const Layout layout(job.layout);
  const Csr& m = layout.by_row;
  const int64_t d = job.channels;
  const T *left = static_cast<const T*>(job.left), *dense = static_cast<const T*>(job.dense);
  parallel(worth_sharing(job.threads, layout.entries * d), m.chunks, [&](int64_t chunk, int) {
    for (int64_t i = m.bounds[chunk]; i < m.bounds[chunk + 1]; ++i)
      for (int64_t e = m.rowptr[i]; e < m.rowptr[i + 1]; ++e)
        static_cast<T*>(job.out)[m.place[e]] = dot(left + i * d, dense + m.col[e] * d, d);
  });
}

}  // namespace KG_ISA
