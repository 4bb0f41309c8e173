#include "strategy/copy.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace lockstep::strategy {

absl::StatusOr<size_t> Place::CopyOf(const Variable& variable) const {
  if (!engine_.variables().Owns(variable)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", variable.name(), "\" is another strategy's"));
  }
  const std::vector<std::string>& devices = variable.placement().devices;
  if (devices.size() == 1) return 0;  // its copy serves all devices
  const auto found = std::find(devices.begin(), devices.end(), device());
  if (found != devices.end()) {
    return static_cast<size_t>(found - devices.begin());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "variable \"", variable.name(), "\" has no copy on ", device(),
      "; its copies are on ", absl::StrJoin(devices, ", ")));
}

absl::StatusOr<Value> Place::Read(const Variable& variable) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t copy, CopyOf(variable));
  return engine_.variables().ReadCopy(variable, copy);
}

absl::Status Place::Write(Assignment how, const Variable& variable,
                          const Value& value) {
  LOCKSTEP_ASSIGN_OR_RETURN(const size_t copy, CopyOf(variable));
  return engine_.variables().Write(variable, copy, how, value);
}

absl::Status Place::Assign(const Variable& variable, const Value& value) {
  return Write(Assignment::kAssign, variable, value);
}

absl::Status Place::AssignAdd(const Variable& variable, const Value& value) {
  return Write(Assignment::kAdd, variable, value);
}

absl::Status Place::AssignSub(const Variable& variable, const Value& value) {
  return Write(Assignment::kSubtract, variable, value);
}

absl::Span<std::byte> Place::MutableBytes(const Variable& variable) {
  const absl::StatusOr<size_t> copy = CopyOf(variable);
  if (!copy.ok() || !engine_.variables().CheckNotServed(variable).ok()) {
    return {};
  }
  return engine_.variables().MutableBytes(variable, *copy);
}

}  // namespace lockstep::strategy
