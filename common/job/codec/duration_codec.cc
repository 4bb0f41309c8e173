#include "common/job/codec/duration_codec.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/wire/wire_codec.h"

namespace lockstep {
namespace {

constexpr int32_t kMaxNanos = 999'999'999;

bool IsMeaningful(int64_t seconds, int32_t nanos) {
  if (seconds < -kMaxDurationSeconds || seconds > kMaxDurationSeconds) {
    return false;
  }
  if (nanos < -kMaxNanos || nanos > kMaxNanos) return false;
  // A rule of google.protobuf.Duration.
  return seconds == 0 || nanos == 0 || (seconds < 0) == (nanos < 0);
}

}  // namespace

absl::StatusOr<absl::Duration> DurationFromProto(
    absl::string_view field, const google::protobuf::Duration& proto) {
  if (IsMeaningful(proto.seconds(), proto.nanos())) {
    return FromProto(proto);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      field, " has seconds ", proto.seconds(), " and nanos ", proto.nanos(),
      ", but they must be within ", kMaxDurationSeconds, " and ", kMaxNanos,
      ", and of one sign"));
}

}  // namespace lockstep
