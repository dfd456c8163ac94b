// Scalar oscillators in time: one number per node, so threads share the nodes of every stage.
//
//   m x''_i + x'_i = w_i + K scale_i sum_j a_ij sin(x_j(t - delay) - x_i(t) - lag) + noise      (no x'' where m = 0)
//
// A stage is one pass: torque by the addition theorem, slope, next phase, its sine and cosine (its features), and their
// sums over blocks of fixed size; the bits therefore do not depend on the number of threads. Methods are Runge-Kutta
// methods whose stage j starts at x + h reach[j - 1] k_(j - 1).
#pragma once

#include "api.h"
#include "elementary.h"
#include "threads.h"

namespace KG_ISA {

template <class T> class Oscillators {
 public:
  explicit Oscillators(const OscillatorsJob& job) : job(job) {}

  void advance() const {
    parallel_stages(job.threads, job.steps * job.stages, job.blocks, [&](int64_t stage, int64_t block) {
      const Pass p = pass(stage / job.stages, stage % job.stages);
      over_block(block, p.next, [&](int64_t tile) KG_LAMBDA { return next_phase(p, tile); });
    });
  }

  // The features of phase + shift * frequency, as those of stage `start`.
  void begin() const {
    parallel(job.threads, job.blocks, [&](int64_t block, int) {
      over_block(block, job.start, [&](int64_t tile) KG_LAMBDA {
        return fma(splat<R>(T(job.shift)), row(job.frequency)[tile], row(job.phase)[tile]);
      });
    });
  }

  // Brings phases into [-pi, pi] and counts the turns taken off: sines stay exact however long a run is.
  void wrap() const {
    T* phase = static_cast<T*>(job.phase);
    parallel(job.threads, job.blocks, [&](int64_t block, int) {
      for (int64_t i = block * job.block * R::width; i < last_tile(block) * R::width; ++i) {
        const double whole = __builtin_rint(double(phase[i]) / (2 * PI));
        phase[i] = T(double(phase[i]) - whole * (2 * PI));
        job.turns[i] += whole;
      }
    });
  }

 private:
  using R = Row<T, 2>;
  static constexpr int64_t AHEAD = 24;  // neighbours between a prefetch and its use
  const OscillatorsJob& job;

  struct Pass {
    bool first, last;
    R step, weight, reach, sin, cos, kick, per_mass, cosine, sine;
    const R *near, *far, *noise;
    int64_t next;  // stage
  };

  static KG_INLINE R* row(void* numbers) { return static_cast<R*>(numbers); }
  static int64_t wrapped(int64_t slot, int64_t count) { return (slot % count + count) % count; }
  R* features(int64_t slot) const { return row(job.features) + wrapped(slot, job.kept) * 2 * job.tiles; }
  double* sums(int64_t slot) const { return job.sums + wrapped(slot, job.summed) * job.blocks * 2; }
  int64_t last_tile(int64_t block) const { return block + 1 < job.blocks ? (block + 1) * job.block : job.tiles; }

  // Stores the features and sums of stage `slot` for the tiles of a block, whose phases f gives.
  template <class F> KG_INLINE void over_block(int64_t block, int64_t slot, const F& f) const {
    R sum_sin = splat<R>(0), sum_cos = sum_sin, sin, cos, *target = features(slot);
    const R live = *static_cast<const R*>(job.live);
    for (int64_t tile = block * job.block, last = last_tile(block); tile < last; ++tile) {
      sincos(f(tile), sin, cos);
      if (tile == job.tiles - 1) sin = sin * live, cos = cos * live;  // Only some of the last tile are oscillators.
      target[2 * tile] = sin, target[2 * tile + 1] = cos;
      sum_sin = sum_sin + sin, sum_cos = sum_cos + cos;
    }
    sums(slot)[2 * block] = double(total(folded(sum_sin)));
    sums(slot)[2 * block + 1] = double(total(folded(sum_cos)));
  }

  Pass pass(int64_t number, int64_t stage) const {
    const int64_t now = (job.start + number) * job.stages + stage, then = now - job.delay * job.stages;
    const double mass = job.inertia > 0 ? job.inertia : 1, *past = sums(then);
    double sin = 0, cos = 0;
    for (int64_t block = 0; job.kind == MEAN_FIELD && block < job.blocks; ++block)
      sin += past[2 * block], cos += past[2 * block + 1];
    const R* noise = job.noise ? static_cast<const R*>(job.noise) + number * job.tiles : nullptr;
    const auto all = [](double x) { return splat<R>(T(x)); };
    return {stage == 0, stage == job.stages - 1, all(job.step), all(job.weights[stage]), all(job.step * job.reach[stage]),
            all(sin), all(cos), all(job.kick / mass), all(1 / mass), all(job.cosine), all(job.sine),
            features(now), features(then), noise, now + 1};
  }

  // Sums over the neighbours of a tile's oscillators of weight times sine and cosine.
  KG_INLINE void gather(const R* far, int64_t tile, R& sin, R& cos) const {
    T sines[R::width], cosines[R::width];
    for (int64_t lane = 0; lane < R::width; ++lane) {
      const int64_t i = tile * R::width + lane;
      if (job.kind == SPARSE) sparse_sums(i, reinterpret_cast<const T*>(far), sines[lane], cosines[lane]);
      else dense_sums(static_cast<const R*>(job.matrix) + i * job.tiles, far, sines[lane], cosines[lane]);
    }
    sin = load<R>(sines), cos = load<R>(cosines);
  }
  KG_INLINE void sparse_sums(int64_t i, const T* far, T& sin, T& cos) const {
    const T* weight = static_cast<const T*>(job.weight);
    const int64_t end = job.rowptr[i + 1], final = job.entries - 1;
    sin = cos = 0;
    for (int64_t e = job.rowptr[i]; e < end; ++e) {
      __builtin_prefetch(far + job.place[e + AHEAD < final ? e + AHEAD : final]);
      const T *other = far + job.place[e], w = weight ? weight[e] : T(1);
      sin += w * other[0];
      cos += w * other[R::width];
    }
  }
  KG_INLINE void dense_sums(const R* a, const R* far, T& sin, T& cos) const {
    R sines = splat<R>(0), cosines = sines;
    for (int64_t t = 0; t < job.tiles; ++t) sines = fma(a[t], far[2 * t], sines), cosines = fma(a[t], far[2 * t + 1], cosines);
    sin = total(folded(sines)), cos = total(folded(cosines));
  }

  // What follows a stage of slope k: the value at the next stage, or after the last one (with noise) at the next step.
  KG_INLINE R follow(const Pass& p, int64_t tile, const R& k, void* base, void* slopes, bool noisy) const {
    R slope = p.weight * k;
    if (!p.first) slope = slope + row(slopes)[tile];
    if (!p.last) {
      row(slopes)[tile] = slope;
      return fma(p.reach, k, row(base)[tile]);
    }
    R next = fma(p.step, slope, row(base)[tile]);
    if (noisy) next = fma(p.kick, p.noise[tile], next);
    return row(base)[tile] = next;
  }

  KG_INLINE R next_phase(const Pass& p, int64_t tile) const {
    R sin = p.sin, cos = p.cos;
    if (job.kind != MEAN_FIELD) gather(p.far, tile, sin, cos);
    const R turned_sin = sin * p.cosine - cos * p.sine, turned_cos = cos * p.cosine + sin * p.sine;
    R k = turned_sin * p.near[2 * tile + 1] - turned_cos * p.near[2 * tile];
    if (job.scale) k = k * row(job.scale)[tile];
    k = k + row(job.frequency)[tile];
    if (!(job.inertia > 0)) return follow(p, tile, k, job.phase, job.slope, p.noise);
    const R velocity = row(job.stage_velocity)[tile], force = (k - velocity) * p.per_mass;
    row(job.stage_velocity)[tile] = follow(p, tile, force, job.velocity, job.velocity_slope, p.noise);
    return follow(p, tile, velocity, job.phase, job.slope, false);
  }
};

}  // namespace KG_ISA
