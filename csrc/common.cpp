// What is compiled once: which instruction sets can run, sizes of structs, and threads where torch's cannot be used.
#include <system_error>
#include <thread>
#include <vector>

#include "api.h"
#include "threads.h"

// Names of the instruction sets that are compiled in and that this processor has, the fastest first.
KG_EXPORT const char* kg_instruction_sets() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return avx512 ? "avx512 avx2 baseline" : avx2 ? "avx2 baseline" : "baseline";
#else
  return "baseline";
#endif
}

// The size of a struct, by which Python finds out that it meets a library of another version.
KG_EXPORT int64_t kg_sizes(int64_t number) {
  const int64_t sizes[] = {sizeof(FlowJob), sizeof(SparseJob), sizeof(AttentionJob), sizeof(OscillatorsJob)};
  return number < 4 ? sizes[number] : 0;
}

// After a fork, and where torch came without GNU OpenMP.
static void own_threads(void (*work)(void*), void* data, unsigned threads, unsigned) {
  std::vector<std::thread> others;
  try {
    for (unsigned k = 1; k < threads; ++k) others.emplace_back(work, data);
  } catch (const std::system_error&) {}  // Fewer threads than asked for take more of the work each.
  work(data);
  for (std::thread& other : others) other.join();
}

kg_launch_t kg_launch = own_threads;
// The address of GOMP_parallel, or null for threads of our own.
KG_EXPORT void kg_use_launcher(void* address) {
  kg_launch = address ? reinterpret_cast<kg_launch_t>(address) : own_threads;
}
