#ifndef LOCKSTEP_TESTS_GOLDEN_TRACE_H_
#define LOCKSTEP_TESTS_GOLDEN_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/numeric/dtype.h"
#include "nlohmann/json.hpp"
#include "server/step/gradient.h"

// Reads traces that were recorded from TensorFlow: JSON lines, one scenario
// each. Missing fields and wrong types throw: BadTrace here, or exceptions of
// the JSON library. Callers that replay a scenario must catch both.
namespace lockstep::golden {

using Json = nlohmann::json;

class BadTrace : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Scenario {
  int line = 0;  // line number in its file, from 1
  Json json;
};

//   kNotFound         no such file
//   kInvalidArgument  "file:line: ..." for a line that is no scenario of
//                     format 1; a file without scenarios
absl::StatusOr<std::vector<Scenario>> ReadScenarios(const std::string& path);

// Parses the text of a file; `source` names it in messages. Errors as
// ReadScenarios(), except kNotFound.
absl::StatusOr<std::vector<Scenario>> ParseScenarios(absl::string_view text,
                                                     absl::string_view source);

// Returns "OK", "CANCELLED", ...
std::string StatusName(const absl::Status& status);

// Returns a whole number, which JSON has no type for.
int64_t ReadInt(const Json& number);
std::vector<int64_t> ReadInts(const Json& numbers);
// Returns a number, also of "nan", "inf" and "-inf".
double ReadNumber(const Json& number);

// Rounds a number to the element type.
double RoundTo(DType dtype, double number);

DType ReadDType(const Json& scenario);

// Reads "shape" of a scenario: null and unknown dimensions as in PartialShape.
server::PartialShape ReadShape(const Json& scenario);
server::Reduction ReadReduction(const Json& scenario);

// A tensor's elements as bytes of `dtype`; the shape gives their number.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<std::byte> values;
};
Tensor ReadTensor(DType dtype, const Json& tensor);

// Converts elements to doubles, which hold every element exactly.
std::vector<double> ToDoubles(DType dtype, const std::vector<std::byte>& bytes);

// Returns "[1,2]", for messages.
std::string Text(const std::vector<double>& elements);

// The comparison of zeros; all NaNs are equal.
enum class Zeros {
  kDiffer,  // 0 and -0 differ, as all other bits
  kEqual,
};
bool Same(DType dtype, const std::vector<std::byte>& a,
          const std::vector<std::byte>& b, Zeros zeros);

// True if each |a[i] - b[i]| is at most `ulps` units in the last place of
// `scale[i]`, for normal numbers of `dtype`. With `ulps` 0, and for elements
// that are not finite, they must be equal.
bool Near(DType dtype, const std::vector<double>& a,
          const std::vector<double>& b, const std::vector<double>& scale,
          double ulps);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_TRACE_H_
