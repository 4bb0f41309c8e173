#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_CUH_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_LAUNCH_CUH_

#include <algorithm>
#include <cstdint>

#include "worker/compute/cuda/launch.h"
#include "worker/compute/kernels/division.h"

namespace lockstep::worker::cuda {

inline constexpr int kThreads = 256;
inline constexpr int kRowThreads = 128;
inline constexpr int kWarp = 32;
inline constexpr int kTileRows = 8;
inline constexpr int64_t kMaxBlocks = 1 << 20;  // loops take the rest
// Values that a thread computes before it stores the first: their loads are
// under way together, where a store between them might change what the next one
// reads. With one, a kernel moves half of what a copy does.
inline constexpr int kTogether = 4;

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

// A block of threads as a Group (worker/compute/kernels/rows.h).
struct BlockGroup {
  template <typename T, typename F>
  __device__ void Map(int64_t n, T* out, F f) {
    StoreTogether(threadIdx.x, n, blockDim.x, out, f);
    __syncthreads();
  }

  template <typename T, typename F>
  __device__ T Sum(int64_t n, F f) {
    T sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += f(i);
    return Reduce(sum, [](T a, T b) { return a + b; });
  }

  template <typename T, typename F>
  __device__ T Max(int64_t n, F f) {
    T largest = -INFINITY;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
      const T x = f(i);
      largest = largest < x ? x : largest;
    }
    return Reduce(largest, [](T a, T b) { return a < b ? b : a; });
  }

  __device__ bool Leads() const { return threadIdx.x == 0; }

 private:
  // The same value in every thread: warps by a butterfly, then their results
  // in order.
  template <typename T, typename Join>
  __device__ T Reduce(T value, Join join) {
    __shared__ T of_warp[kRowThreads / kWarp];
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      value = join(value, __shfl_xor_sync(0xffffffffu, value, distance));
    }
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

template <typename F>
__global__ void ForEachKernel(int64_t n, F f) {
  StoreTogether(int64_t{blockIdx.x} * blockDim.x + threadIdx.x, n,
                int64_t{gridDim.x} * blockDim.x, f.Target(),
                [&](int64_t i) { return f.Value(i); });
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
  GridKernel<<<ElementBlocks(count), kThreads, 0, stream>>>(count, n, f);
  return cudaGetLastError();
}

template <typename F>
cudaError_t LaunchRows(cudaStream_t stream, int64_t rows, const F& f) {
  if (rows == 0) return cudaSuccess;
  RowsKernel<<<Blocks(rows, 1), kRowThreads, 0, stream>>>(rows, f);
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
