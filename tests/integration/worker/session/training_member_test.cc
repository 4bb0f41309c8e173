#include "worker/session/training_member.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/cluster/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/worker/fake_chief.h"
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
class ShrinkingWorkload : public Workload {
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
  // The chief's word that the job is done may come before the token that tells
  // what became of the last pass.
  EXPECT_GE((*member)->progress().accepted, job.job().train_steps - 1);
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

// As a server's refusal would have it, after which a member joins again.
TEST(TrainingMemberTest, AWorkloadsFailedPreconditionIsNoRefusalOfAServer) {
  LocalJob job({});
  job.job().max_wait = absl::Seconds(20);
  LocalChief chief(job);
  auto server = StartServer(job);
  ShrinkingWorkload workload(absl::FailedPreconditionError("no directory"));
  auto member = TrainingMember::Make(job.ClusterOf("worker", 0), {}, workload,
                                     Clock::Real());
  ASSERT_THAT(member, IsOk());
  EXPECT_THAT((*member)->Run(), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("no directory")));
  EXPECT_THAT(chief.Wait(),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("no directory")));
}

// A chief that takes its first member for dead once it has reported a figure,
// and whose job is done when the member is back.
class ForgetfulChief final : public testing::FakeChief {
 public:
  using FakeChief::FakeChief;

  grpc::Status GetPlan(grpc::ServerContext*, const v1::GetPlanRequest*,
                       v1::GetPlanResponse*) override {
    return grpc::Status::OK;  // not ready
  }
  grpc::Status Heartbeat(grpc::ServerContext*,
                         const v1::HeartbeatRequest* request,
                         v1::HeartbeatResponse* response) override {
    const uint64_t incarnation = request->identity().incarnation();
    response->set_state(v1::JOB_STARTING);
    MutexLock lock(mutex_);
    if (first_ == 0) first_ = incarnation;
    if (incarnation != first_) {
      figures_ += request->progress().figures_size();
      response->set_state(v1::JOB_DONE);
      back_ = true;
    } else if (request->progress().figures_size() > 0) {
      return {grpc::StatusCode::ABORTED, "silent"};
    }
    return grpc::Status::OK;
  }

  bool is_back() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return back_;
  }
  // The figures in reports of the second incarnation.
  int figures() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(mutex_);
    return figures_;
  }

 private:
  mutable Mutex mutex_;
  uint64_t first_ ABSL_GUARDED_BY(mutex_) = 0;
  bool back_ ABSL_GUARDED_BY(mutex_) = false;
  int figures_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST(TrainingMemberTest, AMemberThatJoinsAgainReportsNothingOfItsPast) {
  JobConfig job;
  job.train_steps = 10;
  job.model.kind = kExternalModel;
  job.heartbeat_interval = absl::Milliseconds(50);
  const ForgetfulChief chief(job);
  const auto config = ParseTfConfig(
      absl::StrCat(R"({"cluster": {"chief": [")", chief.address(),
                   R"("], "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:1"]},
                      "task": {"type": "worker", "index": 0}})"),
      "test");
  ASSERT_THAT(config, IsOk());
  const auto cluster = Cluster::Make(*config);
  ASSERT_THAT(cluster, IsOk());
  // The figure of the first incarnation only.
  class ReportingWorkload final : public ShrinkingWorkload {
   public:
    ReportingWorkload() : ShrinkingWorkload(absl::OkStatus()) {}
    absl::Status Begin(const ChiefClient::Registration&) override {
      return std::exchange(reported, true)
                 ? absl::OkStatus()
                 : member->Report({.name = "figure", .value = 1});
    }
    TrainingMember* member = nullptr;
    bool reported = false;
  } workload;
  auto member = TrainingMember::Make(*cluster, {}, workload, Clock::Real());
  ASSERT_THAT(member, IsOk());
  workload.member = member->get();

  EXPECT_THAT((*member)->Run(), IsOk());

  EXPECT_TRUE(chief.is_back());
  EXPECT_EQ(chief.figures(), 0);
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
