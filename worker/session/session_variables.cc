#include "worker/session/session_variables.h"

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace lockstep::worker {

absl::Status CheckVariables(const std::vector<SessionVariable>& variables) {
  if (variables.empty()) {
    return absl::InvalidArgumentError("a worker needs at least one variable");
  }
  absl::flat_hash_set<std::string> names;
  for (const SessionVariable& variable : variables) {
    const VariableSpec& spec = variable.spec;
    if (spec.name.empty()) {
      return absl::InvalidArgumentError("a variable has no name; give it one");
    }
    if (!names.insert(spec.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two variables have the name \"", spec.name,
                       "\"; names must be unique"));
    }
    int64_t total = static_cast<int64_t>(ElementSize(spec.dtype));
    for (const int64_t dimension : spec.shape) {
      if (dimension > 0 && !__builtin_mul_overflow(total, dimension, &total)) {
        continue;
      }
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", spec.name, "\" has the shape ",
          ShapeString(spec.shape),
          "; each dimension must be above 0, and all elements must fit into "
          "an address space"));
    }
    if (spec.is_table() && (spec.shape.empty() || spec.buffer)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable \"", spec.name, "\" is a table of the shape ",
          ShapeString(spec.shape), spec.buffer ? " and a buffer" : "",
          "; a table needs rows, and cannot be a buffer"));
    }
    const auto bytes = static_cast<size_t>(total);
    if (variable.initial.empty() || variable.initial.size() == bytes) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", spec.name, "\" has ", variable.initial.size(),
        " bytes of initial values; ", ShapeString(spec.shape), " of ",
        std::string(DTypeName(spec.dtype)), " needs ", bytes));
  }
  return absl::OkStatus();
}

std::vector<VariableSpec> SpecsOf(
    const std::vector<SessionVariable>& variables) {
  std::vector<VariableSpec> specs;
  for (const SessionVariable& variable : variables) {
    specs.push_back(variable.spec);
    if (!variable.initial.empty()) {
      specs.back().initializer = {.kind = Initializer::Kind::kGiven};
    }
  }
  return specs;
}

std::vector<absl::Span<const std::byte>> InitialOf(
    const std::vector<SessionVariable>& variables) {
  std::vector<absl::Span<const std::byte>> initial;
  for (const SessionVariable& variable : variables) {
    initial.push_back(variable.initial);
  }
  return initial;
}

}  // namespace lockstep::worker
