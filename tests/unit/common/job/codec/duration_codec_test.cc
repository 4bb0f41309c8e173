#include "common/job/codec/duration_codec.h"

#include <cstdint>

#include "common/wire/wire_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::StartsWith;

google::protobuf::Duration Proto(int64_t seconds, int32_t nanos) {
  google::protobuf::Duration proto;
  proto.set_seconds(seconds);
  proto.set_nanos(nanos);
  return proto;
}

TEST(DurationCodecTest, DurationsAreReadBack) {
  for (absl::Duration duration :
       {absl::ZeroDuration(), absl::Milliseconds(1500), absl::Nanoseconds(1),
        -absl::Milliseconds(1500), absl::Hours(24 * 365),
        absl::Seconds(315'576'000'000)}) {
    EXPECT_THAT(DurationFromProto("lease", ToProto(duration)),
                IsOkAndHolds(duration));
  }
}

TEST(DurationCodecTest, MeaninglessMessagesAreRefused) {
  for (const auto& proto :
       {Proto(315'576'000'001, 0), Proto(INT64_MIN, 0), Proto(0, 1'000'000'000),
        Proto(0, INT32_MIN), Proto(1, -1), Proto(-1, 1)}) {
    EXPECT_THAT(DurationFromProto("lease", proto),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         StartsWith("lease has seconds ")))
        << proto.ShortDebugString();
  }
}

}  // namespace
}  // namespace lockstep
