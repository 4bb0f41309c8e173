#include "worker/model_workload.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/hooked_pass.h"
#include "tests/testing/local_job.h"
#include "tests/testing/status_matchers.h"
#include "worker/device/compute_device.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A worker whose first membership has begun.
class BegunWorkloadTest : public ::testing::Test {
 protected:
  void SetUp() override {
    membership_.job = job_.job();
    membership_.num_workers = 1;
    ASSERT_OK(workload_.Begin(membership_));
  }

  testing::LocalJob job_{{}};
  ModelWorkload workload_{0, OpenComputeDevice("cpu", 1).value(), {}};
  ChiefClient::Registration membership_;
};

TEST_F(BegunWorkloadTest, TheModelsVariablesFollowFromTheJobsData) {
  ASSERT_TRUE(workload_.examples().has_value());
  ASSERT_FALSE(workload_.variables().empty());
  EXPECT_GT(workload_.num_examples(), 0);
  const ExampleShape shape = workload_.examples().value();
  EXPECT_EQ(workload_.variables()[0].shape[0],
            shape.height * shape.width * shape.channels);
}

// A worker that joins again has no room for the memory of two memberships.
TEST_F(BegunWorkloadTest, MemoryOfAMembershipGoesBeforeTheNextIsMade) {
  auto memory = std::make_shared<ParameterMemory>(*ParameterMemory::Make(
      workload_.variables(), ParameterMemory::Gradients::kPrivate));
  const std::weak_ptr<ParameterMemory> left = memory;
  auto source = workload_.MakeSource(std::move(memory));
  ASSERT_OK(source.status());
  *source = nullptr;

  ASSERT_OK(workload_.Begin(membership_));

  EXPECT_TRUE(left.expired());
}

TEST_F(BegunWorkloadTest, DataOfAnEditedJobFileIsReadAgain) {
  const int64_t before = workload_.num_examples();
  membership_.job.batch_size /= 2;
  ASSERT_OK(workload_.Begin(membership_));
  EXPECT_EQ(workload_.num_examples(), before);

  membership_.job.data.train_images = "missing";
  EXPECT_THAT(workload_.Begin(membership_),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing")));
}

// The data that it has is not the other kind's, and need not be there.
TEST_F(BegunWorkloadTest, AJobFileThatWasEditedToAnotherKindIsCheckedAnew) {
  membership_.job.model.kind = kExternalModel;
  EXPECT_THAT(workload_.Begin(membership_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("programs of its user")));
}

// Whenever a file of data begins, asks how far the workload is.
class AskingClock final : public Clock {
 public:
  absl::Time Now() const override {
    if (workload != nullptr) {
      // The question asks for the time, too.
      const ModelWorkload* asked = std::exchange(workload, nullptr);
      answers.push_back(asked->Beginning());
      workload = asked;
    }
    return absl::UnixEpoch();
  }

  mutable const ModelWorkload* workload = nullptr;
  mutable std::vector<std::string> answers;
};

TEST(ModelWorkloadTest, SaysWhichFileItReads) {
  testing::LocalJob job({});
  auto backend = OpenComputeDevice("cpu", 1);
  ASSERT_OK(backend.status());
  AskingClock clock;
  ModelWorkload workload(0, *std::move(backend), {}, 1, clock);
  ChiefClient::Registration membership;
  membership.job = job.job();
  membership.num_workers = 1;
  clock.workload = &workload;
  ASSERT_OK(workload.Begin(membership));
  clock.workload = nullptr;

  EXPECT_THAT(clock.answers, ::testing::Contains(AllOf(HasSubstr("reads "),
                                                       HasSubstr(", 100 %"))));
  EXPECT_EQ(workload.Beginning(), "");
}

TEST(ModelWorkloadTest, AJobForAUsersProgramIsRefused) {
  auto backend = OpenComputeDevice("cpu", 1);
  ASSERT_OK(backend.status());
  ModelWorkload workload(0, *std::move(backend), {});
  ChiefClient::Registration membership;
  membership.job.model.kind = "external";
  EXPECT_THAT(workload.Begin(membership),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("programs of its user")));
}

// The gradients of one pass of the job, by the names of their variables.
std::map<std::string, std::vector<float>> GradientsOf(const JobConfig& job) {
  auto backend = OpenComputeDevice("cpu", 1);
  EXPECT_OK(backend.status());
  ModelWorkload workload(0, *std::move(backend), {});
  ChiefClient::Registration membership;
  membership.job = job;
  membership.num_workers = 1;
  EXPECT_OK(workload.Begin(membership));
  const auto memory = std::make_shared<ParameterMemory>(*ParameterMemory::Make(
      workload.variables(), ParameterMemory::Gradients::kPrivate));
  for (size_t v = 0; v < workload.variables().size(); ++v) {
    std::vector<float> values(memory->value(v).size() / sizeof(float));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = 0.25f - 0.1f * static_cast<float>(i % 7);
    }
    std::memcpy(memory->value(v).data(), values.data(),
                memory->value(v).size());
  }
  auto source = workload.MakeSource(memory);
  EXPECT_OK(source.status());
  EXPECT_OK(testing::ComputePass(**source, 0).status());
  std::map<std::string, std::vector<float>> gradients;
  for (size_t v = 0; v < workload.variables().size(); ++v) {
    const absl::Span<const std::byte> bytes = memory->gradient(v);
    std::vector<float>& of = gradients[workload.variables()[v].name];
    of.resize(bytes.size() / sizeof(float));
    std::memcpy(of.data(), bytes.data(), bytes.size());
  }
  return gradients;
}

// The gradient of a moving statistic is its whole change.
TEST(ModelWorkloadTest, ReplicasDoNotClipMovingStatistics) {
  constexpr double kLimit = 1e-6;
  testing::LocalJob local({});
  JobConfig job = local.job();
  job.model.kind = "resnet";
  job.model.conv_filters = {2};
  job.model.layers = 1;
  job.strategy.replicas_per_worker = 2;
  const auto whole = GradientsOf(job);
  for (const ClippingConfig::Kind kind :
       {ClippingConfig::Kind::kGlobalNorm, ClippingConfig::Kind::kValue}) {
    job.clipping = {kind, kLimit};

    const auto clipped = GradientsOf(job);

    int statistics = 0;
    for (const auto& [name, gradient] : clipped) {
      if (!absl::StrContains(name, "/moving_")) continue;
      ++statistics;
      EXPECT_EQ(gradient, whole.at(name)) << name;
      EXPECT_GT(std::abs(gradient[0]), kLimit) << name;
    }
    EXPECT_EQ(statistics, 6);
    EXPECT_NE(clipped.at("logits/bias"), whole.at("logits/bias"));
  }
}

}  // namespace
}  // namespace lockstep::worker
