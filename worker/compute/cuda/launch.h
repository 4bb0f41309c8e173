#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_H_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_H_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>

// Launches the functions of worker/compute/kernels as kernels. Each call queues
// its work on `stream` and returns the launch's error; empty ranges queue
// nothing. The .cu files contain the only instances, for the functions that
// they list.
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

// Returns the number of chunks into which LaunchSumColumns() cuts the rows. It
// sums in two stages: each chunk of rows into `partial`, [chunks, n], and then
// the chunks; with one chunk, `partial` is not used. The fewer columns there
// are, the more chunks: 1,024 blocks, each of 32 columns and one chunk, fill a
// device.
inline int64_t SumChunks(int64_t rows, int64_t n) {
  constexpr int64_t kRowsPerChunk = 256;
  constexpr int64_t kColumnsPerBlock = 32;
  constexpr int64_t kBlocks = 1024;
  constexpr int64_t kLeast = 64;
  constexpr int64_t kMost = 512;
  const int64_t blocks = (n + kColumnsPerBlock - 1) / kColumnsPerBlock;
  const int64_t most = std::clamp<int64_t>(
      kBlocks / std::max<int64_t>(1, blocks), kLeast, kMost);
  return std::clamp<int64_t>(rows / kRowsPerChunk, 1, most);
}

template <typename T, typename F>
cudaError_t LaunchSumColumns(cudaStream_t stream, int64_t rows, int64_t n,
                             const F& f, T* partial, T* out);

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_H_
