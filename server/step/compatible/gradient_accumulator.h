#ifndef LOCKSTEP_SERVER_STEP_COMPATIBLE_GRADIENT_ACCUMULATOR_H_
#define LOCKSTEP_SERVER_STEP_COMPATIBLE_GRADIENT_ACCUMULATOR_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/numeric/dtype.h"
#include "server/step/compatible/conditional_accumulator.h"
#include "server/step/gradient.h"

namespace lockstep::server {

// DenseSum is the running sum of dense gradients of one shape, added in order
// of arrival. Where the shape is not wholly declared, the first gradient after
// each hand-out fixes it until the next one.
//
// `count` is the number of gradients in the sum, which its owner keeps.
class DenseSum {
 public:
  struct Options {
    DType dtype = DType::kFloat32;
    PartialShape shape;
    Reduction reduction = Reduction::kMean;
  };
  using View = DenseGradientView;
  using Value = DenseGradient;

  explicit DenseSum(Options options) : options_(std::move(options)) {}

  //   kInvalidArgument  not the shape of the sum; not the declared shape
  absl::Status Check(const View& gradient, int64_t count) const;

  // `gradient` has passed Check with the same `count`.
  void Add(const View& gradient, int64_t count);

  // Returns the mean or the sum and is empty again; `count` is at least 1.
  Value HandOut(int64_t count);

 private:
  const Options options_;
  std::vector<int64_t> shape_;     // of the sum
  std::vector<std::byte> values_;  // meaningful while `count` > 0
};

// GradientAccumulator is one variable part's accumulator of dense gradients.
using GradientAccumulator = ConditionalAccumulator<DenseSum>;

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_COMPATIBLE_GRADIENT_ACCUMULATOR_H_
