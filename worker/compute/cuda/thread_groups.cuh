#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_THREAD_GROUPS_CUH_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_THREAD_GROUPS_CUH_

#include <cstdint>

// The threads of a warp or of a block as one Group, which computes a row.
namespace lockstep::worker::cuda {

inline constexpr int kRowThreads = 128;
inline constexpr int kWarp = 32;
// Values that a thread computes before it stores the first: their loads are
// under way together, where a store between them might change the operand of
// the next one. With one, a kernel moves half of the bytes that a copy does.
inline constexpr int kTogether = 4;

// target[i] = value(i) for i = first, first + step, ... below n.
template <typename T, typename F>
__device__ void StoreTogether(int64_t first, int64_t n, int64_t step, T* target,
                              const F& value) {
  int64_t i = first;
  for (; i + (kTogether - 1) * step < n; i += kTogether * step) {
    T values[kTogether];
#pragma unroll
    for (int j = 0; j < kTogether; ++j) values[j] = value(i + j * step);
#pragma unroll
    for (int j = 0; j < kTogether; ++j) target[i + j * step] = values[j];
  }
  for (; i < n; i += step) target[i] = value(i);
}

// Threads as a Group (worker/compute/kernels/rows.h). `Threads` says how many
// they are, and joins their values.
template <typename Threads>
struct ThreadGroup {
  template <typename T, typename F>
  __device__ void Map(int64_t n, T* out, F f) {
    StoreTogether(Threads::Index(), n, Threads::kCount, out, f);
    Threads::Wait();
  }

  template <typename T, typename F>
  __device__ T Sum(int64_t n, F f) {
    T sum = 0;
    for (int64_t i = Threads::Index(); i < n; i += Threads::kCount) sum += f(i);
    return Threads::Join(sum, [](T a, T b) { return a + b; });
  }

  template <typename T, typename F>
  __device__ T Max(int64_t n, F f) {
    T largest = -INFINITY;
    for (int64_t i = Threads::Index(); i < n; i += Threads::kCount) {
      const T x = f(i);
      largest = largest < x ? x : largest;
    }
    return Threads::Join(largest, [](T a, T b) { return a < b ? b : a; });
  }

  __device__ bool Leads() const { return Threads::Index() == 0; }
};

// The same value in every thread of a warp, by a butterfly.
template <typename T, typename F>
__device__ T JoinWarp(T value, F join) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value = join(value, __shfl_xor_sync(0xffffffffu, value, distance));
  }
  return value;
}

struct WarpThreads {
  static constexpr int64_t kCount = kWarp;
  __device__ static int64_t Index() { return threadIdx.x % kWarp; }
  __device__ static void Wait() { __syncwarp(); }
  template <typename T, typename F>
  __device__ static T Join(T value, F join) {
    return JoinWarp(value, join);
  }
};

struct BlockThreads {
  static constexpr int64_t kCount = kRowThreads;
  __device__ static int64_t Index() { return threadIdx.x; }
  __device__ static void Wait() { __syncthreads(); }
  // Warps first, then their results in order.
  template <typename T, typename F>
  __device__ static T Join(T value, F join) {
    __shared__ T of_warp[kRowThreads / kWarp];
    value = JoinWarp(value, join);
    if (threadIdx.x % kWarp == 0) of_warp[threadIdx.x / kWarp] = value;
    __syncthreads();
    value = of_warp[0];
    for (int warp = 1; warp < kRowThreads / kWarp; ++warp) {
      value = join(value, of_warp[warp]);
    }
    __syncthreads();  // before of_warp is used again
    return value;
  }
};

using WarpGroup = ThreadGroup<WarpThreads>;
using BlockGroup = ThreadGroup<BlockThreads>;

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_THREAD_GROUPS_CUH_
