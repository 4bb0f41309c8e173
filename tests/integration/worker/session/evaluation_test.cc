#include "worker/session/evaluation.h"

#include <atomic>
#include <fstream>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint_store.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/worker/fake_chief.h"
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
  job_.job().moving_average = {.decay = 0.9, .evaluate = false};
  LocalChief chief(job_);
  auto evaluation = Make();
  ASSERT_THAT(evaluation, IsOk());
  ASSERT_OK((*evaluation)->Join());
  EXPECT_EQ((*evaluation)->job_name(), job_.job().name);
  EXPECT_FALSE((*evaluation)->scores_averages());
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

// A chief that takes the evaluator for dead at once, and does not let it in
// again.
class ChiefOfOneRegistration final : public testing::FakeChief {
 public:
  using FakeChief::FakeChief;

  grpc::Status Register(grpc::ServerContext* context,
                        const v1::RegisterRequest* request,
                        v1::RegisterResponse* response) override {
    if (!registered_.exchange(true)) {
      return FakeChief::Register(context, request, response);
    }
    if (on_second_) on_second_();
    return {grpc::StatusCode::UNAVAILABLE, "away"};
  }
  grpc::Status Heartbeat(grpc::ServerContext*, const v1::HeartbeatRequest*,
                         v1::HeartbeatResponse*) override {
    return {grpc::StatusCode::ABORTED, "silent"};
  }

  // Must be called before the first registration.
  void set_on_second(std::function<void()> on_second) {
    on_second_ = std::move(on_second);
  }

 private:
  std::atomic<bool> registered_ = false;
  std::function<void()> on_second_;
};

class EvaluationThatIsGivenUpTest : public EvaluationTest {
 protected:
  EvaluationThatIsGivenUpTest() { job_.job().max_wait = absl::Seconds(1); }

  absl::StatusOr<std::unique_ptr<Evaluation>> MakeFor(
      const ChiefOfOneRegistration& chief) {
    const std::string path = job_.directory().Join("tf_config");
    std::ofstream(path) << absl::StrCat(
        R"({"cluster": {"chief": [")", chief.address(),
        R"("], "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:1"],
            "evaluator": ["127.0.0.1:3"]},
            "task": {"type": "evaluator", "index": 0}})");
    return Evaluation::Make({.tf_config = path});
  }
};

TEST_F(EvaluationThatIsGivenUpTest, AStopWhileItJoinsAgainEndsTheWait) {
  ChiefOfOneRegistration chief(job_.job());
  auto evaluation = MakeFor(chief);
  ASSERT_THAT(evaluation, IsOk());
  chief.set_on_second([&] { (*evaluation)->RequestStop(); });
  ASSERT_OK((*evaluation)->Join());

  EXPECT_THAT((*evaluation)->Wait(absl::Minutes(1)),
              ::lockstep::testing::IsOkAndHolds(true));
  EXPECT_THAT((*evaluation)->end(), StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(EvaluationThatIsGivenUpTest, AWaitAfterAFailedOneIsRefused) {
  ChiefOfOneRegistration chief(job_.job());
  auto evaluation = MakeFor(chief);
  ASSERT_THAT(evaluation, IsOk());
  ASSERT_OK((*evaluation)->Join());

  EXPECT_THAT((*evaluation)->Wait(absl::Minutes(1)),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT((*evaluation)->end(), StatusIs(absl::StatusCode::kUnavailable));
  // It would wait for an end that no heartbeat brings.
  EXPECT_THAT((*evaluation)->Wait(absl::ZeroDuration()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace lockstep::worker
