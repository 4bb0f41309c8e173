#include "worker/model_workload.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/status_matchers.h"
#include "worker/device/compute_device.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ModelWorkloadTest, TheModelsVariablesFollowFromTheJobsData) {
  testing::LocalJob job({});
  auto backend = OpenComputeDevice("cpu", 1);
  ASSERT_OK(backend.status());
  ModelWorkload workload(0, *std::move(backend), {});
  ChiefClient::Registration membership;
  membership.job = job.job();
  membership.num_workers = 1;
  ASSERT_OK(workload.Begin(membership));
  ASSERT_TRUE(workload.examples().has_value());
  ASSERT_FALSE(workload.variables().empty());
  const ExampleShape shape = workload.examples().value();
  EXPECT_EQ(workload.variables()[0].shape[0],
            shape.height * shape.width * shape.channels);
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

}  // namespace
}  // namespace lockstep::worker
