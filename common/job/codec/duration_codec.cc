#include "common/job/codec/duration_codec.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/wire/wire_codec.h"

namespace lockstep {
namespace {

// Limit of google.protobuf.Duration.
constexpr int64_t kMaxSeconds = 315'576'000'000;
constexpr int32_t kMaxNanos = 999'999'999;

bool IsMeaningful(int64_t seconds, int32_t nanos) {
  if (seconds < -kMaxSeconds || seconds > kMaxSeconds) return false;
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
  return absl::InvalidArgumentError(
      absl::StrCat(field, " has seconds ", proto.seconds(), " and nanos ",
                   proto.nanos(), ", but they must be within ", kMaxSeconds,
                   " and ", kMaxNanos, ", and of one sign"));
}

}  // namespace lockstep
