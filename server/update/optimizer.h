#ifndef LOCKSTEP_SERVER_UPDATE_OPTIMIZER_H_
#define LOCKSTEP_SERVER_UPDATE_OPTIMIZER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "common/numeric/dtype.h"
#include "server/update/gradient_slices.h"
#include "server/update/slots.h"

namespace lockstep::server {

// ApplyInput is one update of one part: the state before it, the memory for the
// state after it, and the gradients.
//
// `new_value` must be `old_value` itself (update in place) or must not overlap
// it; the same holds for each slot. All must start at a multiple of the element
// size and have the same length.
//
// Units:   spans count bytes.
// Borrows: all memory, for the duration of Apply().
struct ApplyInput {
  DType dtype = DType::kFloat32;
  double learning_rate = 0;  // rounded to float32 first, like all of these
  AdamPowers powers;         // of this step; used by TensorFlow's Adams alone
  // Used by PyTorch's rules alone.
  int64_t updates = 0;  // of the variable before this one
  bool decays = true;   // the variable has weight decay
  int64_t step = 0;     // committed before this update; AdagradDA alone

  // Summed in this order, then divided by `divisor` (1: no division). One
  // gradient and divisor 1 is the plain update.
  absl::Span<const GradientSlices> gradients;
  // Another order of the sum, as MeanReader takes it; empty: none.
  absl::Span<const int> merges;
  int64_t divisor = 1;
  // The mean is multiplied by this, and rounded once more unless it is 1.
  double scale = 1;
  // `gradients` is one mean as StoreMean() writes it: float32 for bfloat16.
  bool is_mean = false;
  // If not null: set to false if the mean holds NaN or an infinity, because a
  // gradient does or because their sum overflows; else to true, and then all
  // gradients are finite.
  bool* mean_is_finite = nullptr;

  absl::Span<const std::byte> old_value;
  absl::Span<std::byte> new_value;
  std::array<absl::Span<const std::byte>, kMaxSlots> old_slots;
  std::array<absl::Span<std::byte>, kMaxSlots> new_slots;
};

// Optimizer is the update rule of one kind with its hyper-parameters, for dense
// gradients: TensorFlow's, bit for bit except for the reciprocal square roots
// and powers that adaptive_kernels.h names; or PyTorch's, as torch_kernels.h
// says.
//
// Subnormal operands and results count as zeros of their sign, except in
// float16. Variables of bfloat16, which TensorFlow's rules do not have, are
// updated by the rule of float32, with the result rounded once.
//
// Threads: safe to share; two Apply() calls must not touch the same memory.
class Optimizer {
 public:
  explicit Optimizer(const OptimizerConfig& config) : config_(config) {}

  // Averages the gradients and applies the update in one pass, a block of
  // elements at a time. Non-finite gradients are applied like any other.
  //
  //   kInvalidArgument  no gradient, divisor below 1, lengths that differ or
  //                     are no multiple of the element size, bfloat16 gradients
  //                     of float64, misaligned memory, old and new memory that
  //                     overlap in part
  absl::Status Apply(const ApplyInput& input) const;

  const OptimizerConfig& config() const { return config_; }

 private:
  absl::Status Check(const ApplyInput& input) const;
  // All return whether the mean was finite.
  bool ApplyAs(const ApplyInput& input) const;
  template <typename T>
  bool ApplyBlocks(const ApplyInput& input) const;
  bool ApplyBFloat16(const ApplyInput& input) const;

  const OptimizerConfig config_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_OPTIMIZER_H_
