#ifndef LOCKSTEP_SERVER_STEP_COMPATIBLE_SPARSE_ACCUMULATOR_H_
#define LOCKSTEP_SERVER_STEP_COMPATIBLE_SPARSE_ACCUMULATOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/numeric/dtype.h"
#include "server/step/compatible/conditional_accumulator.h"
#include "server/step/gradient.h"
#include "server/step/sparse_rows.h"

namespace lockstep::server {

// The treatment of the rows of a gradient before they are merged.
enum class SparseInput {
  // As TensorFlow: SparseRows::Merged() of the rows as they were sent, so rows
  // of equal index may stay side by side if indices do not ascend. Indices are
  // checked only against a declared upper bound.
  kAsSent,
  // Rows are sorted by index, and repeated ones added, which changes nothing
  // for ascending indices. Indices that are negative or beyond a known limit
  // are refused.
  kCanonical,
};

// SparseSum is the running sum of sparse gradients, added in order of arrival.
// Its mean is per row: each row is divided by the number of gradients that have
// it.
//
// `count` is the number of gradients in the sum; the owner must keep it.
//
// Threads: not thread-safe.
class SparseSum {
 public:
  struct Options {
    DType dtype = DType::kFloat32;
    PartialShape shape;  // rank 0 says nothing, as no shape does
    Reduction reduction = Reduction::kMean;
    SparseInput input = SparseInput::kCanonical;
  };
  using View = SparseGradientView;
  using Value = SparseGradient;

  explicit SparseSum(const Options& options);

  //   kInvalidArgument  indices that are no vector, or not one per row; a
  //                     supplied shape or rows that fit neither the declared
  //                     shape nor the sum; indices out of range
  absl::Status Check(const View& gradient, int64_t count) const;

  // Adds `gradient`, for which Check() must have returned kOk with this
  // `count`.
  void Add(const View& gradient, int64_t count);

  // Returns the mean or the sum, and empties the sum. `count` must be at least
  // 1.
  Value HandOut(int64_t count);

 private:
  absl::Status CheckSuppliedShape(const View& gradient) const;
  absl::Status CheckIndices(const View& gradient) const;
  absl::Status CheckRowShape(const View& gradient, int64_t count) const;

  const Options options_;
  const std::vector<int64_t> declared_;  // negative where unknown
  std::vector<int64_t> values_shape_;    // shape of the sum
  SparseRows rows_;                      // meaningful while `count` > 0
};

// SparseAccumulator is one variable part's accumulator of sparse gradients.
using SparseAccumulator = ConditionalAccumulator<SparseSum>;

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STEP_COMPATIBLE_SPARSE_ACCUMULATOR_H_
