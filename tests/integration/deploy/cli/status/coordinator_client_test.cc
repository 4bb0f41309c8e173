#include "deploy/cli/status/coordinator_client.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "deploy/cli/run/port_reservation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/deploy/cli/status/fake_coordinator_service.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::lockstep::testing::FakeCoordinator;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::TrainingResponse;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(60);
constexpr char kNobody[] = "127.0.0.1:1";

TEST(CoordinatorClientTest, GetsTheStatus) {
  FakeCoordinator chief;
  chief.Say(TrainingResponse());

  const absl::StatusOr<JobStatus> status =
      CoordinatorClient(chief.address()).GetStatus(kPatience);

  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->step, 7);
}

TEST(CoordinatorClientTest, StopsWithAReason) {
  FakeCoordinator chief;

  EXPECT_THAT(CoordinatorClient(chief.address()).Stop("lunch", kPatience),
              IsOk());

  EXPECT_EQ(chief.stop_reason(), "lunch");
}

TEST(CoordinatorClientTest, WhatTheChiefRefusesComesWithItsAddress) {
  FakeCoordinator chief;
  chief.RefuseToStop();

  EXPECT_THAT(
      CoordinatorClient(chief.address()).Stop("lunch", kPatience),
      StatusIs(absl::StatusCode::kInternal,
               AllOf(HasSubstr(chief.address()), HasSubstr("not today"))));
}

TEST(CoordinatorClientTest, WordsOfAChiefCannotSteerTheTerminal) {
  const grpc::Status refusal(grpc::StatusCode::INTERNAL, "no\x1b[2J\nyes");

  EXPECT_EQ(ExplainCall(refusal, kNobody, kPatience).message(),
            "the chief at 127.0.0.1:1: no?[2J?yes");
}

TEST(CoordinatorClientTest, AnotherTaskIsNotTakenForTheChief) {
  const grpc::Status unknown(grpc::StatusCode::UNIMPLEMENTED, "");

  EXPECT_THAT(ExplainCall(unknown, kNobody, kPatience),
              StatusIs(absl::StatusCode::kUnimplemented,
                       AllOf(HasSubstr("127.0.0.1:1 does not serve this call"),
                             HasSubstr("correct the address"))));
}

TEST(CoordinatorClientTest, AnAbsentChiefIsWaitedForAWhile) {
  EXPECT_THAT(CoordinatorClient(kNobody).GetStatus(absl::Milliseconds(300)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("no chief answers at 127.0.0.1:1 within "
                                 "300ms")));
}

TEST(CoordinatorClientTest, ANameThatDoesNotResolveIsNamed) {
  EXPECT_THAT(CoordinatorClient("no.such.host.invalid:1")
                  .GetStatus(absl::Milliseconds(300)),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("the name no.such.host.invalid does not "
                                 "resolve")));
}

TEST(CoordinatorClientTest, AChiefThatComesLaterIsFound) {
  const absl::StatusOr<PortReservation> port = PortReservation::Create();
  ASSERT_THAT(port, IsOk());
  const std::string address = absl::StrCat("127.0.0.1:", port->port());
  CoordinatorClient client(address);
  ASSERT_THAT(client.GetStatus(absl::Milliseconds(50)),
              StatusIs(absl::StatusCode::kDeadlineExceeded));

  FakeCoordinator successor(address);
  successor.Say(TrainingResponse());

  EXPECT_THAT(client.GetStatus(kPatience), IsOk());
}

}  // namespace
}  // namespace lockstep::cli
