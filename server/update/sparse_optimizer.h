#ifndef LOCKSTEP_SERVER_UPDATE_SPARSE_OPTIMIZER_H_
#define LOCKSTEP_SERVER_UPDATE_SPARSE_OPTIMIZER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "common/numeric/dtype.h"
#include "server/update/slots.h"

namespace lockstep::server {

// SparseApplyInput is one update in place of a variable, or of a part of whole
// rows, by a gradient of some of its rows.
//
// Units:   spans of bytes count bytes; value and slots start at a multiple of
//          the element size, the gradient's rows anywhere.
// Borrows: all memory, for the duration of the call.
struct SparseApplyInput {
  DType dtype = DType::kFloat32;
  double learning_rate = 0;
  AdamPowers powers;     // of this step; used by Adam and LazyAdam alone
  int64_t updates = 0;   // as in ApplyInput
  bool decays = true;    // likewise
  int64_t step = 0;      // likewise
  bool decayed = false;  // Adam: Decay() has been called for this step

  absl::Span<const int64_t> indices;       // of rows; may repeat
  absl::Span<const int64_t> values_shape;  // of the gradient; rows first
  absl::Span<const std::byte> values;

  absl::Span<const int64_t> shape;  // of the variable or part
  absl::Span<std::byte> value;
  std::array<absl::Span<std::byte>, kMaxSlots> slots;
};

// SparseOptimizer is TensorFlow's sparse update rule of one kind, bit for bit;
// or PyTorch's rule for dense gradients, applied to the rows of the gradient.
// Gradients of a row that occurs more than once are added first, in order of
// appearance; only GradientDescent applies one after the other.
//
// Rows without a gradient do not change, with one exception: Adam decays the
// slots of all rows and moves all of them, as if their gradient were zero.
// LazyAdam does not.
//
// Subnormal operands and results count as zeros of their sign, except in
// float16. Rows of bfloat16, which TensorFlow's rules do not have, are updated
// by the rule of float32, with each result rounded once.
//
// Threads: safe to share; two calls must not touch the same memory.
// Errors:  a call that fails has changed nothing. (TensorFlow's may have.)
class SparseOptimizer {
 public:
  explicit SparseOptimizer(const OptimizerConfig& config) : config_(config) {}

  // Applies the gradient of some rows.
  //
  //   kInvalidArgument  rows that are not one per index or not as wide as the
  //                     variable's; an index out of range; memory whose length
  //                     does not fit the shapes, or misaligned; Ftrl with a
  //                     learning rate that is not above 0 or an l2 below 0
  absl::Status Apply(const SparseApplyInput& input) const;

  // Returns the error of Apply() that the learning rate causes, if any. Needs
  // no gradient.
  //
  //   kInvalidArgument  Ftrl with a rate that is not above 0 in `dtype`, or an
  //                     l2 below 0
  absl::Status CheckRate(DType dtype, double learning_rate) const;

  // Adam: decays m and v, which needs no gradient, ahead of Apply(). TensorFlow
  // does it when it begins to wait for the gradients of a step. No effect for
  // other optimizers.
  //
  //   kInvalidArgument  slots that are no whole elements, misaligned or of
  //                     different lengths
  absl::Status Decay(DType dtype,
                     absl::Span<const absl::Span<std::byte>> slots) const;

  const OptimizerConfig& config() const { return config_; }

 private:
  template <typename T>
  void ApplyRows(const SparseApplyInput& input) const;
  void ApplyBFloat16(const SparseApplyInput& input) const;

  const OptimizerConfig config_;
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_SPARSE_OPTIMIZER_H_
