#include "common/grpc_status.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::EndsWith;
using ::testing::SizeIs;

TEST(GrpcStatusTest, CodesAndMessagesSurviveBothWays) {
  EXPECT_OK(FromGrpcStatus(ToGrpcStatus(absl::OkStatus())));
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");

    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status) << code;
  }
}

TEST(GrpcStatusTest, LongMessageIsCut) {
  const grpc::Status status =
      ToGrpcStatus(absl::AbortedError(std::string(1 << 20, 'x')));

  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), SizeIs(2003));
  EXPECT_THAT(status.error_message(), EndsWith("xx..."));
}

}  // namespace
}  // namespace lockstep::testing
