// The C interface: structs of pointers and sizes that Python fills in; kernels/library.py mirrors them.
//
// Arrays of numbers are float, or double where `is_double`, contiguous, of the shapes named here; n is the number of nodes.
// Pointers that a call does not need are null. `layout` is the block that layout.h reads.
#pragma once

#include <cstdint>
#define KG_EXPORT extern "C" __attribute__((visibility("default")))

extern "C" {

// dx_i/dt = source_i + strength * interaction_i by a Runge-Kutta method with fixed steps (flow.h, tile.h).
struct FlowJob {
  const int64_t* layout;
  const double* table;  // [stages, stages] Runge-Kutta table, multiplied by the step
  double strength;
  int64_t channels, steps, stages, segment;  // steps between checkpoints; `steps` keeps everything
  int32_t is_double, linear, only_slope, threads;  // only_slope: `out` is dx/dt at x, of one step of euler
  const void *a, *x, *source;                // [entries], [n, channels], [n, channels]
  void *out, *tape;                          // [n, channels]; what the gradient needs, or null
  const void* grad;                          // [n, channels] gradient of `out`; null forward. The rest are results.
  void *grad_a, *grad_x, *grad_source;
  double* grad_strength;
  void* scratch;  // as many bytes as flow_scratch says
};

// out = A dense, A^T dense, or <left_i, dense_j> for every entry (sparse.h).
struct SparseJob {
  const int64_t* layout;
  int64_t channels;
  int32_t is_double, transposed, threads, unused;
  const void *values, *left, *dense;  // [entries], [rows, channels], [columns, channels]
  void* out;
};

// a_ij = mean over heads of the row softmax of <k_i, q_j> / sqrt(width) (attention.h).
struct AttentionJob {
  const int64_t* layout;
  int64_t heads, width;
  int32_t is_double, threads;
  const void *keys, *queries, *weight;  // [n, heads * width] twice, [entries]
  void *a, *shares;                     // [entries], [heads, entries]
  const void* grad_a;
  void *grad_keys, *grad_queries, *grad_weight, *scratch;  // scratch: [heads, entries]
};

enum { MEAN_FIELD, SPARSE, DENSE };

// Oscillators in time (oscillators.h): `tiles` rows of L numbers (64 bytes, and aligned to as many), the last one padded.
struct OscillatorsJob {
  int64_t start, steps, stages, delay;  // first step, how many; the delay is in steps
  int64_t tiles, block, blocks;         // `block` tiles are summed up and handed to a thread at once
  int64_t kept, summed, entries;        // stages whose features, whose sums are kept; entries of the sparse network
  double cosine, sine;                  // K cos(lag), K sin(lag)
  double step, kick, inertia, shift;    // kick: standard deviation of what noise adds in a step
  int32_t is_double, kind, threads, unused;
  const double *reach, *weights;  // [stages]
  void* scale;                    // [tiles] rows of factors, or null
  const int64_t* rowptr;          // [tiles * L + 1]
  const int32_t* place;           // [entries] where in a stage's features each neighbour's sine stands
  const void *weight, *matrix;    // [entries] or null where all are one; [tiles * L, tiles] rows
  const void* noise;              // [steps, tiles] rows of normal numbers, or null
  void *phase, *frequency, *slope, *velocity, *stage_velocity, *velocity_slope;  // [tiles] rows each
  void *features, *live;  // [kept, tiles, 2] rows of sines and cosines; one row: 1 where the last tile has an oscillator
  double *sums, *turns;   // [summed, blocks, 2] sums of sines and cosines; [tiles * L]
};

}
