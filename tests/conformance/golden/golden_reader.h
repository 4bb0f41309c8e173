#ifndef LOCKSTEP_TESTS_CONFORMANCE_GOLDEN_GOLDEN_READER_H_
#define LOCKSTEP_TESTS_CONFORMANCE_GOLDEN_GOLDEN_READER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/dtype.h"
#include "nlohmann/json.hpp"
#include "server/sync/gradient.h"

// Reads traces that were recorded from TensorFlow: JSON lines, one scenario
// each. A scenario that lacks a field throws nlohmann's exceptions, which fail
// the test that replays it.
namespace lockstep::golden {

using Json = nlohmann::json;

//   kNotFound         no such file
//   kInvalidArgument  no scenario; a line that is not a scenario of format 1
absl::StatusOr<std::vector<Json>> ReadScenarios(const std::string& path);

// "OK", "CANCELLED", ...
std::string StatusName(const absl::Status& status);

DType ReadDType(const Json& scenario);

// "shape" of a scenario: null and unknown dimensions as PartialShape has them.
PartialShape ReadShape(const Json& scenario);
Reduction ReadReduction(const Json& scenario);

// A tensor's elements as bytes of `dtype`.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<std::byte> values;
};
Tensor ReadTensor(DType dtype, const Json& tensor);

// The first difference between two tensors of bytes, or "" when there is none:
// every bit counts, but any not-a-number equals any other.
std::string Difference(DType dtype, const std::vector<std::byte>& expected,
                       const std::vector<std::byte>& actual);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_CONFORMANCE_GOLDEN_GOLDEN_READER_H_
