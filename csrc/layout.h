// A sparse pattern as the kernels read it: one block of memory that kernels/pattern_layout.py builds once per graph.
#pragma once

#include <cstdint>

namespace KG_ISA {

constexpr int AHEAD = 8;  // entries between the prefetch of a neighbour's row and its use

// A CSR matrix without values. `col` is readable for AHEAD entries beyond the last.
struct Csr {
  const int64_t* rowptr;  // [rows + 1]
  const int32_t* col;     // [entries + AHEAD]
  const int32_t* place;   // [entries] where the value of each entry stands in the caller's vectors
  const int64_t* bounds;  // [chunks + 1] ranges of rows of about the same work
  int64_t rows, chunks;
};

struct Layout {
  int64_t entries;
  Csr by_row, by_column;  // row = target, entries = sources; and the transpose
  const int32_t* order;   // [rows] the caller's row of each row here
  explicit Layout(const int64_t* block) {
    const int64_t rows = block[0], columns = block[1], row_chunks = block[3], column_chunks = block[4];
    entries = block[2];
    const int64_t *rowptr = block + 8, *t_rowptr = rowptr + rows + 1, *bounds = t_rowptr + columns + 1;
    const int64_t* t_bounds = bounds + row_chunks + 1;
    const int32_t* narrow = reinterpret_cast<const int32_t*>(t_bounds + column_chunks + 1);
    by_row = {rowptr, narrow, narrow + entries + AHEAD, bounds, rows, row_chunks};
    narrow += 2 * entries + AHEAD;
    by_column = {t_rowptr, narrow, narrow + entries + AHEAD, t_bounds, columns, column_chunks};
    order = narrow + 2 * entries + AHEAD;
  }
};

}  // namespace KG_ISA
