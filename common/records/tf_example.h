#ifndef LOCKSTEP_COMMON_RECORDS_TF_EXAMPLE_H_
#define LOCKSTEP_COMMON_RECORDS_TF_EXAMPLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// One feature of an example: a list of one of these types, or of none.
struct TfFeature {
  std::vector<std::string> bytes = {};
  std::vector<float> floats = {};
  std::vector<int64_t> ints = {};
};

// A tf.train.Example: features by name.
using TfExample = std::map<std::string, TfFeature>;

// Reads a serialized tf.train.Example. Numbers may be packed or not; fields
// that a newer version has are passed over; of a feature that occurs twice the
// last one counts, as in protobuf.
//
//   kInvalidArgument  no such message; says at which byte
absl::StatusOr<TfExample> ParseTfExample(absl::string_view bytes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_RECORDS_TF_EXAMPLE_H_
