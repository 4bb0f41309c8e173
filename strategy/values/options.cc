#include "strategy/values/options.h"

#include <set>

#include "absl/strings/str_cat.h"

namespace lockstep::strategy {

absl::Status StrategyOptions::Validate() const {
  const bool one = IsOfOneReplica(kind);
  if (replicas < 1 || (one && replicas != 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("replicas is ", replicas, ", but must be ",
                     one ? "1 for this kind of strategy" : "at least 1"));
  }
  if (!devices.empty() && devices.size() != static_cast<size_t>(replicas)) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", devices.size(), " devices for ", replicas,
                     " replicas; name one for each, or none"));
  }
  std::set<std::string> names;
  for (const std::string& device : devices) {
    if (!device.empty() && names.insert(device).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("device \"", device,
                     "\" has no name or occurs twice; each replica must have "
                     "a device of its own"));
  }
  return absl::OkStatus();
}

absl::Status CommunicationOptions::Validate() const {
  if (bytes_per_pack.value_or(0) < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("bytes_per_pack is ", *bytes_per_pack,
                     ", but must be 0 (one pack) or a number of bytes"));
  }
  if (timeout.value_or(absl::ZeroDuration()) < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "timeout is ", absl::FormatDuration(*timeout),
        ", but must be 0 (no limit), a time, or absent (that of the group)"));
  }
  return absl::OkStatus();
}

std::optional<absl::Duration> CommunicationOptions::GroupTimeout() const {
  if (timeout == absl::ZeroDuration()) return absl::InfiniteDuration();
  return timeout;
}

}  // namespace lockstep::strategy
