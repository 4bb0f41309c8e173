#include "tests/conformance/golden/golden_reader.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/float16.h"

namespace lockstep::golden {
namespace {

double ReadNumber(const Json& number) {
  if (!number.is_string()) return number.get<double>();
  return std::strtod(number.get<std::string>().c_str(), nullptr);
}

template <typename T>
T FromDouble(double value) {
  return static_cast<T>(value);
}

template <>
Float16 FromDouble<Float16>(double value) {
  return ToFloat16(static_cast<float>(value));
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
T ElementAt(const std::vector<std::byte>& bytes, size_t i) {
  T element;
  std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
  return element;
}

template <typename T>
std::string FirstDifference(const std::vector<std::byte>& expected,
                            const std::vector<std::byte>& actual) {
  for (size_t i = 0; i < expected.size() / sizeof(T); ++i) {
    const size_t offset = i * sizeof(T);
    const bool same_bits = std::memcmp(expected.data() + offset,
                                       actual.data() + offset, sizeof(T)) == 0;
    const double e = ToDouble(ElementAt<T>(expected, i));
    const double a = ToDouble(ElementAt<T>(actual, i));
    if (same_bits || (std::isnan(e) && std::isnan(a))) continue;
    return absl::StrCat("element ", i, " is ", a, ", recorded was ", e);
  }
  return "";
}

absl::Status CheckScenario(const Json& scenario) {
  if (scenario.is_object() && scenario.value("format", 0) == 1 &&
      scenario.contains("file") && scenario.contains("name") &&
      scenario.contains("seed") && scenario.contains("ops")) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("not a scenario of format 1");
}

}  // namespace

absl::StatusOr<std::vector<Json>> ReadScenarios(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::vector<Json> scenarios;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty()) continue;
    Json scenario = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (absl::Status status = CheckScenario(scenario); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ", scenario ", scenarios.size() + 1, ": ", status.message()));
    }
    scenarios.push_back(std::move(scenario));
  }
  if (scenarios.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, " has no scenario"));
  }
  return scenarios;
}

std::string StatusName(const absl::Status& status) {
  return absl::StatusCodeToString(status.code());
}

DType ReadDType(const Json& scenario) {
  return ParseDType(scenario.at("dtype").get<std::string>()).value();
}

PartialShape ReadShape(const Json& scenario) {
  const Json& shape = scenario.at("shape");
  if (shape.is_null()) return std::nullopt;
  std::vector<int64_t> dims;
  for (const Json& dim : shape) {
    dims.push_back(dim.is_null() ? -1 : dim.get<int64_t>());
  }
  return dims;
}

Reduction ReadReduction(const Json& scenario) {
  return ParseReduction(scenario.at("reduction").get<std::string>()).value();
}

Tensor ReadTensor(DType dtype, const Json& tensor) {
  Tensor result{tensor.at("shape").get<std::vector<int64_t>>(), {}};
  const Json& data = tensor.at("data");
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
  }
  return result;
}

std::string Difference(DType dtype, const std::vector<std::byte>& expected,
                       const std::vector<std::byte>& actual) {
  if (expected.size() != actual.size()) {
    return absl::StrCat(actual.size(), " bytes, recorded were ",
                        expected.size());
  }
  switch (dtype) {
    case DType::kFloat16:
      return FirstDifference<Float16>(expected, actual);
    case DType::kFloat32:
      return FirstDifference<float>(expected, actual);
    case DType::kFloat64:
      return FirstDifference<double>(expected, actual);
  }
  return "unknown dtype";
}

}  // namespace lockstep::golden
