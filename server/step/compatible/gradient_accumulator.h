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
// of arrival. If the shape is not wholly declared, the first gradient after
// each HandOut() fixes it until the next HandOut().
//
// `count` is the number of gradients in the sum; the owner must keep it.
//
// Threads: not thread-safe.
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

  // Checks that `gradient` can be added.
  //
  //   kInvalidArgument  not the shape of the sum; not the declared shape
  absl::Status Check(const View& gradient, int64_t count) const;

  // Adds `gradient`, for which Check() must have returned kOk with this
  // `count`.
  void Add(const View& gradient, int64_t count);

  // Returns the mean or the sum, and empties the sum. `count` must be at least
  // 1.
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
