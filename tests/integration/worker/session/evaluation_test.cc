#include "worker/session/evaluation.h"

#include <fstream>

#include "common/checkpoint/checkpoint_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StartWorker;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

// A job with a built-in model and a user's evaluator.
class EvaluationTest : public ::testing::Test {
 protected:
  EvaluationTest() : job_({.evaluator = true}) {}

  absl::StatusOr<std::unique_ptr<Evaluation>> Make(
      const std::string& task = "evaluator") {
    const std::string path = job_.directory().Join("tf_config");
    std::ofstream(path) << job_.TfConfigOf(task, 0);
    return Evaluation::Make({.tf_config = path});
  }

  LocalJob job_;
};

TEST_F(EvaluationTest, TheJobWaitsForTheFiguresOfItsLastCheckpoint) {
  LocalChief chief(job_);
  auto evaluation = Make();
  ASSERT_THAT(evaluation, IsOk());
  ASSERT_OK((*evaluation)->Join());
  EXPECT_EQ((*evaluation)->job_name(), job_.job().name);
  auto server = StartServer(job_);
  auto worker = StartWorker(job_);

  const CheckpointStore store((*evaluation)->checkpoint_directory());
  int64_t last = -1;
  while (true) {
    const auto over = (*evaluation)->Wait(absl::Milliseconds(20));
    ASSERT_THAT(over, IsOk());
    if (*over) break;
    const auto latest = store.Latest();
    if (!latest.ok() || !latest->manifest.has_value()) continue;
    // Once only: the figures of the last checkpoint end the job.
    if (latest->manifest->global_step == last) continue;
    last = latest->manifest->global_step;
    EXPECT_OK((*evaluation)->Report(last, {{"bleu", 0.5}}));
  }

  EXPECT_EQ(last, job_.job().train_steps);
  EXPECT_THAT((*evaluation)->end(), IsOk());
  EXPECT_EQ((*evaluation)->exit_code(), 0);
  (*evaluation)->Leave("");
  EXPECT_THAT(chief.Wait(), IsOk());
}

TEST_F(EvaluationTest, AProgramThatWillNotReportHoldsUpNoJob) {
  LocalChief chief(job_);
  auto evaluation = Make();
  ASSERT_THAT(evaluation, IsOk());
  ASSERT_OK((*evaluation)->Join());
  (*evaluation)->SetTrouble("nothing to report");
  auto server = StartServer(job_);
  auto worker = StartWorker(job_);

  EXPECT_THAT(chief.Wait(), IsOk());
  const auto over = (*evaluation)->Wait(absl::Minutes(1));
  EXPECT_THAT(over, ::lockstep::testing::IsOkAndHolds(true));
}

TEST_F(EvaluationTest, FiguresThatCannotBeAreRefused) {
  LocalChief chief(job_);
  auto evaluation = Make();
  ASSERT_THAT(evaluation, IsOk());
  ASSERT_OK((*evaluation)->Join());

  EXPECT_THAT((*evaluation)->Report(1, {}),
              StatusIs(kInvalid, HasSubstr("no figure was given")));
  EXPECT_THAT((*evaluation)->Report(1, {{"a b", 1}}), StatusIs(kInvalid));
  chief.chief().RequestStop("the test is over");
}

TEST_F(EvaluationTest, ATaskThatIsNoEvaluatorIsRefused) {
  EXPECT_THAT(Make("worker"), StatusIs(kInvalid, HasSubstr("evaluator")));
}

TEST_F(EvaluationTest, NothingIsWaitedForBeforeItHasJoined) {
  const auto evaluation = Make();
  ASSERT_THAT(evaluation, IsOk());
  EXPECT_THAT((*evaluation)->Wait(absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace lockstep::worker
