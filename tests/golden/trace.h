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
// each. What a scenario lacks, or what is of a wrong type, is thrown: as
// BadTrace here, as one of its own exceptions by the JSON library. Who replays
// a scenario catches both.
namespace lockstep::golden {

using Json = nlohmann::json;

class BadTrace : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Scenario {
  int line = 0;  // in its file, from 1
  Json json;
};

//   kNotFound         no such file
//   kInvalidArgument  "file:line: ..." for a line that is no scenario of
//                     format 1; a file without any
absl::StatusOr<std::vector<Scenario>> ReadScenarios(const std::string& path);

// Of the text of a file; `source` names it in messages. Errors as
// ReadScenarios(), but kNotFound.
absl::StatusOr<std::vector<Scenario>> ParseScenarios(absl::string_view text,
                                                     absl::string_view source);

// "OK", "CANCELLED", ...
std::string StatusName(const absl::Status& status);

// A whole number, which JSON has no type for.
int64_t ReadInt(const Json& number);
std::vector<int64_t> ReadInts(const Json& numbers);
// A number, or one of "nan", "inf" and "-inf".
double ReadNumber(const Json& number);

// What of a number an element can hold.
double RoundTo(DType dtype, double number);

DType ReadDType(const Json& scenario);

// "shape" of a scenario: null and unknown dimensions as PartialShape has them.
PartialShape ReadShape(const Json& scenario);
Reduction ReadReduction(const Json& scenario);

// A tensor's elements as bytes of `dtype`, as many as its shape says.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<std::byte> values;
};
Tensor ReadTensor(DType dtype, const Json& tensor);

// Elements as doubles, which hold every element exactly.
std::vector<double> ToDoubles(DType dtype, const std::vector<std::byte>& bytes);

// "[1,2]", for messages.
std::string Text(const std::vector<double>& elements);

// Any not-a-number equals any other.
enum class Zeros {
  kDiffer,  // 0 and -0 differ, as every other bit
  kEqual,
};
bool Same(DType dtype, const std::vector<std::byte>& a,
          const std::vector<std::byte>& b, Zeros zeros);

// Whether each |a[i] - b[i]| is at most `ulps` times the unit in the last
// place of `scale[i]`, of numbers of `dtype` that are not subnormal. With 0
// they are to be equal, as is what is not finite in any case.
bool Near(DType dtype, const std::vector<double>& a,
          const std::vector<double>& b, const std::vector<double>& scale,
          double ulps);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_TRACE_H_
