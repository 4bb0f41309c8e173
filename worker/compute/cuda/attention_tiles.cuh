#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_TILES_CUH_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_TILES_CUH_

#include <mma.h>

#include <cstdint>
#include <type_traits>

#include "worker/compute/cuda/attention.h"
#include "worker/compute/cuda/launch.cuh"

// Matrices in shared memory, and their products by tensor cores. Each of the
// four warps of a block computes 16 rows of 64.
//
// Only loops over fragments in registers are unrolled whole: all others, too,
// would make nvcc take minutes.
namespace lockstep::worker::cuda {

inline constexpr int kTile = 64;  // queries, and keys, at a time
inline constexpr int kTileThreads = 128;
inline constexpr int kFragment = 16;  // rows and columns of one product
inline constexpr int kDepth = 8;      // its inner side
// Rows are this much longer than their contents, so that the rows of a column
// lie in different banks. 4 keeps each 16th row at a multiple of 32 bytes,
// which tensor cores need.
inline constexpr int kRowPad = 4;
inline constexpr int kScoreStride = kTile + kRowPad;

template <int kWidth>
inline constexpr int kTileStride = kWidth + kRowPad;
// In elements.
template <int kWidth>
inline constexpr int kTileSize = kTile* kTileStride<kWidth>;
inline constexpr int kScoreSize = kTile * kScoreStride;

namespace wmma = nvcuda::wmma;
using Sums =
    wmma::fragment<wmma::accumulator, kFragment, kFragment, kDepth, float>;
template <typename Layout>
using LeftOperand = wmma::fragment<wmma::matrix_a, kFragment, kFragment, kDepth,
                                   wmma::precision::tf32, Layout>;
template <typename Layout>
using RightOperand = wmma::fragment<wmma::matrix_b, kFragment, kFragment,
                                    kDepth, wmma::precision::tf32, Layout>;

// x = high + low, but for the 2^-22 of x that two operands of 11 bits cannot
// hold.
template <typename Fragment>
__device__ void Split(const Fragment& x, Fragment& high, Fragment& low) {
  for (int i = 0; i < x.num_elements; ++i) {
    high.x[i] = wmma::__float_to_tf32(x.x[i]);
    // The subtraction is exact, because `high` has the leading bits of x.
    low.x[i] = wmma::__float_to_tf32(x.x[i] - high.x[i]);
  }
}

// sums += a b. The product of the low halves is below the last bit.
template <AttentionProducts kProducts, typename A, typename B>
__device__ void AddProduct(const A& a, const B& b, Sums& sums) {
  A a_high, a_low;
  B b_high, b_low;
  Split(a, a_high, a_low);
  Split(b, b_high, b_low);
  if constexpr (kProducts == AttentionProducts::kFloat32) {
    wmma::mma_sync(sums, a_low, b_high, sums);
    wmma::mma_sync(sums, a_high, b_low, sums);
  }
  wmma::mma_sync(sums, a_high, b_high, sums);
}

// The first of the 16 rows of this thread's warp.
__device__ inline int FirstRowOfWarp() {
  return static_cast<int>(threadIdx.x) / kWarp * kFragment;
}

// Copies `rows` rows of `width` elements, `stride` apart in `from`, and zeros
// in the rest of the tile. All threads of the block must call it.
template <int kWidth>
__device__ void LoadTile(const float* from, int64_t stride, int64_t rows,
                         int64_t width, float* tile) {
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kWidth;
       i += kTileThreads) {
    const int row = i / kWidth;
    const int column = i % kWidth;
    tile[row * kTileStride<kWidth> + column] =
        row < rows && column < width ? from[row * stride + column] : 0.0f;
  }
}

// The 16 rows of this warp in scores = a b^T, of tiles of rows.
template <AttentionProducts kProducts, int kWidth>
__device__ void MultiplyRows(const float* a, const float* b, float* scores) {
  const int first = FirstRowOfWarp();
  constexpr int kStride = kTileStride<kWidth>;
#pragma unroll 1
  for (int column = 0; column < kTile; column += kFragment) {
    Sums sums;
    wmma::fill_fragment(sums, 0.0f);
#pragma unroll 4
    for (int k = 0; k < kWidth; k += kDepth) {
      LeftOperand<wmma::row_major> left;
      RightOperand<wmma::col_major> right;
      wmma::load_matrix_sync(left, a + first * kStride + k, kStride);
      wmma::load_matrix_sync(right, b + column * kStride + k, kStride);
      AddProduct<kProducts>(left, right, sums);
    }
    wmma::store_matrix_sync(scores + first * kScoreStride + column, sums,
                            kScoreStride, wmma::mem_row_major);
  }
  __syncwarp();
}

// 16 rows of `kWidth` sums, which stay in registers.
template <int kWidth>
struct RowSums {
  Sums of_columns[kWidth / kFragment];

  __device__ RowSums() {
    for (Sums& sums : of_columns) wmma::fill_fragment(sums, 0.0f);
  }

  // Adds the product of scores, or of their transpose, and a tile of rows.
  template <AttentionProducts kProducts, typename Layout>
  __device__ void Add(const float* scores, const float* rows) {
    constexpr bool kTransposed = std::is_same_v<Layout, wmma::col_major>;
    const int first = FirstRowOfWarp();
#pragma unroll 1
    for (int k = 0; k < kTile; k += kDepth) {
      LeftOperand<Layout> left;
      wmma::load_matrix_sync(left,
                             kTransposed ? scores + k * kScoreStride + first
                                         : scores + first * kScoreStride + k,
                             kScoreStride);
      for (int column = 0; column < kWidth / kFragment; ++column) {
        RightOperand<wmma::row_major> right;
        wmma::load_matrix_sync(
            right, rows + k * kTileStride<kWidth> + column * kFragment,
            kTileStride<kWidth>);
        AddProduct<kProducts>(left, right, of_columns[column]);
      }
    }
  }

  // Writes the first `rows` rows of the block's 64 and `width` columns, by way
  // of `tile`, whose contents are lost.
  __device__ void Store(float* tile, float* to, int64_t stride, int64_t rows,
                        int64_t width) const {
    const int first = FirstRowOfWarp();
    __syncthreads();  // warps may still read the tile
    for (int column = 0; column < kWidth / kFragment; ++column) {
      wmma::store_matrix_sync(
          tile + first * kTileStride<kWidth> + column * kFragment,
          of_columns[column], kTileStride<kWidth>, wmma::mem_row_major);
    }
    __syncthreads();
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < kTile * kWidth;
         i += kTileThreads) {
      const int row = i / kWidth;
      const int column = i % kWidth;
      if (row < rows && column < width) {
        to[row * stride + column] = tile[row * kTileStride<kWidth> + column];
      }
    }
    __syncthreads();  // before the tile is used again
  }
};

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_TILES_CUH_
