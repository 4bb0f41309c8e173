#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_LAUNCH_CUH_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_LAUNCH_CUH_

#include <cstddef>
#include <type_traits>

#include "worker/compute/cuda/attention.cuh"

namespace lockstep::worker::cuda {

inline int64_t AttentionBlocks(const AttentionTensors& t) {
  return t.sequences * t.heads * ((t.length + kTile - 1) / kTile);
}

// A kernel must be allowed each byte of shared memory above 48 KiB.
template <typename Kernel>
cudaError_t AllowShared(Kernel* kernel, size_t bytes) {
  return cudaFuncSetAttribute(kernel,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(bytes));
}

template <AttentionProducts kProducts, int kWidth>
cudaError_t LaunchForward(cudaStream_t stream, const AttentionTensors& t,
                          const AttentionResults<float>& results) {
  constexpr auto attention = &AttentionKernel<kProducts, kWidth>;
  constexpr size_t kBytes = ForwardTiles<kProducts, kWidth>::kBytes;
  if (const cudaError_t error = AllowShared(attention, kBytes);
      error != cudaSuccess) {
    return error;
  }
  const unsigned blocks = Blocks(AttentionBlocks(t), 1);
  attention<<<blocks, kTileThreads, kBytes, stream>>>(t, results);
  return cudaGetLastError();
}

template <AttentionProducts kProducts, int kWidth>
cudaError_t LaunchBackward(cudaStream_t stream, const AttentionTensors& t,
                           const AttentionResults<const float>& results,
                           const AttentionGradients& g) {
  constexpr auto of_queries = &AttentionQueryGradientKernel<kProducts, kWidth>;
  constexpr auto of_keys = &AttentionKeyGradientKernel<kProducts, kWidth>;
  constexpr size_t kBytes = GradientTiles<kProducts, kWidth>::kBytes;
  for (const auto kernel : {of_queries, of_keys}) {
    if (const cudaError_t error = AllowShared(kernel, kBytes);
        error != cudaSuccess) {
      return error;
    }
  }
  const int64_t rows = t.sequences * t.heads * t.length;
  unsigned blocks = Blocks(rows, kProductRows);
  AttentionRowProductsKernel<<<blocks, kTileThreads, 0, stream>>>(t, results,
                                                                  g);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
    return error;
  }
  blocks = Blocks(AttentionBlocks(t), 1);
  of_queries<<<blocks, kTileThreads, kBytes, stream>>>(t, results, g);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) {
    return error;
  }
  of_keys<<<blocks, kTileThreads, kBytes, stream>>>(t, results, g);
  return cudaGetLastError();
}

// launch(products, width), both as types, for the narrowest tile that a head
// fits in.
template <typename Launch>
cudaError_t ForKernel(AttentionProducts products, int64_t head, Launch launch) {
  const auto for_width = [&](auto constant) {
    if (head <= 64) return launch(constant, std::integral_constant<int, 64>{});
    return launch(constant, std::integral_constant<int, 128>{});
  };
  using Products = AttentionProducts;
  switch (products) {
    case Products::kTf32:
      return for_width(std::integral_constant<Products, Products::kTf32>{});
    case Products::kBfloat16:
      return for_width(std::integral_constant<Products, Products::kBfloat16>{});
    case Products::kFloat32:
      break;
  }
  return for_width(std::integral_constant<Products, Products::kFloat32>{});
}

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_LAUNCH_CUH_
