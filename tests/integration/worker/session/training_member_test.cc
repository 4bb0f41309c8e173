#include "worker/session/training_member.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"
#include "worker/session/workload.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

// One variable whose gradient is its value, or a workload that cannot begin.
class ShrinkingWorkload final : public Workload {
 public:
  explicit ShrinkingWorkload(absl::Status begins) : begins_(begins) {}

  absl::Status Begin(const ChiefClient::Registration&) override {
    return begins_;
  }
  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  absl::StatusOr<std::unique_ptr<GradientSource>> MakeSource(
      std::shared_ptr<ParameterMemory> memory) override {
    return std::make_unique<Source>(std::move(memory));
  }

 private:
  class Source final : public GradientSource {
   public:
    explicit Source(std::shared_ptr<ParameterMemory> memory)
        : memory_(std::move(memory)) {}
    absl::Status Begin(int64_t, GradientPass& pass) override {
      return pass.NeedValues(0, 1);
    }
    absl::StatusOr<GradientResult> Finish(GradientPass& pass) override {
      const absl::Span<std::byte> value = memory_->value(0);
      std::copy(value.begin(), value.end(), memory_->gradient(0).begin());
      pass.GradientReady(0);
      return GradientResult{.loss = 1, .examples = 8};
    }

   private:
    const std::shared_ptr<ParameterMemory> memory_;
  };

  const absl::Status begins_;
  const std::vector<VariableSpec> variables_ = {{.name = "w", .shape = {2}}};
};

TEST(TrainingMemberTest, AnyWorkloadIsTrainedToTheEndOfTheJob) {
  LocalJob job({});
  LocalChief chief(job);
  auto server = StartServer(job);
  ShrinkingWorkload workload((absl::OkStatus()));
  auto member = TrainingMember::Make(job.ClusterOf("worker", 0), {}, workload,
                                     Clock::Real());
  ASSERT_THAT(member, IsOk());
  EXPECT_THAT((*member)->Run(), IsOk());
  EXPECT_GE((*member)->progress().accepted, job.job().train_steps);
  EXPECT_THAT(chief.Wait(), IsOk());
}

TEST(TrainingMemberTest, AWorkloadThatCannotBeginEndsTheJobWithItsReason) {
  LocalJob job({});
  LocalChief chief(job);
  auto server = StartServer(job);
  ShrinkingWorkload workload(absl::InvalidArgumentError("no such data"));
  auto member = TrainingMember::Make(job.ClusterOf("worker", 0), {}, workload,
                                     Clock::Real());
  ASSERT_THAT(member, IsOk());
  EXPECT_THAT((*member)->Run(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(chief.Wait(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("no such data")));
}

TEST(TrainingMemberTest, ImpossibleNumbersOfThreadsAreRefused) {
  const LocalJob job({});
  ShrinkingWorkload workload((absl::OkStatus()));
  const auto made = [&](const TrainingMember::Options& options) {
    return TrainingMember::Make(job.ClusterOf("worker", 0), options, workload,
                                Clock::Real())
        .status();
  };
  EXPECT_THAT(made({.pollers = -5}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("pollers is -5, but must be from 0 to 16")));
  EXPECT_THAT(made({.connections = 17}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("connections is 17")));
}

}  // namespace
}  // namespace lockstep::worker
