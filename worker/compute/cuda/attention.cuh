#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_CUH_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_CUH_

#include <cmath>
#include <cstdint>

#include "worker/compute/cuda/attention_tiles.cuh"

namespace lockstep::worker::cuda {

// One head of one sequence within the tensors.
struct AttentionHead {
  int64_t stride;      // from a row of `qkv` to the next
  int64_t out_stride;  // the same of `out`
  int64_t first;       // element of `qkv`
  int64_t first_out;
  int64_t first_row;  // of `log_sums`

  __device__ AttentionHead(const AttentionTensors& t, int64_t index) {
    // A row of `qkv` has the queries of all heads, then their keys, then their
    // values; each block is out_stride elements wide.
    const int64_t sequence = index / t.heads;
    const int64_t head = index % t.heads;
    out_stride = t.heads * t.head;
    stride = 3 * out_stride;
    first = sequence * t.length * stride + head * t.head;
    first_out = sequence * t.length * out_stride + head * t.head;
    first_row = index * t.length;
  }
};

// Two neighbours of a row of scores, which one instruction loads.
struct ScorePair {
  alignas(8) float x[2];
};

// The row of a tile of scores that this thread shares with its neighbour, which
// has the pairs of columns between its own.
struct ScoreRow {
  int row;
  int first_column;
  int64_t sees;  // so many columns of the tile, by causality; may be negative

  __device__ ScoreRow(int64_t first_query, int64_t first_key) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    row = FirstRowOfWarp() + lane / 2;
    first_column = lane % 2 * 2;
    sees = first_query + row - first_key + 1;
  }

  // f(score, column) for each of the thread's columns.
  template <typename F>
  __device__ void ForEach(const float* scores, F f) const {
#pragma unroll 4
    for (int column = first_column; column < kTile; column += 4) {
      const ScorePair pair = *reinterpret_cast<const ScorePair*>(
          scores + row * kScoreStride + column);
      f(pair.x[0], column);
      f(pair.x[1], column + 1);
    }
  }
};

__device__ inline int64_t TilesOf(const AttentionTensors& t) {
  return (t.length + kTile - 1) / kTile;
}

// Exponentials are of 2, which a GPU computes in one instruction: exp(x) =
// 2^(x log2(e)).
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.693147181f;

// log2(sum(2^score)) of this thread's row, from one tile of scores after the
// other: the largest score so far is taken off, as in any softmax.
struct RowLogSum {
  float largest = -INFINITY;
  float sum = 0;

  __device__ void Add(const ScoreRow& row, const float* scores, float scale) {
    // This thread's columns first, then those of its neighbour: afterwards both
    // have the same largest score.
    float now = largest;
    row.ForEach(scores, [&](float score, int column) {
      if (column < row.sees && now < score * scale) now = score * scale;
    });
    const float beside = __shfl_xor_sync(0xffffffffu, now, 1);
    now = now < beside ? beside : now;
    float added = 0;
    row.ForEach(scores, [&](float score, int column) {
      if (column < row.sees) added += std::exp2(score * scale - now);
    });
    added += __shfl_xor_sync(0xffffffffu, added, 1);
    // Earlier terms had another score taken off. In the first tile, the factor
    // is 2^-inf = 0.
    sum = sum * std::exp2(largest - now) + added;
    largest = now;
  }
  __device__ float Result() const { return largest + std::log2(sum); }
};

// The tiles of a block. Where elements are float32, weights take the place of
// scores.
template <AttentionProducts kProducts, int kWidth>
struct ForwardTiles {
  static constexpr bool kInPlace = kProducts != AttentionProducts::kBfloat16;
  static constexpr int kBytes = 2 * kTileBytes<kProducts, kWidth> +
                                kScoreBytes +
                                (kInPlace ? 0 : kTileBytes<kProducts, kTile>);

  ElementOf<kProducts>* queries;
  ElementOf<kProducts>* keys;  // and values
  float* scores;
  ElementOf<kProducts>* weights;

  __device__ explicit ForwardTiles(float* memory) {
    TileMemory tiles(memory);
    queries = tiles.Tile<kProducts, kWidth>();
    keys = tiles.Tile<kProducts, kWidth>();
    scores = tiles.Scores();
    if constexpr (kInPlace) {
      weights = scores;
    } else {
      weights = tiles.Tile<kProducts, kTile>();
    }
  }
};

// Scores are computed twice: first for the sums of their rows, then with these.
// A tile of results would have to be scaled anew with each tile of keys
// otherwise, which fragments cannot do by row.
template <AttentionProducts kProducts, int kWidth>
__global__ void AttentionKernel(AttentionTensors t,
                                AttentionResults<float> results) {
  extern __shared__ __align__(32) float memory[];
  const ForwardTiles<kProducts, kWidth> tile(memory);
  constexpr int kWeightStride = kTileStride<kProducts, kTile>;
  const float scale = t.scale * kLog2E;
  const int64_t tiles = TilesOf(t);
  const int64_t work = t.sequences * t.heads * tiles;
  for (int64_t i = blockIdx.x; i < work; i += gridDim.x) {
    const AttentionHead head(t, i / tiles);
    const int64_t query = (tiles - 1 - i % tiles) * kTile;  // longest first
    const auto load = [&](int64_t position, int64_t block,
                          ElementOf<kProducts>* to) {
      LoadTile<kProducts, kWidth>(
          t.qkv + head.first + position * head.stride + block * head.out_stride,
          head.stride, t.length - position, t.head, to);
    };
    load(query, 0, tile.queries);
    RowLogSum row_sum;
    for (int64_t key = 0; key <= query; key += kTile) {
      load(key, 1, tile.keys);
      __syncthreads();
      MultiplyRows<kProducts, kWidth>(tile.queries, tile.keys, tile.scores);
      row_sum.Add(ScoreRow(query, key), tile.scores, scale);
      __syncthreads();
    }
    const float log_sum = row_sum.Result();
    RowSums<kProducts, kWidth> out;
    for (int64_t key = 0; key <= query; key += kTile) {
      load(key, 1, tile.keys);
      __syncthreads();
      MultiplyRows<kProducts, kWidth>(tile.queries, tile.keys, tile.scores);
      const ScoreRow row(query, key);
      row.ForEach(tile.scores, [&](float score, int column) {
        tile.weights[row.row * kWeightStride + column] = Format<kProducts>::Of(
            column < row.sees ? std::exp2(score * scale - log_sum) : 0.0f);
      });
      __syncthreads();
      // The values take the place of the keys, which the scores have replaced.
      load(key, 2, tile.keys);
      __syncthreads();
      out.template Add<wmma::row_major>(tile.weights, tile.keys);
      __syncthreads();
    }
    const ScoreRow row(query, query);
    // One of the two threads of a row writes; rows beyond the sequence are
    // padding.
    if (row.first_column == 0 && query + row.row < t.length) {
      results.log_sums[head.first_row + query + row.row] = log_sum * kLn2;
    }
    out.Store(tile.scores,
              results.out + head.first_out + query * head.out_stride,
              head.out_stride, t.length - query, t.head);
  }
}

// products[row] = the sum of out * out_gradient over a head: a warp for each
// row.
inline constexpr int kProductRows = kTileThreads / kWarp;
static __global__ void AttentionRowProductsKernel(
    AttentionTensors t, AttentionResults<const float> results,
    AttentionGradients g) {
  const int64_t rows = t.sequences * t.heads * t.length;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int64_t i = int64_t{blockIdx.x} * kProductRows + warp; i < rows;
       i += int64_t{gridDim.x} * kProductRows) {
    const AttentionHead head(t, i / t.length);
    const int64_t first = head.first_out + i % t.length * head.out_stride;
    float sum = 0;
    for (int64_t column = lane; column < t.head; column += kWarp) {
      sum += results.out[first + column] * g.out_gradient[first + column];
    }
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    if (lane == 0) g.products[i] = sum;
  }
}

// The four tiles of a gradient, its scores, and what becomes of them. Where
// elements are float32, gradients of scores take the place of scores.
template <AttentionProducts kProducts, int kWidth>
struct GradientTiles {
  using Element = ElementOf<kProducts>;
  static constexpr bool kInPlace = kProducts != AttentionProducts::kBfloat16;
  static constexpr int kBytes =
      4 * kTileBytes<kProducts, kWidth> + kScoreBytes +
      (kInPlace ? 1 : 2) * kTileBytes<kProducts, kTile>;

  Element* queries;
  Element* out_gradients;
  Element* keys;
  Element* values;
  float* scores;
  Element* weights;    // the softmax
  Element* gradients;  // of scores

  __device__ explicit GradientTiles(float* memory) {
    TileMemory tiles(memory);
    queries = tiles.Tile<kProducts, kWidth>();
    out_gradients = tiles.Tile<kProducts, kWidth>();
    keys = tiles.Tile<kProducts, kWidth>();
    values = tiles.Tile<kProducts, kWidth>();
    scores = tiles.Scores();
    weights = tiles.Tile<kProducts, kTile>();
    if constexpr (kInPlace) {
      gradients = scores;
    } else {
      gradients = tiles.Tile<kProducts, kTile>();
    }
  }

  __device__ void LoadQueries(const AttentionTensors& t,
                              const AttentionGradients& g,
                              const AttentionHead& head, int64_t query) const {
    LoadTile<kProducts, kWidth>(t.qkv + head.first + query * head.stride,
                                head.stride, t.length - query, t.head, queries);
    LoadTile<kProducts, kWidth>(
        g.out_gradient + head.first_out + query * head.out_stride,
        head.out_stride, t.length - query, t.head, out_gradients);
  }
  __device__ void LoadKeys(const AttentionTensors& t, const AttentionHead& head,
                           int64_t key) const {
    const float* from =
        t.qkv + head.first + key * head.stride + head.out_stride;
    LoadTile<kProducts, kWidth>(from, head.stride, t.length - key, t.head,
                                keys);
    LoadTile<kProducts, kWidth>(from + head.out_stride, head.stride,
                                t.length - key, t.head, values);
  }

  // This warp's rows of `weights` and `gradients`, from the four tiles.
  __device__ void Scores(const AttentionTensors& t, const float* log_sums,
                         const float* products, const AttentionHead& head,
                         int64_t query, int64_t key) const {
    constexpr int kStride = kTileStride<kProducts, kTile>;
    const ScoreRow row(query, key);
    // Rows beyond the sequence get weights of 0, so they add nothing to
    // gradients of keys and values.
    const bool exists = query + row.row < t.length;
    const int64_t index = head.first_row + query + row.row;
    const float log_sum = exists ? log_sums[index] * kLog2E : 0.0f;
    const float product = exists ? products[index] : 0.0f;
    const float scale = t.scale * kLog2E;
    MultiplyRows<kProducts, kWidth>(queries, keys, scores);
    row.ForEach(scores, [&](float score, int column) {
      weights[row.row * kStride + column] = Format<kProducts>::Of(
          exists && column < row.sees ? std::exp2(score * scale - log_sum)
                                      : 0.0f);
    });
    __syncwarp();
    MultiplyRows<kProducts, kWidth>(out_gradients, values, scores);
    row.ForEach(scores, [&](float gradient, int column) {
      const int at = row.row * kStride + column;
      // The gradient of a softmax: weight * (gradient - sum of weight *
      // gradient), where the sum equals out * out_gradient of the row.
      gradients[at] =
          Format<kProducts>::Of(Format<kProducts>::Float(weights[at]) *
                                (gradient - product) * t.scale);
    });
    __syncwarp();
  }
};

template <AttentionProducts kProducts, int kWidth>
__global__ void AttentionQueryGradientKernel(
    AttentionTensors t, AttentionResults<const float> results,
    AttentionGradients g) {
  extern __shared__ __align__(32) float memory[];
  const GradientTiles<kProducts, kWidth> tile(memory);
  const int64_t tiles = TilesOf(t);
  const int64_t work = t.sequences * t.heads * tiles;
  for (int64_t i = blockIdx.x; i < work; i += gridDim.x) {
    const AttentionHead head(t, i / tiles);
    const int64_t query = (tiles - 1 - i % tiles) * kTile;  // longest first
    tile.LoadQueries(t, g, head, query);
    RowSums<kProducts, kWidth> sums;
    for (int64_t key = 0; key <= query; key += kTile) {
      tile.LoadKeys(t, head, key);
      __syncthreads();
      tile.Scores(t, results.log_sums, g.products, head, query, key);
      sums.template Add<wmma::row_major>(tile.gradients, tile.keys);
      __syncthreads();
    }
    sums.Store(tile.scores, g.qkv_gradient + head.first + query * head.stride,
               head.stride, t.length - query, t.head);
  }
}

template <AttentionProducts kProducts, int kWidth>
__global__ void AttentionKeyGradientKernel(
    AttentionTensors t, AttentionResults<const float> results,
    AttentionGradients g) {
  extern __shared__ __align__(32) float memory[];
  const GradientTiles<kProducts, kWidth> tile(memory);
  const int64_t tiles = TilesOf(t);
  const int64_t work = t.sequences * t.heads * tiles;
  for (int64_t i = blockIdx.x; i < work; i += gridDim.x) {
    const AttentionHead head(t, i / tiles);
    const int64_t key = i % tiles * kTile;  // longest first
    tile.LoadKeys(t, head, key);
    RowSums<kProducts, kWidth> of_keys;
    RowSums<kProducts, kWidth> of_values;
    for (int64_t query = key; query < t.length; query += kTile) {
      tile.LoadQueries(t, g, head, query);
      __syncthreads();
      tile.Scores(t, results.log_sums, g.products, head, query, key);
      __syncthreads();  // the transposes are made of rows of all warps
      of_values.template Add<wmma::col_major>(tile.weights, tile.out_gradients);
      of_keys.template Add<wmma::col_major>(tile.gradients, tile.queries);
      __syncthreads();
    }
    float* const to =
        g.qkv_gradient + head.first + key * head.stride + head.out_stride;
    of_keys.Store(tile.scores, to, head.stride, t.length - key, t.head);
    of_values.Store(tile.scores, to + head.out_stride, head.stride,
                    t.length - key, t.head);
  }
}

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_CUH_
