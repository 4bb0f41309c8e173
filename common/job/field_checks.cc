#include "common/job/field_checks.h"

#include <cmath>

namespace lockstep {

absl::Status Wrong(absl::string_view field, const absl::AlphaNum& value,
                   absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", but must be ", allowed));
}

absl::Status CheckInt(absl::string_view field, int64_t value, int64_t min,
                      int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  const std::string allowed = max == kNoLimit
                                  ? absl::StrCat(min, " or more")
                                  : absl::StrCat("from ", min, " to ", max);
  return Wrong(field, value, allowed);
}

absl::Status CheckReal(absl::string_view field, double value, bool in_range,
                       absl::string_view allowed) {
  if (std::isfinite(value) && in_range) return absl::OkStatus();
  return Wrong(field, value, allowed);
}

absl::Status CheckPositive(absl::string_view field, double value) {
  return CheckReal(field, value, value > 0, "a finite number above 0");
}

absl::Status CheckBelowOne(absl::string_view field, double value) {
  return CheckReal(field, value, value >= 0 && value < 1,
                   "at least 0 and below 1");
}

std::string Element(absl::string_view field, size_t index) {
  return absl::StrCat(field, "[", index, "]");
}

absl::Status CheckAtLeastZero(absl::string_view field, double value) {
  return CheckReal(field, value, value >= 0, "a finite number of 0 or more");
}

absl::Status Within(absl::string_view element, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(element, ".", status.message()));
}

}  // namespace lockstep
