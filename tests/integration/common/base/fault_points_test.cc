#include "common/base/fault_points.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// Returns how a process ends that runs `run` and then exits with code 0.
template <typename Run>
int EndOf(Run run) {
  const pid_t child = fork();
  if (child == 0) {
    run();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(FaultPointsTest, EveryPointIsInTheTableOnceAndAtItsNumber) {
  std::set<absl::string_view> names;
  for (size_t i = 0; i < kFaultPoints.size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(kFaultPoints[i].point), i);
    EXPECT_TRUE(names.insert(kFaultPoints[i].name).second)
        << kFaultPoints[i].name;
    EXPECT_THAT(std::string(kFaultPoints[i].name),
                AnyOf(StartsWith("member."), StartsWith("worker."),
                      StartsWith("ps."), StartsWith("chief.")));
  }
}

TEST(FaultPointsTest, EveryNameIsRead) {
  for (const FaultPointName& row : kFaultPoints) {
    const auto fault = ParseFault(std::string(row.name) + ":12:stall");

    ASSERT_OK(fault);
    EXPECT_EQ(fault->point, row.point);
    EXPECT_EQ(fault->nth, 12);
    EXPECT_EQ(fault->action, Fault::Action::kStall);
  }
  EXPECT_EQ(ParseFault("ps.push.received:1:kill")->action,
            Fault::Action::kKill);
}

TEST(FaultPointsTest, InvalidFaultIsRefusedWithTheReason) {
  const auto refused = [](const char* text, const char* why) {
    EXPECT_THAT(ParseFault(text), StatusIs(kInvalid, HasSubstr(why))) << text;
  };
  refused("", "three fields");
  refused("worker.push.send", "three fields");
  refused("worker.push.send:1:kill:", "three fields");
  refused("worker.push:1:kill", "no such point");
  refused("worker.push.send:0:kill", "nth");
  refused("worker.push.send:-1:kill", "nth");
  refused("worker.push.send:x:kill", "nth");
  refused("worker.push.send:1:abort", "action");
  refused("worker.push.send:99999999999999999999:kill", "nth");
}

TEST(FaultPointsTest, ProcessEndsAtTheNthTimeAndNotBefore) {
  const Fault third = {FaultPoint::kWorkerPushSend, 3, Fault::Action::kKill};
  const auto pass = [&](int times) {
    return EndOf([&] {
      ArmFault(third);
      for (int i = 0; i < times; ++i) {
        PassFaultPoint(FaultPoint::kWorkerPushAnswered);
        PassFaultPoint(FaultPoint::kWorkerPushSend);
      }
    });
  };

  const int twice = pass(2);
  EXPECT_TRUE(WIFEXITED(twice));
  const int thrice = pass(3);
  ASSERT_TRUE(WIFSIGNALED(thrice));
  EXPECT_EQ(WTERMSIG(thrice), SIGKILL);
}

TEST(FaultPointsTest, StalledThreadStays) {
  const int status = EndOf([] {
    ArmFault({FaultPoint::kPsTakeReceived, 1, Fault::Action::kStall});
    signal(SIGALRM, [](int) { _exit(7); });
    ualarm(20'000, 0);
    PassFaultPoint(FaultPoint::kPsTakeReceived);
  });

  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST(FaultPointsTest, EnvironmentArmsAndIsCheckedAtTheStart) {
  const int armed = EndOf([] {
    setenv("LOCKSTEP_FAULT", "chief.commit.send:1:kill", 1);
    if (!ArmFaultFromEnvironment().ok()) _exit(1);
    PassFaultPoint(FaultPoint::kChiefCommitSend);
  });
  EXPECT_TRUE(WIFSIGNALED(armed));

  setenv("LOCKSTEP_FAULT", "chief.commit.send", 1);
  EXPECT_THAT(ArmFaultFromEnvironment(),
              StatusIs(kInvalid, HasSubstr("LOCKSTEP_FAULT is")));
  setenv("LOCKSTEP_FAULT", "", 1);
  EXPECT_OK(ArmFaultFromEnvironment());
  unsetenv("LOCKSTEP_FAULT");
  EXPECT_OK(ArmFaultFromEnvironment());
}

}  // namespace
}  // namespace lockstep
