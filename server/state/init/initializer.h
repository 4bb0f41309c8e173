#ifndef LOCKSTEP_SERVER_STATE_INIT_INITIALIZER_H_
#define LOCKSTEP_SERVER_STATE_INIT_INITIALIZER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/plan/variable_spec.h"
#include "server/state/init/counter_random.h"

namespace lockstep::server {

// Inputs and outputs of one unit, as TensorFlow counts them: rows and columns
// of a matrix; for more dimensions the last two, each times the product of the
// others (the receptive field); the length of a vector for both; 1 and 1 for a
// scalar.
struct Fans {
  double in = 1;
  double out = 1;
};
Fans ComputeFans(const std::vector<int64_t>& shape);

// InitialValues gives the initial values of one variable, any range of them.
// Element i follows from (seed, spec.name, i) alone: the bits are the same
// however the variable is cut. Only an orthogonal matrix is made whole first.
//
// Threads: immutable.
class InitialValues {
 public:
  // Prepares the values of a variable.
  //
  //   kInvalidArgument  an orthogonal matrix of a rank below 2, or of more than
  //                     2^22 elements
  static absl::StatusOr<InitialValues> Make(const VariableSpec& spec,
                                            uint64_t seed);

  // Writes elements from `offset` on into `values`, as many as it holds;
  // `values` must start at a multiple of the element size.
  //
  //   kInvalidArgument  `values` is misaligned or no whole number of elements,
  //                     or the range leaves the variable; unknown dtype
  absl::Status Fill(int64_t offset, absl::Span<std::byte> values) const;

  // Writes the row of a key of a growing table. Element i of the row depends
  // only on (seed, spec.name, key, i). Fans are those of spec.shape, which has
  // the largest number of rows.
  //
  //   kInvalidArgument  `values` is no row, or misaligned; an orthogonal
  //                     matrix, or unknown dtype
  absl::Status FillRow(int64_t key, absl::Span<std::byte> values) const;

 private:
  InitialValues(const VariableSpec& spec, uint64_t seed)
      : spec_(spec), random_(seed, spec.name) {}
  // Whole elements, drawn from `random`.
  absl::Status Draw(const CounterRandom& random, int64_t offset,
                    absl::Span<std::byte> values) const;
  template <typename T>
  void FillAs(const CounterRandom& random, int64_t offset,
              absl::Span<std::byte> values) const;

  VariableSpec spec_;
  CounterRandom random_;
  std::vector<double> matrix_;  // kOrthogonal alone
};

}  // namespace lockstep::server

#endif  // LOCKSTEP_SERVER_STATE_INIT_INITIALIZER_H_
