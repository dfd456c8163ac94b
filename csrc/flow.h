// A whole fixed-step integration and its exact discrete adjoint.
//
// The columns of the state never meet (except in the gradient by the couplings), so they are cut into tiles, one to three
// units of 32 bytes of every row, and a tile is integrated to the end before the next begins: it stays in cache while
// neighbours are gathered, and its rows fit registers. Threads take tiles; where there are fewer tiles than threads, they
// share the rows of every stage.
//
// The tape holds the tapes of all tiles. With checkpoints (segment < steps) it holds the first state of each segment only,
// and the backward pass recomputes the rest.
#pragma once

#include "api.h"
#include "tile.h"

namespace KG_ISA {

constexpr int64_t SHARED_STAGE = 200000;  // entries and rows of a stage from which on sharing its rows pays
constexpr int64_t CHUNKS = 64;            // equal parts of the entries, for threads to take

// How `units` columns of units are cut into tiles, wide ones first. Two threads (or four) find the same work: widths come
// in pairs but for the rest. A row of three units takes less time than a row of two and another of one.
struct Cut {
  int64_t triples, doubles, singles;
  explicit Cut(int64_t units) {
    const int64_t half = units / 2, triple = half > 1 ? half % 2 : 0;
    triples = 2 * triple;
    doubles = 2 * ((half - 3 * triple) / 2);
    singles = units - 3 * triples - 2 * doubles;
  }
  int64_t tiles() const { return triples + doubles + singles; }
  int64_t width(int64_t tile) const { return tile < triples ? 3 : tile < triples + doubles ? 2 : 1; }
  int64_t first(int64_t tile) const { return tile ? first(tile - 1) + width(tile - 1) : 0; }  // unit
};

template <class T> class Flow {
 public:
  explicit Flow(const FlowJob& job) : job(job), layout(job.layout) {
    // Time counts in steps, phases in half turns (tile.h); a single slope has the caller's units.
    for (int64_t s = 0; s < job.stages; ++s) step += job.table[(job.stages - 1) * job.stages + s];
    for (int64_t k = 0; k < job.stages * job.stages; ++k) table[k] = T(job.table[k] / step);
    const double state = job.linear || job.only_slope ? 1 : PI, full = step * job.strength;
    strength = T(full), state_unit = T(state), source_unit = T(step / state);
    factor = job.linear ? strength : state_unit;
    a_unit = T(job.linear ? 1 : full / state), t_a_unit = T(job.linear ? 1 : full);
    const int64_t tiles = cut.tiles();
    threads = worth_sharing(job.threads, (entries + n) * units * unit * job.steps * job.stages);
    share_rows = tiles < threads && entries + n > SHARED_STAGE;
    workers = share_rows ? 1 : tiles < threads ? int(tiles) : threads;
    arrange();
  }

  int64_t scratch() const { return used; }
  void forward() const {
    pack(numbers(job.x), 1, !job.linear, states);
    pack(numbers(job.source), source_unit, false, sources);
    scale_couplings(layout.by_row, a_unit, couplings);
    over_tiles([&](const auto& tile, auto* tape, auto* space) { forward_tile(tile, tape, space); });
    unpack(states, state_unit, job.linear || job.only_slope ? nullptr : numbers(job.x), static_cast<T*>(job.out));
  }

  void backward() const {
    pack(numbers(job.grad), 1, false, states);
    scale_couplings(layout.by_column, t_a_unit, t_couplings);
    if (segments > 1) {
      pack(numbers(job.source), source_unit, false, sources);
      scale_couplings(layout.by_row, a_unit, couplings);
    }
    over_tiles([&](const auto& tile, auto* tape, auto* space) { backward_tile(tile, tape, space); });
    unpack(states, 1, nullptr, static_cast<T*>(job.grad_x));
    if (job.grad_source) unpack(grad_sources, T(step), nullptr, static_cast<T*>(job.grad_source));
    sum_dots();
  }

 private:
  using Unit = Row<T, 1>;
  static constexpr int64_t unit = Unit::width;
  const FlowJob& job;
  const Layout layout;
  const int64_t n = layout.by_row.rows, entries = layout.entries, segments = (job.steps + job.segment - 1) / job.segment;
  const int64_t units = (job.channels + unit - 1) / unit, size = n * units * unit;
  const Cut cut = Cut(units);
  double step = 0;
  T table[64], strength, factor, state_unit, source_unit, a_unit, t_a_unit;
  int threads, workers;
  bool share_rows;
  int64_t used = 0, space_size;
  T *states, *sources, *couplings, *t_couplings, *grad_sources, *dots, *spaces;

  static const T* numbers(const void* data) { return static_cast<const T*>(data); }

  // The next `count` numbers of the scratch memory, from a cache line on.
  T* take(int64_t count) {
    const uintptr_t start = reinterpret_cast<uintptr_t>(job.scratch) + used;
    used += (count * int64_t(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(start);
  }

  // A worker's space has, forward, features twice and slopes; backward, features, weighted kappas twice and mu; with
  // checkpoints also the tape of a segment, which is recomputed where the former are.
  void arrange() {
    const bool back = job.grad, again = back && segments > 1;
    const int64_t planes = job.linear ? 1 : 2, line = 64 / sizeof(T);
    const int64_t rows = (back ? 3 : 2) * planes + job.stages - 1 + (again ? job.segment * job.stages * planes : 0);
    states = take(size);
    sources = take(!back || again ? size : 0);
    couplings = take(!back || again ? entries : 0);
    t_couplings = take(back ? entries : 0);
    grad_sources = take(back ? size : 0);
    dots = take(back ? cut.tiles() * (entries + n) : 0);
    space_size = (rows * n * cut.width(0) * unit + line - 1) / line * line;
    spaces = take(workers * space_size);
  }

  // tiles = scale * x, or x in half turns.
  void pack(const T* x, T scale, bool phases, T* tiles) const {
    over_units([=](int64_t place, int64_t count, int64_t target, int64_t soon) KG_LAMBDA {
      __builtin_prefetch(x + soon);
      const Unit value = count == unit ? load<Unit>(x + place) : load<Unit>(x + place, count);
      *reinterpret_cast<Unit*>(tiles + target) = phases ? half_turns(value) : splat<Unit>(scale) * value;
    });
  }

  // out = scale * tiles. Of phases that began as `start` (or null): where they began plus how far they went, so that whole
  // turns count and what did not move keeps its bits.
  void unpack(const T* tiles, T scale, const T* start, T* out) const {
    over_units([=](int64_t place, int64_t count, int64_t source, int64_t soon) KG_LAMBDA {
      __builtin_prefetch(out + soon, 1);
      Unit value = *reinterpret_cast<const Unit*>(tiles + source);
      if (start) {
        __builtin_prefetch(start + soon);
        const Unit began = count == unit ? load<Unit>(start + place) : load<Unit>(start + place, count);
        value = fma(splat<Unit>(scale), value - half_turns(began), began);
      } else {
        value = splat<Unit>(scale) * value;
      }
      if (count == unit) store(out + place, value);
      else __builtin_memcpy(out + place, &value, count * sizeof(T));
    });
  }

  // Calls f(where a unit begins in the caller's rows, its columns, where it begins in tiles, where the same unit of a later
  // row begins) for all units of all rows, whole rows at a time: each cache line of the caller is touched once.
  template <class F> void over_units(const F& f) const {
    const int64_t n = this->n, d = job.channels, *bounds = layout.by_row.bounds;
    const int32_t* order = layout.order;
    parallel(threads, layout.by_row.chunks, [=, cut = cut](int64_t chunk, int) {
      for (int64_t i = bounds[chunk], end = bounds[chunk + 1]; i < end; ++i) {
        const int64_t row = order[i] * d, later = (order[i + 4 < end ? i + 4 : i] - order[i]) * d;
        int64_t place = row, first = 0;  // unit of the tile
        for (int64_t tile = 0; tile < cut.tiles(); ++tile) {
          const int64_t width = cut.width(tile), target = (n * first + i * width) * unit;
          for (int64_t u = 0; u < width; ++u, place += unit) {
            const int64_t rest = row + d - place;
            f(place, rest < unit ? rest : unit, target + u * unit, place + later);
          }
          first += width;
        }
      }
    });
  }

  void scale_couplings(const Csr& matrix, T scale, T* values) const {
    const T* a = numbers(job.a);
    parallel(threads, CHUNKS, [=](int64_t chunk, int) {
      for (int64_t e = entries * chunk / CHUNKS; e < entries * (chunk + 1) / CHUNKS; ++e)
        values[e] = scale * a[matrix.place[e]];
    });
  }

  // Adds up what the tiles found, in their order, for the gradients by couplings and strength.
  void sum_dots() const {
    double products[CHUNKS], total = 0;
    const auto sum = [&](int64_t place) {
      T value = 0;
      for (int64_t tile = 0; tile < cut.tiles(); ++tile) value += dots[tile * (entries + n) + place];
      return value;
    };
    parallel(threads, CHUNKS, [&](int64_t chunk, int) {
      double product = 0;
      for (int64_t e = entries * chunk / CHUNKS; e < entries * (chunk + 1) / CHUNKS; ++e) {
        const int64_t place = layout.by_column.place[e];
        const T value = sum(e);
        static_cast<T*>(job.grad_a)[place] = strength * value;
        product += double(numbers(job.a)[place]) * double(value);
      }
      for (int64_t i = n * chunk / CHUNKS; job.linear && i < n * (chunk + 1) / CHUNKS; ++i) product -= double(sum(entries + i));
      products[chunk] = product;
    });
    for (double product : products) total += product;
    *job.grad_strength = step * total;
  }

  // Calls run(tile, its tape, the space of the worker) for all tiles; the tape has `kept` rows per node.
  template <class F> void over_tiles(const F& run) const {
    parallel(workers, cut.tiles(), [&](int64_t number, int worker) {
      const int64_t width = cut.width(number);
      const auto with = width == 3 ? &Flow::with_width<3, F> : width == 2 ? &Flow::with_width<2, F> : &Flow::with_width<1, F>;
      (this->*with)(number, spaces + worker * space_size, run);
    });
  }
  template <int Units, class F> void with_width(int64_t number, T* space, const F& run) const {
    if (job.linear && job.stages == 1) return with_tile<Tile<T, Units, true, true>>(number, space, run);
    if (job.linear) return with_tile<Tile<T, Units, true, false>>(number, space, run);
    if (job.stages == 1) return with_tile<Tile<T, Units, false, true>>(number, space, run);
    with_tile<Tile<T, Units, false, false>>(number, space, run);
  }
  template <class Tile, class F> void with_tile(int64_t number, T* space, const F& run) const {
    using R = typename Tile::R;
    const int64_t kept = segments == 1 ? job.steps * job.stages * Tile::planes : segments;
    const auto own = [&](T* array, int64_t rows = 1) {  // this tile's part of an array of so many rows per node
      return array ? reinterpret_cast<R*>(array + rows * n * cut.first(number) * unit) : nullptr;
    };
    T* own_dots = dots + number * (entries + n);
    run(Tile{layout.by_row, layout.by_column, couplings, t_couplings, table, n, job.stages, strength, factor,
             bool(job.only_slope), share_rows ? threads : 1, own(sources), own(states), own(grad_sources), own_dots,
             own_dots + entries}, own(static_cast<T*>(job.tape), kept), reinterpret_cast<R*>(space));
  }
  int64_t steps_of(int64_t k) const { return k < segments - 1 ? job.segment : job.steps - k * job.segment; }

  template <class Tile, class R> void forward_tile(const Tile& tile, R* tape, R* space) const {
    for (int64_t segment = 0; segment < segments; ++segment) {
      if (tape && segments > 1) __builtin_memcpy(tape + segment * n, tile.state, n * sizeof(R));
      tile.steps_forward(steps_of(segment), tile.state, space, segments > 1 ? nullptr : tape);
    }
  }

  template <class Tile, class R> void backward_tile(const Tile& tile, R* tape, R* space) const {
    __builtin_memset(tile.dots, 0, (entries + n) * sizeof(T));
    __builtin_memset(tile.grad_source, 0, n * sizeof(R));
    if (segments == 1) return tile.steps_backward(job.steps, tape, space);
    R* again = space + (3 * Tile::planes + job.stages - 1) * n;
    for (int64_t segment = segments - 1; segment >= 0; --segment) {
      __builtin_memcpy(space, tape + segment * n, n * sizeof(R));
      tile.steps_forward(steps_of(segment), space, space + n, again);
      tile.steps_backward(steps_of(segment), again, space);
    }
  }
};

}  // namespace KG_ISA
