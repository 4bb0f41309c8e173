#ifndef LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_H_
#define LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

// Causal attention in one kernel: the scores of 64 queries and 64 keys at a
// time stand in shared memory, and the gradient computes them again.
//
// Sums follow the shape alone, and no two blocks write one element, so equal
// inputs give equal bits.
namespace lockstep::worker::cuda {

// The widest head that the kernels take, in elements.
inline constexpr int64_t kMaxFusedHead = 128;

// Pointers are to float32 memory of the device. t is `length`, e is `head`, d
// is heads * head.
struct AttentionTensors {
  int64_t sequences;  // n
  int64_t length;
  int64_t heads;
  int64_t head;      // in [1, kMaxFusedHead]
  float scale;       // of a score
  const float* qkv;  // [n, t, 3d]: queries, keys, values
};

template <typename Float>  // float, or const float for the gradient
struct AttentionResults {
  Float* out;       // [n, t, d]
  Float* log_sums;  // [n, heads, t]: log(sum(exp(score))) of each row
};

struct AttentionGradients {
  const float* out_gradient;  // [n, t, d]
  float* products;            // [n, heads, t]: scratch, out * out_gradient
  float* qkv_gradient;        // [n, t, 3d]
};

// The precision of products, of which tensor cores do all.
enum class AttentionProducts : int {
  kFloat32 = 0,   // three products of operands of 11 bits: errors of 2^-21
  kTf32 = 1,      // one product
  kBfloat16 = 2,  // one product of operands of 8 bits, half as large in tiles
};

// Writes `results`. The error is the launch's.
cudaError_t LaunchAttention(cudaStream_t stream, AttentionProducts products,
                            const AttentionTensors& tensors,
                            const AttentionResults<float>& results);

// Writes `gradients`, from the `tensors` and `results` of LaunchAttention().
// The error is the launch's.
cudaError_t LaunchAttentionGradient(
    cudaStream_t stream, AttentionProducts products,
    const AttentionTensors& tensors,
    const AttentionResults<const float>& results,
    const AttentionGradients& gradients);

}  // namespace lockstep::worker::cuda

#endif  // LOCKSTEP_WORKER_COMPUTE_CUDA_ATTENTION_H_
