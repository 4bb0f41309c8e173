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
bool SameElement(const T& a, const T& b) {
  if (std::memcmp(&a, &b, sizeof(T)) == 0) return true;
  return std::isnan(ToDouble(a)) && std::isnan(ToDouble(b));
}

template <typename T>
std::string FirstDifference(const std::vector<std::byte>& expected,
                            const std::vector<std::byte>& actual) {
  for (size_t i = 0; i < expected.size() / sizeof(T); ++i) {
    T e, a;
    std::memcpy(&e, expected.data() + i * sizeof(T), sizeof(T));
    std::memcpy(&a, actual.data() + i * sizeof(T), sizeof(T));
    if (!SameElement(e, a)) {
      return absl::StrCat("element ", i, " is ", ToDouble(a), ", recorded was ",
                          ToDouble(e));
    }
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
