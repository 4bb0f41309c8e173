#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_H_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

// How the functions of worker/compute/kernels become kernels. Each call queues
// its work on `stream` and returns the launch's error; empty ranges queue
// nothing. The .cu files hold the only instances, for the functions that they
// list.
//
// No thread adds to an element that another one writes, and the order of each
// sum follows from the shape alone, so equal inputs give equal bits.
namespace lockstep::worker::cuda {

template <typename F>
cudaError_t LaunchForEach(cudaStream_t stream, int64_t n, const F& f);

template <typename F>
cudaError_t LaunchGrid(cudaStream_t stream, int64_t rows, int64_t n,
                       const F& f);

template <typename F>
cudaError_t LaunchRows(cudaStream_t stream, int64_t rows, const F& f);

// Sums over rows go in two stages: each chunk of rows by itself into `partial`,
// [chunks, n], and then the chunks. `partial` is not used if there is one.
inline int64_t SumChunks(int64_t rows) {
  constexpr int64_t kRowsPerChunk = 256;
  constexpr int64_t kMaxChunks = 64;
  return std::clamp<int64_t>(rows / kRowsPerChunk, 1, kMaxChunks);
}

template <typename T, typename F>
cudaError_t LaunchSumColumns(cudaStream_t stream, int64_t rows, int64_t n,
                             const F& f, T* partial, T* out);

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_H_
