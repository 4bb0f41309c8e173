// A killed server or chief that does not come back within max_wait: all other
// tasks end in time, and say why.

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::Gt;
using ::testing::HasSubstr;

// Both tests kill a task long before this step.
constexpr char kForever[] = "train_steps=1000000";
constexpr char kMaxWait[] = "max_wait=8s";

// Kills a task and expects all others to end with another code than 0 long
// before the ten minutes that are the default of max_wait, each with `reason`
// in its log.
void ExpectAllEnd(TrainingJob& job, const std::string& killed, int index,
                  const std::string& reason) {
  ASSERT_THAT(job.StartServersLast(), IsOk());
  ASSERT_THAT(job.WaitForStep(5), IsOk());

  ASSERT_THAT(job.cluster().Kill(killed, index), IsOk());

  const absl::Time deadline = absl::Now() + kPatience;
  for (const auto& [name, i] : job.Tasks()) {
    if (name == killed && i == index) continue;
    EXPECT_THAT(job.cluster().Wait(name, i, deadline - absl::Now()),
                IsOkAndHolds(AllOf(Field(&cli::TaskExit::code, Gt(0)),
                                   Field(&cli::TaskExit::signal, 0))))
        << name << " " << i;
    EXPECT_THAT(job.cluster().ReadLog(name, i), IsOkAndHolds(HasSubstr(reason)))
        << name << " " << i;
  }
}

TEST(PeerDeathTest, AllEndAndNameTheServerThatWasKilled) {
  auto job = TrainingJob::Make({.workers = 2,
                                .evaluator = true,
                                .set = {"lease=4s", kMaxWait, kForever}});

  ExpectAllEnd(*job, "ps", 1, "(8s) for ps 1 (gone)");
}

TEST(PeerDeathTest, AllEndAndNameTheFirstServerToo) {
  auto job = TrainingJob::Make(
      {.workers = 2, .set = {"lease=4s", kMaxWait, kForever}});

  ExpectAllEnd(*job, "ps", 0, "(8s) for ps 0 (gone)");
}

TEST(PeerDeathTest, AllEndAndNameTheChiefThatWasKilled) {
  auto job = TrainingJob::Make({.workers = 2,
                                .evaluator = true,
                                .set = {"lease=4s", kMaxWait, kForever}});

  ExpectAllEnd(*job, "chief", 0, " is gone: no answer for ");
}

}  // namespace
}  // namespace lockstep::testing
