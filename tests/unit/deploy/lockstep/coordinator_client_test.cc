#include "deploy/lockstep/coordinator_client.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/deploy/lockstep/fake_coordinator_service.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FakeCoordinator;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TrainingResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;
using IfAbsent = CoordinatorClient::IfAbsent;

constexpr absl::Duration kPatience = absl::Seconds(20);
constexpr char kNobody[] = "127.0.0.1:1";

TEST(CoordinatorClientTest, GetsTheStatus) {
  FakeCoordinator chief;
  chief.Say(TrainingResponse());

  const absl::StatusOr<JobStatus> status =
      CoordinatorClient(chief.address()).GetStatus(kPatience, IfAbsent::kWait);

  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->step, 7);
}

TEST(CoordinatorClientTest, StopsWithAReason) {
  FakeCoordinator chief;

  EXPECT_THAT(CoordinatorClient(chief.address())
                  .Stop("lunch", kPatience, IfAbsent::kWait),
              IsOk());

  EXPECT_EQ(chief.stop_reason(), "lunch");
}

TEST(CoordinatorClientTest, WhatTheChiefRefusesComesWithItsAddress) {
  FakeCoordinator chief;
  chief.RefuseToStop();

  EXPECT_THAT(
      CoordinatorClient(chief.address())
          .Stop("lunch", kPatience, IfAbsent::kWait),
      StatusIs(absl::StatusCode::kInternal,
               AllOf(HasSubstr(chief.address()), HasSubstr("not today"))));
}

TEST(CoordinatorClientTest, AnAbsentChiefIsWaitedForOnRequest) {
  EXPECT_THAT(CoordinatorClient(kNobody).GetStatus(absl::Milliseconds(300),
                                                   IfAbsent::kWait),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("no chief answers at 127.0.0.1:1 within "
                                 "300ms")));
}

TEST(CoordinatorClientTest, AnAbsentChiefIsKnownAtOnceOtherwise) {
  EXPECT_THAT(CoordinatorClient(kNobody).GetStatus(kPatience, IfAbsent::kFail),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(kNobody)));
}

}  // namespace
}  // namespace lockstep
