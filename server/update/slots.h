#ifndef LOCKSTEP_SERVER_UPDATE_SLOTS_H_
#define LOCKSTEP_SERVER_UPDATE_SLOTS_H_

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/job/job_config.h"
#include "common/numeric/dtype.h"

namespace lockstep::server {

// Tensors and scalars that optimizers keep beside variables.

// No optimizer keeps more slots than this for a variable.
inline constexpr size_t kMaxSlots = 3;

// One slot of each variable. A slot has the shape and dtype of its variable.
struct SlotSpec {
  // As TensorFlow's get_slot() calls it: "accumulator"; or PyTorch's state.
  std::string key;
  std::string name;              // suffix of the variable's name: "Adagrad"
  double initial_value = 0;      // each element's
  bool starts_as_value = false;  // as the variable's value instead

  bool operator==(const SlotSpec&) const = default;
};

// In the order in which TensorFlow makes them, which numbers their names:
// "Adam" (m) and "Adam_1" (v). PyTorch's have PyTorch's names.
std::vector<SlotSpec> Slots(const OptimizerConfig& config);

// True if an update depends on the number of earlier updates of the same
// variable, which is kept beside it under the name kUpdatesName.
bool CountsUpdates(const OptimizerConfig& config);
inline constexpr char kUpdatesName[] = "step";  // PyTorch's name

// The slot of a variable with a moving average, after those of its optimizer.
SlotSpec MovingAverageSlot();

// The number of slots.
size_t NumSlots(const OptimizerConfig& config);

// The names of the slots.
std::vector<std::string> SlotNames(const OptimizerConfig& config);

// AdamPowers are the two scalars that Adam shares between all variables of a
// job, beta1^t and beta2^t for step t = 1, 2, ... They are float32 for every
// dtype and part of the state: they round once in each step.
struct AdamPowers {
  float beta1_power = 0;  // 0 and unused unless the optimizer is Adam
  float beta2_power = 0;

  bool operator==(const AdamPowers&) const = default;
};

// The powers of every optimizer of a job, in the order of OptimizersOf().
using AllAdamPowers = std::array<AdamPowers, kMaxOptimizers>;

// True if the optimizer has these powers: Adam and LazyAdam.
bool HasAdamPowers(const OptimizerConfig& config);

// The powers of the first step: beta1 and beta2 themselves.
AdamPowers InitialAdamPowers(const OptimizerConfig& config);

// The powers of the step after the one that used `powers`. Must be called once
// per step, after all variables, even if no variable got a gradient.
AdamPowers NextAdamPowers(const OptimizerConfig& config, AdamPowers powers);

// Sets whole elements of `dtype` to `value`, rounded to it once.
void FillElements(DType dtype, double value, absl::Span<std::byte> elements);

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_UPDATE_SLOTS_H_
