// Programs of another version are refused with a message that names the version
// to install, and ask for no restart; a running job is not affected.
// `newer_worker` and `newer_chief` are the real programs, built with the next
// protocol version.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/process/process.h"
#include "common/wire/wire_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr cli::TaskExit kRefused = {.code = kExitFailed};

std::string Speaks(const std::string& task, int version, int chiefs) {
  return absl::StrCat(task, " speaks protocol version ", version, " (program ",
                      LOCKSTEP_VERSION, "); this chief speaks ", chiefs,
                      "; install the same version everywhere");
}

class MixedVersionsTest : public ::testing::Test {
 protected:
  std::unique_ptr<ChildProcess> Start(const std::string& program,
                                      const std::vector<std::string>& args,
                                      const std::string& tf_config) {
    ChildProcess::Options options;
    options.program = ProgramPath(program);
    options.args = args;
    options.environment["TF_CONFIG"] = tf_config;
    options.log_path = directory_.Join("log");
    auto child = ChildProcess::Start(options);
    EXPECT_THAT(child, IsOk());
    return child.ok() ? *std::move(child) : nullptr;
  }

  // Expects the chief of `job` to refuse a newer worker 2, and to make more
  // steps without losing a member.
  void ExpectNewerWorkerRefused(TrainingJob& job,
                                const std::string& tf_config) {
    auto newer = Start("newer_worker", {}, tf_config);
    ASSERT_NE(newer, nullptr);

    EXPECT_THAT(newer->Wait(kPatience), IsOkAndHolds(kRefused));

    EXPECT_THAT(
        newer->ReadLog(),
        HasSubstr(Speaks("worker 2", kProtocolVersion + 1, kProtocolVersion)));
    EXPECT_THAT(job.WaitForStep(job.GetStatus()->step + 20), IsOk());
    EXPECT_THAT(job.cluster().ReadLog("chief", 0),
                IsOkAndHolds(Not(HasSubstr("worker 2 left"))));
  }

  const TempDir directory_;
};

const TrainingJob::Options kForever = {
    .workers = 3, .set = {"train_steps=1000000", "replicas_to_aggregate=2"}};

TEST_F(MixedVersionsTest, NewerWorkerIsRefusedAndTheJobGoesOn) {
  auto job = TrainingJob::Make(kForever);
  for (const auto& [task, index] : job->Tasks()) {
    if (task == "worker" && index == 2) continue;
    ASSERT_THAT(job->cluster().Start(task, index), IsOk());
  }
  ASSERT_THAT(job->WaitForStep(5), IsOk());

  ExpectNewerWorkerRefused(*job, job->cluster().TfConfig("worker", 2).value());
}

// As from another host, where the port of that worker is free.
TEST_F(MixedVersionsTest, NewerProcessDoesNotReplaceTheWorkerThatRuns) {
  auto job = TrainingJob::Make(kForever);
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());
  const std::string address = job->cluster().Address("worker", 2).value();

  ExpectNewerWorkerRefused(
      *job,
      absl::StrReplaceAll(
          job->cluster().TfConfig("worker", 2).value(),
          {{address, absl::StrReplaceAll(address, {{"0.0.1", "0.0.2"}})}}));

  EXPECT_THAT(job->cluster().Signal("worker", 2, 0), IsOk());
}

TEST_F(MixedVersionsTest, NewerChiefRefusesAllOthers) {
  auto job = TrainingJob::Make(kForever);
  auto chief = Start("newer_chief", {"--job", job->job_file()},
                     job->cluster().TfConfig("chief", 0).value());
  ASSERT_NE(chief, nullptr);

  for (const auto& [task, index] : job->Tasks()) {
    if (task == "chief") continue;
    ASSERT_THAT(job->cluster().Start(task, index), IsOk());
    EXPECT_THAT(job->cluster().Wait(task, index, kPatience),
                IsOkAndHolds(kRefused))
        << task << " " << index;
    EXPECT_THAT(job->cluster().ReadLog(task, index),
                IsOkAndHolds(
                    HasSubstr(Speaks(absl::StrCat(task, " ", index),
                                     kProtocolVersion, kProtocolVersion + 1))));
  }
}

}  // namespace
}  // namespace lockstep::testing
