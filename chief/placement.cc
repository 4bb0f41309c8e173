#include "chief/placement.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// Elements of a model: no sum of their bytes overflows.
constexpr int64_t kMaxElements = int64_t{1} << 56;
// A plan is held and sent whole by everybody.
constexpr int64_t kMaxParts = int64_t{1} << 22;

// Takes the elements of the variable off `room`.
absl::Status CheckVariable(const VariableSpec& variable,
                           std::set<std::string>& names, int64_t& room) {
  if (variable.name.empty()) {
    return absl::InvalidArgumentError("a variable has no name; give it one");
  }
  if (!names.insert(variable.name).second) {
    return absl::InvalidArgumentError(absl::StrCat(
        "two variables are named \"", variable.name, "\"; rename one"));
  }
  if (ElementSize(variable.dtype) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", variable.name, "\" has an unknown dtype, ",
                     static_cast<int>(variable.dtype)));
  }
  int64_t elements = 1;
  for (int64_t dim : variable.shape) {
    if (dim < 1 || dim > room / elements) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", variable.name, "\" has shape ",
          ShapeString(variable.shape),
          "; dimensions must be positive and the model at most 2^56 elements"));
    }
    elements *= dim;
  }
  room -= elements;
  return absl::OkStatus();
}

absl::Status CheckParts(int64_t parts, const VariableSpec& variable,
                        int64_t max_part_bytes) {
  if (parts <= kMaxParts) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "max_part_bytes is ", max_part_bytes, ", which cuts the model into ",
      parts, " parts up to variable \"", variable.name, "\"; raise it so that ",
      "there are at most ", kMaxParts));
}

}  // namespace

absl::StatusOr<Plan> MakePlan(const std::vector<VariableSpec>& variables,
                              int num_servers, int64_t max_part_bytes) {
  if (variables.empty()) {
    return absl::InvalidArgumentError("the model has no variables");
  }
  if (num_servers < 1) {
    return absl::InvalidArgumentError("the cluster has no ps task");
  }
  std::set<std::string> names;
  int64_t room = kMaxElements;
  Plan plan{variables, {}};
  std::vector<int64_t> load(num_servers, 0);
  std::vector<int> next_index(num_servers, 0);
  for (size_t v = 0; v < variables.size(); ++v) {
    LOCKSTEP_RETURN_IF_ERROR(CheckVariable(variables[v], names, room));
    const auto size = static_cast<int64_t>(ElementSize(variables[v].dtype));
    const int64_t limit = max_part_bytes / size;
    if (limit < 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          "max_part_bytes is ", max_part_bytes, "; it must be at least the ",
          size, " bytes of an element of \"", variables[v].name, "\""));
    }
    const int64_t elements = NumElements(variables[v].shape);
    const int64_t parts =
        static_cast<int64_t>(plan.parts.size()) + (elements - 1) / limit + 1;
    LOCKSTEP_RETURN_IF_ERROR(CheckParts(parts, variables[v], max_part_bytes));
    for (int64_t offset = 0; offset < elements; offset += limit) {
      const int64_t count = std::min(limit, elements - offset);
      const int server = static_cast<int>(
          std::min_element(load.begin(), load.end()) - load.begin());
      load[server] += count * size;
      plan.parts.push_back(
          {static_cast<int>(v), offset, count, server, next_index[server]++});
    }
  }
  return plan;
}

absl::Status CheckGradientType(const std::vector<VariableSpec>& variables,
                               GradientType gradient_wire_type) {
  for (const VariableSpec& variable : variables) {
    const absl::Status status =
        GradientElementSize(variable.dtype, gradient_wire_type).status();
    if (status.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("gradient_wire_type, variable \"", variable.name,
                     "\": ", status.message()));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
