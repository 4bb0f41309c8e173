#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_TILES_CUH_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_TILES_CUH_

#include <cuda_bf16.h>
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

namespace wmma = nvcuda::wmma;

// How tensor cores multiply: the type of a tile's elements, and the inner side
// of one product. Rows of tiles are kRowPad longer than their contents, so that
// the rows of a column lie in different banks; each 16th row stays at a
// multiple of 32 bytes, which tensor cores need.
template <AttentionProducts kProducts>
struct Format {
  using Element = float;
  using Operand = wmma::precision::tf32;
  static constexpr int kDepth = 8;
  static constexpr int kRowPad = 4;
  __device__ static float Of(float x) { return x; }
  __device__ static float Float(float x) { return x; }
};
template <>
struct Format<AttentionProducts::kBfloat16> {
  using Element = __nv_bfloat16;
  using Operand = __nv_bfloat16;
  static constexpr int kDepth = 16;
  static constexpr int kRowPad = 8;
  __device__ static Element Of(float x) { return __float2bfloat16_rn(x); }
  __device__ static float Float(Element x) { return __bfloat162float(x); }
};
template <AttentionProducts kProducts>
using ElementOf = typename Format<kProducts>::Element;

// Elements from one row of a tile to the next. Scores are always float32.
template <AttentionProducts kProducts, int kWidth>
inline constexpr int kTileStride = kWidth + Format<kProducts>::kRowPad;
inline constexpr int kScoreStride =
    kTileStride<AttentionProducts::kFloat32, kTile>;
// In bytes.
template <AttentionProducts kProducts, int kWidth>
inline constexpr int kTileBytes =
    kTile* kTileStride<kProducts, kWidth>* static_cast<int>(
        sizeof(ElementOf<kProducts>));
inline constexpr int kScoreBytes =
    kTileBytes<AttentionProducts::kFloat32, kTile>;

template <AttentionProducts kProducts>
using Sums = wmma::fragment<wmma::accumulator, kFragment, kFragment,
                            Format<kProducts>::kDepth, float>;
template <AttentionProducts kProducts, typename Layout>
using LeftOperand = wmma::fragment<wmma::matrix_a, kFragment, kFragment,
                                   Format<kProducts>::kDepth,
                                   typename Format<kProducts>::Operand, Layout>;
template <AttentionProducts kProducts, typename Layout>
using RightOperand =
    wmma::fragment<wmma::matrix_b, kFragment, kFragment,
                   Format<kProducts>::kDepth,
                   typename Format<kProducts>::Operand, Layout>;

// Hands out the shared memory of a block, tile by tile.
class TileMemory {
 public:
  __device__ explicit TileMemory(float* memory)
      : next_(reinterpret_cast<char*>(memory)) {}

  template <AttentionProducts kProducts, int kWidth>
  __device__ ElementOf<kProducts>* Tile() {
    auto* const tile = reinterpret_cast<ElementOf<kProducts>*>(next_);
    next_ += kTileBytes<kProducts, kWidth>;
    return tile;
  }
  __device__ float* Scores() {
    return Tile<AttentionProducts::kFloat32, kTile>();
  }

 private:
  char* next_;
};

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
__device__ void AddProduct(const A& a, const B& b, Sums<kProducts>& sums) {
  if constexpr (kProducts == AttentionProducts::kBfloat16) {
    wmma::mma_sync(sums, a, b, sums);
  } else {
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
}

// The first of the 16 rows of this thread's warp.
__device__ inline int FirstRowOfWarp() {
  return static_cast<int>(threadIdx.x) / kWarp * kFragment;
}

// Four elements that are loaded, or stored, by one instruction.
template <typename T>
struct Four {
  alignas(4 * sizeof(T)) T x[4];
};

// Copies `rows` rows of `width` elements, `stride` apart in `from`, and zeros
// in the rest of the tile. All threads of the block must call it.
template <AttentionProducts kProducts, int kWidth>
__device__ void LoadTile(const float* from, int64_t stride, int64_t rows,
                         int64_t width, ElementOf<kProducts>* tile) {
  using Element = ElementOf<kProducts>;
  constexpr int kFours = kWidth / 4;
  // Heads that fill a tile begin at multiples of it, if the tensor begins at
  // one of 16 bytes.
  const bool aligned =
      width == kWidth && reinterpret_cast<uintptr_t>(from) % 16 == 0;
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kFours;
       i += kTileThreads) {
    const int row = i / kFours;
    const int column = i % kFours * 4;
    const float* const source = from + row * stride + column;
    Four<float> in = {};
    if (row < rows && aligned) {
      in = *reinterpret_cast<const Four<float>*>(source);
    } else if (row < rows) {
      for (int j = 0; j < 4; ++j) {
        if (column + j < width) in.x[j] = source[j];
      }
    }
    Four<Element> out;
    for (int j = 0; j < 4; ++j) out.x[j] = Format<kProducts>::Of(in.x[j]);
    *reinterpret_cast<Four<Element>*>(
        tile + row * kTileStride<kProducts, kWidth> + column) = out;
  }
}

// The 16 rows of this warp in scores = a b^T, of tiles of rows.
template <AttentionProducts kProducts, int kWidth>
__device__ void MultiplyRows(const ElementOf<kProducts>* a,
                             const ElementOf<kProducts>* b, float* scores) {
  const int first = FirstRowOfWarp();
  constexpr int kStride = kTileStride<kProducts, kWidth>;
#pragma unroll 1
  for (int column = 0; column < kTile; column += kFragment) {
    Sums<kProducts> sums;
    wmma::fill_fragment(sums, 0.0f);
#pragma unroll 4
    for (int k = 0; k < kWidth; k += Format<kProducts>::kDepth) {
      LeftOperand<kProducts, wmma::row_major> left;
      RightOperand<kProducts, wmma::col_major> right;
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
template <AttentionProducts kProducts, int kWidth>
struct RowSums {
  Sums<kProducts> of_columns[kWidth / kFragment];

  __device__ RowSums() {
    for (auto& sums : of_columns) wmma::fill_fragment(sums, 0.0f);
  }

  // Adds the product of weights, or of their transpose, and a tile of rows.
  template <typename Layout>
  __device__ void Add(const ElementOf<kProducts>* weights,
                      const ElementOf<kProducts>* rows) {
    constexpr bool kTransposed = std::is_same_v<Layout, wmma::col_major>;
    constexpr int kStride = kTileStride<kProducts, kWidth>;
    constexpr int kWeightStride = kTileStride<kProducts, kTile>;
    const int first = FirstRowOfWarp();
#pragma unroll 1
    for (int k = 0; k < kTile; k += Format<kProducts>::kDepth) {
      LeftOperand<kProducts, Layout> left;
      wmma::load_matrix_sync(left,
                             kTransposed ? weights + k * kWeightStride + first
                                         : weights + first * kWeightStride + k,
                             kWeightStride);
      for (int column = 0; column < kWidth / kFragment; ++column) {
        RightOperand<kProducts, wmma::row_major> right;
        wmma::load_matrix_sync(right, rows + k * kStride + column * kFragment,
                               kStride);
        AddProduct<kProducts>(left, right, of_columns[column]);
      }
    }
  }

  // Writes the first `rows` rows of the block's 64 and `width` columns, by way
  // of `scores`, whose contents are lost, 64 columns at a time.
  __device__ void Store(float* scores, float* to, int64_t stride, int64_t rows,
                        int64_t width) const {
    constexpr int kFragments = kTile / kFragment;
    const int first = FirstRowOfWarp();
    for (int done = 0; done < kWidth; done += kTile) {
      __syncthreads();  // warps may still read the tile
      for (int i = 0; i < kFragments; ++i) {
        wmma::store_matrix_sync(scores + first * kScoreStride + i * kFragment,
                                of_columns[done / kFragment + i], kScoreStride,
                                wmma::mem_row_major);
      }
      __syncthreads();
#pragma unroll 4
      for (int i = static_cast<int>(threadIdx.x); i < kTile * kTile;
           i += kTileThreads) {
        const int row = i / kTile;
        const int column = i % kTile;
        if (row < rows && done + column < width) {
          to[row * stride + done + column] =
              scores[row * kScoreStride + column];
        }
      }
    }
    __syncthreads();  // before the tile is used again
  }
};

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_TILES_CUH_
