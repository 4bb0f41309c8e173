#include "worker/compute/cuda/attention.h"
#include "worker/compute/cuda/attention_launch.cuh"

namespace lockstep::worker::cuda {

cudaError_t LaunchAttention(cudaStream_t stream, AttentionProducts products,
                            const AttentionTensors& tensors,
                            const AttentionResults<float>& results) {
  return ForKernel(products, tensors.head, [&](auto product, auto width) {
    return LaunchForward<product(), width()>(stream, tensors, results);
  });
}

cudaError_t LaunchAttentionGradient(
    cudaStream_t stream, AttentionProducts products,
    const AttentionTensors& tensors,
    const AttentionResults<const float>& results,
    const AttentionGradients& gradients) {
  return ForKernel(products, tensors.head, [&](auto product, auto width) {
    return LaunchBackward<product(), width()>(stream, tensors, results,
                                              gradients);
  });
}

}  // namespace lockstep::worker::cuda
