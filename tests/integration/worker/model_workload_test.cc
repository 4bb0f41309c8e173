#include "worker/model_workload.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/local_job.h"
#include "tests/testing/status_matchers.h"
#include "worker/device/compute_device.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
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
