#include "common/rpc/status.h"

#include <string>

#include "common/text/utf8.h"
#include "common/wire/status_detail.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::Gt;
using ::testing::Le;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(GrpcStatusTest, CodesAndMessagesSurviveBothWays) {
  EXPECT_OK(FromGrpcStatus(ToGrpcStatus(absl::OkStatus())));
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");

    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status) << code;
  }
}

TEST(GrpcStatusTest, CallThatAServerCancelsMayBeRepeated) {
  const grpc::Status cancelled(grpc::StatusCode::CANCELLED, "shutdown");
  EXPECT_THAT(FromServerStatus(cancelled),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(FromServerStatus(cancelled, /*cancelled_here=*/true),
            absl::CancelledError("shutdown"));
  EXPECT_EQ(FromServerStatus(ToGrpcStatus(absl::AbortedError("why"))),
            absl::AbortedError("why"));
  EXPECT_OK(FromServerStatus(grpc::Status::OK));
}

TEST(GrpcStatusTest, CallThatAnotherProgramAnswersNamesItsAddress) {
  EXPECT_THAT(ExplainUnserved(absl::UnimplementedError(""), "h:1"),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(StartsWith("the process at h:1 does not serve"),
                             EndsWith("correct the address, or run one version "
                                      "of Lockstep in the whole cluster"))));
  EXPECT_THAT(
      ExplainUnserved(absl::UnimplementedError("no method"), "ipv4:10.0.0.1:2"),
      StatusIs(absl::StatusCode::kUnimplemented,
               AllOf(StartsWith("the process at 10.0.0.1:2 does"),
                     EndsWith("in the whole cluster: no method"))));
  EXPECT_EQ(ExplainUnserved(absl::AbortedError("why"), "h:1"),
            absl::AbortedError("why"));
  EXPECT_OK(ExplainUnserved(absl::OkStatus(), "h:1"));
}

TEST(GrpcStatusTest, DetailSurvivesBothWays) {
  const absl::Status full = WithCause(absl::ResourceExhaustedError("full"),
                                      FailureCause::kNoRoomForRows);
  const absl::Status old =
      WithNewestIncarnation(absl::FailedPreconditionError("old"), 7);

  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(full)), full);
  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(old)), old);
}

TEST(GrpcStatusTest, DetailThatCannotBeReadIsIgnored) {
  EXPECT_EQ(FromGrpcStatus(
                grpc::Status(grpc::StatusCode::ABORTED, "why", "\xff\xff\xff")),
            absl::AbortedError("why"));
}

TEST(GrpcStatusTest, LongMessageIsCut) {
  const grpc::Status status =
      ToGrpcStatus(absl::AbortedError(std::string(1 << 20, 'x')));

  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), SizeIs(2003));
  EXPECT_THAT(status.error_message(), EndsWith("xx..."));
}

TEST(GrpcStatusTest, LongMessageIsCutBetweenCharacters) {
  const std::string character = "\xe2\x82\xac";  // of three bytes
  std::string text;
  while (text.size() < 5000) text += character;
  for (const char* before : {"", "x", "xy"}) {
    const std::string message =
        ToGrpcStatus(absl::AbortedError(before + text)).error_message();

    EXPECT_TRUE(IsUtf8(message)) << before;
    EXPECT_THAT(message, EndsWith(character + "..."));
    EXPECT_THAT(message, SizeIs(AllOf(Gt(2000), Le(2003))));
  }
}

TEST(GrpcStatusTest, MessageIsUtf8WhateverTheTextWas) {
  EXPECT_EQ(ToGrpcStatus(absl::AbortedError("a\xff\x80z")).error_message(),
            "a??z");
  const std::string inside(3000, '\x80');
  EXPECT_TRUE(IsUtf8(ToGrpcStatus(absl::AbortedError(inside)).error_message()));
}

TEST(GrpcStatusTest, CallThatAFullServerHasResetIsTriedAgain) {
  EXPECT_THAT(FromGrpcStatus({grpc::StatusCode::RESOURCE_EXHAUSTED,
                              "Received RST_STREAM with error code 11"}),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(FromGrpcStatus({grpc::StatusCode::RESOURCE_EXHAUSTED, "no room"}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace lockstep::testing
