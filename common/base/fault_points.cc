#include "common/base/fault_points.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

constexpr char kVariable[] = "LOCKSTEP_FAULT";

// Does not change once a point is armed.
int64_t reached_at = 1;
Fault::Action action = Fault::Action::kKill;
std::atomic<int64_t> times_reached = 0;

absl::Status Wrong(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat(kVariable, " is \"", text, "\": ", why,
                   "; write point:nth:action, as worker.push.send:3:kill"));
}

std::optional<FaultPoint> Find(absl::string_view name) {
  for (const FaultPointName& row : kFaultPoints) {
    if (row.name == name) return row.point;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<Fault> ParseFault(absl::string_view text) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ':');
  if (fields.size() != 3) return Wrong(text, "it has not three fields");
  Fault fault;
  const std::optional<FaultPoint> point = Find(fields[0]);
  if (!point.has_value()) {
    return Wrong(text, "there is no such point in common/base/fault_points.h");
  }
  fault.point = *point;
  if (!absl::SimpleAtoi(fields[1], &fault.nth) || fault.nth < 1) {
    return Wrong(text, "nth is no number from 1 on");
  }
  if (fields[2] == "stall") {
    fault.action = Fault::Action::kStall;
  } else if (fields[2] != "kill") {
    return Wrong(text, "the action is neither kill nor stall");
  }
  return fault;
}

void ArmFault(const Fault& fault) {
  reached_at = fault.nth;
  action = fault.action;
  times_reached = 0;
  // Last: other threads may pass the point as soon as it is armed.
  fault_points_internal::armed = static_cast<int>(fault.point);
}

absl::Status ArmFaultFromEnvironment() {
  const char* text = std::getenv(kVariable);
  if (text == nullptr || *text == '\0') return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const Fault fault, ParseFault(text));
  ArmFault(fault);
  return absl::OkStatus();
}

void fault_points_internal::Reached() {
  // Later passes count, too: every thread that comes by must stall.
  if (++times_reached < reached_at) return;
  // SIGKILL, so that nothing of the process is released in good order.
  if (action == Fault::Action::kKill) kill(getpid(), SIGKILL);
  while (true) pause();
}

}  // namespace lockstep
