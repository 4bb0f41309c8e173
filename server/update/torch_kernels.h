#ifndef LOCKSTEP_SERVER_UPDATE_TORCH_KERNELS_H_
#define LOCKSTEP_SERVER_UPDATE_TORCH_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "common/job/job_config.h"
#include "common/numeric/float16.h"
#include "server/update/update_kernels.h"

// The update rules of torch.optim, in the order of operations of its plain loop
// over tensors. Every operation rounds once, while PyTorch fuses some
// multiplications with additions: a step differs from PyTorch's by at most 2
// units in the last place of float32.
//
// Hyper-parameters stay float64, as in Python, and are rounded to the type of
// the arithmetic when they are combined with an element. Float16 is computed in
// float32, and each result is rounded once.
namespace lockstep::server {

struct TorchSgd {
  double rate = 0;
  double momentum = 0;         // 0: no slot
  double gradient_factor = 1;  // 1 - dampening, or 1 in the first update
  double weight_decay = 0;
  bool nesterov = false;
};

struct TorchAdam {
  double step_size = 0;  // the rate with the bias correction of m
  double beta1 = 0;
  double beta2 = 0;
  double root_correction = 1;  // of v: sqrt(1 - beta2 ^ updates)
  double epsilon = 0;
  double weight_decay = 0;  // added to the gradient
  double shrink = 1;  // multiplies the value first: decoupled weight decay
};

// `updates` is the number of updates of the variable before this one; `decays`
// is true if it has weight decay.
TorchSgd MakeTorchSgd(const OptimizerConfig& config, double learning_rate,
                      int64_t updates, bool decays);
TorchAdam MakeTorchAdam(const OptimizerConfig& config, double learning_rate,
                        int64_t updates, bool decays);

// Slot 0, if there is momentum, is the momentum buffer.
void TorchSgdKernel(const UpdateBlock<float>& block, const TorchSgd& sgd);
void TorchSgdKernel(const UpdateBlock<double>& block, const TorchSgd& sgd);
void TorchSgdKernel(const UpdateBlock<Float16>& block, const TorchSgd& sgd);

// For torch.nn.utils.clip_grad_norm_, with gradients that are summed elsewhere.
// Lane j receives the squares of the elements j, j + kSquareLanes, ..., in
// float64: the sum depends neither on the processor nor on the division of a
// part into blocks of a multiple of kSquareLanes. `elements` may have any
// address.
inline constexpr size_t kSquareLanes = 8;
void AddSquaresOfFloats(size_t count, const std::byte* elements, double* lanes);
void AddSquaresOfDoubles(size_t count, const std::byte* elements,
                         double* lanes);
void AddSquaresOfFloat16s(size_t count, const std::byte* elements,
                          double* lanes);

// scaled[i] = elements[i] * factor, rounded once; `elements` may have any
// address, also that of `scaled`.
void ScaleKernel(size_t count, const std::byte* elements, double factor,
                 float* scaled);
void ScaleKernel(size_t count, const std::byte* elements, double factor,
                 double* scaled);
void ScaleKernel(size_t count, const std::byte* elements, double factor,
                 Float16* scaled);

// Slots are m, then v.
void TorchAdamKernel(const UpdateBlock<float>& block, const TorchAdam& adam);
void TorchAdamKernel(const UpdateBlock<double>& block, const TorchAdam& adam);
void TorchAdamKernel(const UpdateBlock<Float16>& block, const TorchAdam& adam);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_TORCH_KERNELS_H_
