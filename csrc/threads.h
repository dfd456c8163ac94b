// Work shared by threads. No sum is ever shared, so the bits do not depend on the number of threads.
#pragma once

#include <sched.h>

#include <cstdint>

// Runs work(data) on so many threads and waits for them: GOMP_parallel of the OpenMP library that torch has loaded, or a
// function of common.cpp. Idle OpenMP threads spin for milliseconds; threads of another pool would compete with them.
typedef void (*kg_launch_t)(void (*work)(void*), void* data, unsigned threads, unsigned flags);
extern kg_launch_t kg_launch __attribute__((visibility("hidden")));

namespace KG_ISA {

// One thread for work that touches few numbers: ten microseconds are not worth waking others for.
inline int worth_sharing(int threads, int64_t numbers) { return numbers > 30000 ? threads : 1; }

// Calls body(number, worker) for every number below `count`; whichever thread is free takes the next number.
template <class F> void parallel(int threads, int64_t count, const F& body) {
  if (threads <= 1 || count <= 1) {
    for (int64_t number = 0; number < count; ++number) body(number, 0);
    return;
  }
  struct Job { const F& body; int64_t count, next, workers; } job{body, count, 0, 0};
  const auto work = [](void* data) {
    Job& job = *static_cast<Job*>(data);
    const int worker = int(__atomic_fetch_add(&job.workers, 1, __ATOMIC_RELAXED));
    for (int64_t number; (number = __atomic_fetch_add(&job.next, 1, __ATOMIC_RELAXED)) < job.count;) job.body(number, worker);
  };
  kg_launch(work, &job, unsigned(count < threads ? count : threads), 0);
}

// Calls body(stage, number) for every number below `count`, stage after stage: none begins before all of the stage before
// are done. One start of the threads for all stages; a thread that waits long offers its processor to others.
template <class F> void parallel_stages(int threads, int64_t stages, int64_t count, const F& body) {
  int64_t done = 0;
  parallel(count > 1 ? threads : 1, stages * count, [&](int64_t number, int) {
    const int64_t stage = number / count;
    for (int spins = 0; __atomic_load_n(&done, __ATOMIC_ACQUIRE) < stage * count;)
      if (++spins > 2000) sched_yield();
    body(stage, number % count);
    __atomic_fetch_add(&done, 1, __ATOMIC_RELEASE);
  });
}

}  // namespace KG_ISA
