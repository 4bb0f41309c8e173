#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_CUH_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_CUH_

#include <algorithm>
#include <cstdint>

#include "worker/compute/cuda/launch.h"
#include "worker/compute/cuda/thread_groups.cuh"
#include "worker/compute/kernels/division.h"

namespace lockstep::worker::cuda {

inline constexpr int kThreads = 256;
inline constexpr int kTileRows = 8;
// Rows of so many elements are of one warp each, whose threads need no barrier.
inline constexpr int64_t kShortRow = 1024;
inline constexpr int64_t kMaxBlocks = 1 << 20;  // loops take the rest

inline unsigned Blocks(int64_t work, int64_t per_block) {
  return static_cast<unsigned>(
      std::min(kMaxBlocks, (work + per_block - 1) / per_block));
}

// Few elements are spread over many blocks, which hides latency better than
// loads that are under way together.
inline unsigned ElementBlocks(int64_t elements) {
  constexpr int64_t kFilled = int64_t{1} << 19;  // threads of a large GPU
  const int64_t each = elements < kFilled ? 1 : kTogether;
  return Blocks(elements, each * kThreads);
}

template <typename F>
__global__ void ForEachKernel(int64_t n, F f) {
  StoreTogether(int64_t{blockIdx.x} * blockDim.x + threadIdx.x, n,
                int64_t{gridDim.x} * blockDim.x, f.Target(),
                [&](int64_t i) { return f.Value(i); });
}

template <typename F>
__global__ void SmallGridKernel(int64_t count, Divisor n, F f) {
  StoreTogether(int64_t{blockIdx.x} * blockDim.x + threadIdx.x, count,
                int64_t{gridDim.x} * blockDim.x, f.Target(), [&](int64_t i) {
                  const Division place = n.Divide(i);
                  return f.Value(place.quotient, place.remainder);
                });
}

template <typename F>
__global__ void GridKernel(int64_t count, int64_t n, F f) {
  StoreTogether(int64_t{blockIdx.x} * blockDim.x + threadIdx.x, count,
                int64_t{gridDim.x} * blockDim.x, f.Target(), [&](int64_t i) {
                  const Division place = Divide(i, n);
                  return f.Value(place.quotient, place.remainder);
                });
}

template <typename F>
__global__ void RowsKernel(int64_t rows, F f) {
  BlockGroup group;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) f(group, row);
}

// A warp for each row.
template <typename F>
__global__ void ShortRowsKernel(int64_t rows, F f) {
  constexpr int kWarps = kRowThreads / kWarp;
  WarpGroup group;
  const int64_t step = int64_t{gridDim.x} * kWarps;
  int64_t row = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
  for (; row < rows; row += step) f(group, row);
}

// A block sums 32 columns over one chunk of rows: eight rows at a time, then
// those eight sums in order.
template <typename T, typename F>
__global__ void SumColumnsKernel(int64_t rows, int64_t chunk_rows, int64_t n,
                                 F f, T* out) {
  // One column more than needed, so that a column's elements lie in different
  // banks.
  __shared__ T sums[kTileRows][kWarp + 1];
  const int64_t column = int64_t{blockIdx.x} * kWarp + threadIdx.x;
  const int64_t first = int64_t{blockIdx.y} * chunk_rows;
  const int64_t end = min(first + chunk_rows, rows);
  T sum = 0;
  if (column < n) {
    for (int64_t row = first + threadIdx.y; row < end; row += kTileRows) {
      sum += f(row, column);
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  // Only after the barrier, which all threads must reach.
  if (threadIdx.y != 0 || column >= n) return;
  for (int i = 1; i < kTileRows; ++i) sum += sums[i][threadIdx.x];
  out[blockIdx.y * n + column] = sum;
}

template <typename T>
struct SumOfChunk {
  const T* partial;  // [chunks,n]
  int64_t n;

  __device__ T operator()(int64_t chunk, int64_t column) const {
    return partial[chunk * n + column];
  }
};

template <typename F>
cudaError_t LaunchForEach(cudaStream_t stream, int64_t n, const F& f) {
  if (n == 0) return cudaSuccess;
  ForEachKernel<<<ElementBlocks(n), kThreads, 0, stream>>>(n, f);
  return cudaGetLastError();
}

template <typename F>
cudaError_t LaunchGrid(cudaStream_t stream, int64_t rows, int64_t n,
                       const F& f) {
  const int64_t count = rows * n;
  if (count == 0) return cudaSuccess;
  const unsigned blocks = ElementBlocks(count);
  if (count < Divisor::kLimit) {
    SmallGridKernel<<<blocks, kThreads, 0, stream>>>(count, Divisor::Of(n), f);
  } else {
    GridKernel<<<blocks, kThreads, 0, stream>>>(count, n, f);
  }
  return cudaGetLastError();
}

template <typename F>
cudaError_t LaunchRows(cudaStream_t stream, int64_t rows, const F& f) {
  if (rows == 0) return cudaSuccess;
  // The choice depends on the row's length alone, as the order of its sums.
  if (f.RowLength() <= kShortRow) {
    const unsigned blocks = Blocks(rows, kRowThreads / kWarp);
    ShortRowsKernel<<<blocks, kRowThreads, 0, stream>>>(rows, f);
  } else {
    RowsKernel<<<Blocks(rows, 1), kRowThreads, 0, stream>>>(rows, f);
  }
  return cudaGetLastError();
}

template <typename T, typename F>
cudaError_t LaunchSumColumns(cudaStream_t stream, int64_t rows, int64_t n,
                             const F& f, T* partial, T* out) {
  if (n == 0) return cudaSuccess;
  // Few columns alone would occupy few blocks, so rows are summed in chunks
  // first. The number of chunks depends on the shape alone, which keeps the
  // bits of the sum the same on each device.
  const int64_t chunks = SumChunks(rows, n);
  const int64_t chunk_rows = (rows + chunks - 1) / chunks;
  const auto blocks = static_cast<unsigned>((n + kWarp - 1) / kWarp);
  const dim3 grid(blocks, static_cast<unsigned>(chunks));
  const dim3 tile(kWarp, kTileRows);
  SumColumnsKernel<<<grid, tile, 0, stream>>>(rows, chunk_rows, n, f,
                                              chunks == 1 ? out : partial);
  if (const cudaError_t error = cudaGetLastError();
      error != cudaSuccess || chunks == 1) {
    return error;
  }
  const dim3 grid_of_chunks(blocks);
  SumColumnsKernel<<<grid_of_chunks, tile, 0, stream>>>(
      chunks, chunks, n, SumOfChunk<T>{partial, n}, out);
  return cudaGetLastError();
}

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_CUH_
