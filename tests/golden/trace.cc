#include "tests/golden/trace.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/numeric/float16.h"

namespace lockstep::golden {
namespace {

template <typename T>
T FromDouble(double value) {
  return static_cast<T>(value);
}
template <>
Float16 FromDouble<Float16>(double value) {
  return ToFloat16(value);
}

double ToDouble(Float16 value) { return ToFloat(value); }
double ToDouble(double value) { return value; }

template <typename T>
std::vector<std::byte> ToBytes(const Json& data) {
  std::vector<std::byte> bytes(data.size() * sizeof(T));
  for (size_t i = 0; i < data.size(); ++i) {
    const T element = FromDouble<T>(ReadNumber(data[i]));
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
  return bytes;
}

template <typename T>
std::vector<double> Expand(const std::vector<std::byte>& bytes) {
  std::vector<double> elements(bytes.size() / sizeof(T));
  for (size_t i = 0; i < elements.size(); ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    elements[i] = ToDouble(element);
  }
  return elements;
}

bool SameElement(double a, double b, Zeros zeros) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b &&
         (zeros == Zeros::kEqual || std::signbit(a) == std::signbit(b));
}

// Precision and least exponent of normal numbers.
struct Format {
  int digits;
  int min_exponent;
};
Format FormatOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {11, -14};
    case DType::kFloat32:
      return {24, -126};
    case DType::kFloat64:
    case DType::kBFloat16:  // no traces of this type
      break;
  }
  return {53, -1022};
}

double UnitInTheLastPlace(DType dtype, double x) {
  const Format format = FormatOf(dtype);
  int exponent = x == 0 ? format.min_exponent : std::ilogb(x);
  exponent = std::max(exponent, format.min_exponent);
  return std::ldexp(1.0, exponent - format.digits + 1);
}

void CheckSize(const Tensor& tensor, size_t size) {
  size_t elements = 1;
  for (const int64_t dim : tensor.shape) {
    if (dim < 0 || __builtin_mul_overflow(elements, size_t(dim), &elements)) {
      throw BadTrace("a tensor's shape is negative or too large");
    }
  }
  if (elements == size) return;
  throw BadTrace(absl::StrCat("a tensor of shape [",
                              absl::StrJoin(tensor.shape, ","), "] has ", size,
                              " elements"));
}

absl::Status CheckScenario(const Json& scenario) {
  if (scenario.is_discarded()) {
    return absl::InvalidArgumentError("not a JSON object on one line");
  }
  if (!scenario.is_object()) {
    return absl::InvalidArgumentError("not a JSON object");
  }
  const auto format = scenario.find("format");
  if (format == scenario.end() || *format != 1) {
    return absl::InvalidArgumentError("\"format\" is not 1");
  }
  for (const char* field : {"file", "name"}) {
    if (scenario.contains(field) && scenario[field].is_string()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", field, "\" is missing or no text"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Scenario>> ReadScenarios(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path));
  }
  return ParseScenarios(text.str(), path);
}

absl::StatusOr<std::vector<Scenario>> ParseScenarios(absl::string_view text,
                                                     absl::string_view source) {
  std::vector<Scenario> scenarios;
  int line = 0;
  for (const absl::string_view one : absl::StrSplit(text, '\n')) {
    ++line;
    if (one.empty()) continue;
    Json json = Json::parse(one, nullptr, /*allow_exceptions=*/false);
    if (absl::Status status = CheckScenario(json); !status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(source, ":", line, ": ", status.message()));
    }
    scenarios.push_back({line, std::move(json)});
  }
  if (scenarios.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ":1: the file has no scenario"));
  }
  return scenarios;
}

std::string StatusName(const absl::Status& status) {
  return absl::StatusCodeToString(status.code());
}

int64_t ReadInt(const Json& number) {
  const bool fits =
      number.is_number_integer() &&
      (!number.is_number_unsigned() ||
       number.get<uint64_t>() <=
           static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  if (!fits) {
    throw BadTrace(absl::StrCat(number.dump(), " is no whole number"));
  }
  return number.get<int64_t>();
}

std::vector<int64_t> ReadInts(const Json& numbers) {
  if (!numbers.is_array()) {
    throw BadTrace(absl::StrCat(numbers.dump(), " is no list"));
  }
  std::vector<int64_t> result;
  for (const Json& number : numbers) result.push_back(ReadInt(number));
  return result;
}

double ReadNumber(const Json& number) {
  if (number.is_number()) return number.get<double>();
  const double infinity = std::numeric_limits<double>::infinity();
  if (number == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (number == "inf") return infinity;
  if (number == "-inf") return -infinity;
  throw BadTrace(absl::StrCat(number.dump(), " is no number"));
}

double RoundTo(DType dtype, double number) {
  switch (dtype) {
    case DType::kFloat16:
      return ToFloat(ToFloat16(number));
    case DType::kFloat32:
      return static_cast<float>(number);
    case DType::kFloat64:
    case DType::kBFloat16:  // no traces of this type
      break;
  }
  return number;
}

DType ReadDType(const Json& scenario) {
  const auto dtype = ParseDType(scenario.at("dtype").get<std::string>());
  if (!dtype.ok()) throw BadTrace(std::string(dtype.status().message()));
  if (*dtype == DType::kBFloat16) {
    throw BadTrace("dtype bfloat16: TensorFlow has no traces of it");
  }
  return *dtype;
}

server::PartialShape ReadShape(const Json& scenario) {
  const Json& shape = scenario.at("shape");
  if (shape.is_null()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Json& dim : shape) {
    dims.push_back(dim.is_null() ? -1 : ReadInt(dim));
  }
  return dims;
}

server::Reduction ReadReduction(const Json& scenario) {
  const std::string name = scenario.at("reduction");
  if (name == "MEAN") return server::Reduction::kMean;
  if (name == "SUM") return server::Reduction::kSum;
  throw BadTrace(absl::StrCat("reduction \"", name, "\""));
}

Tensor ReadTensor(DType dtype, const Json& tensor) {
  Tensor result{ReadInts(tensor.at("shape")), {}};
  const Json& data = tensor.at("data");
  if (!data.is_array()) throw BadTrace("a tensor's data is no list");
  CheckSize(result, data.size());
  switch (dtype) {
    case DType::kFloat16:
      result.values = ToBytes<Float16>(data);
      break;
    case DType::kFloat32:
      result.values = ToBytes<float>(data);
      break;
    case DType::kFloat64:
      result.values = ToBytes<double>(data);
      break;
    case DType::kBFloat16:
      throw BadTrace("TensorFlow has no traces of bfloat16");
  }
  return result;
}

std::vector<double> ToDoubles(DType dtype,
                              const std::vector<std::byte>& bytes) {
  switch (dtype) {
    case DType::kFloat16:
      return Expand<Float16>(bytes);
    case DType::kFloat32:
      return Expand<float>(bytes);
    case DType::kFloat64:
    case DType::kBFloat16:  // no traces of this type
      break;
  }
  return Expand<double>(bytes);
}

std::string Text(const std::vector<double>& elements) {
  return absl::StrCat("[",
                      absl::StrJoin(elements, ",",
                                    [](std::string* out, double element) {
                                      absl::StrAppendFormat(out, "%.17g",
                                                            element);
                                    }),
                      "]");
}

bool Same(DType dtype, const std::vector<std::byte>& a,
          const std::vector<std::byte>& b, Zeros zeros) {
  const std::vector<double> x = ToDoubles(dtype, a);
  const std::vector<double> y = ToDoubles(dtype, b);
  if (x.size() != y.size()) return false;
  for (size_t i = 0; i < x.size(); ++i) {
    if (!SameElement(x[i], y[i], zeros)) return false;
  }
  return true;
}

bool Near(DType dtype, const std::vector<double>& a,
          const std::vector<double>& b, const std::vector<double>& scale,
          double ulps) {
  if (a.size() != b.size() || a.size() != scale.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (SameElement(a[i], b[i], Zeros::kEqual)) continue;
    if (ulps == 0 || !std::isfinite(a[i]) || !std::isfinite(b[i])) return false;
    if (!std::isfinite(scale[i])) continue;
    if (std::fabs(a[i] - b[i]) > ulps * UnitInTheLastPlace(dtype, scale[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace lockstep::golden
