#include "common/wire/status_detail.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr char kCause[] = "lockstep/cause";
constexpr char kNewest[] = "lockstep/newest_incarnation";

void SetNumber(absl::Status& status, const char* name, uint64_t number) {
  // 0 means "none", and no payload means the same.
  if (number == 0) return;
  status.SetPayload(name, absl::Cord(absl::StrCat(number)));
}

uint64_t NumberOf(const absl::Status& status, const char* name) {
  const auto payload = status.GetPayload(name);
  uint64_t number = 0;
  if (!payload.has_value() ||
      !absl::SimpleAtoi(std::string(*payload), &number)) {
    return 0;
  }
  return number;
}

}  // namespace

absl::Status WithCause(absl::Status status, FailureCause cause) {
  SetNumber(status, kCause, static_cast<uint64_t>(cause));
  return status;
}

FailureCause CauseOf(const absl::Status& status) {
  // A number of a newer version becomes kUnspecified.
  return NumberOf(status, kCause) ==
                 static_cast<uint64_t>(FailureCause::kNoRoomForRows)
             ? FailureCause::kNoRoomForRows
             : FailureCause::kUnspecified;
}

absl::Status WithNewestIncarnation(absl::Status status, uint64_t newest) {
  SetNumber(status, kNewest, newest);
  return status;
}

uint64_t NewestIncarnationOf(const absl::Status& status) {
  return NumberOf(status, kNewest);
}

absl::Status WithMessage(const absl::Status& status,
                         absl::string_view message) {
  // A new Status has no payloads: each of them is carried over.
  return WithNewestIncarnation(
      WithCause(absl::Status(status.code(), message), CauseOf(status)),
      NewestIncarnationOf(status));
}

}  // namespace lockstep
