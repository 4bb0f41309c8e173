#ifndef LOCKSTEP_TESTS_BENCHMARK_BENCHMARK_MODEL_H_
#define LOCKSTEP_TESTS_BENCHMARK_BENCHMARK_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/plan/variable_spec.h"

namespace lockstep::benchmark {

// The variables of a model without computation, all float32 and zero at first:
//
//   dense     one tensor of `bytes`
//   resnet50  161 tensors with sizes in the proportions of ResNet-50, `bytes`
//             together
//   scalar    one element, for any `bytes`
//
//   kInvalidArgument  no such model; `bytes` is no multiple of 4, below 4, or
//                     too few for one element per tensor
absl::StatusOr<std::vector<VariableSpec>> MakeBenchmarkVariables(
    const std::string& model, int64_t bytes);

// Bytes of all variables together.
int64_t TotalBytes(const std::vector<VariableSpec>& variables);

// Every gradient element of worker `worker` in every step; with `equal`, that
// of worker 0.
float GradientOf(int worker, bool equal = false);

// MomentumOracle computes the value of one element of such a model step by
// step.
class MomentumOracle {
 public:
  // `workers` is the number of averaged gradients.
  explicit MomentumOracle(int workers, bool equal_gradients = false);

  void AdvanceTo(int64_t step);
  //   kInternal  `element` is not the result of `step_` steps from zero
  absl::Status Check(float element) const;

 private:
  float mean_ = 0;
  int64_t step_ = 0;
  float velocity_ = 0;
  float value_ = 0;
};

// The update rule of every candidate.
inline constexpr float kMomentum = 0.9f;
inline constexpr float kLearningRate = 0.01f;

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_BENCHMARK_MODEL_H_
