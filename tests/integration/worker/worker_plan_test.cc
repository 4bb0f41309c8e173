// A whole worker and a chief whose plan or job cannot be trusted.

#include <string>

#include "absl/strings/str_cat.h"
#include "common/cluster/tf_config.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/picture_files.h"
#include "tests/integration/worker/fake_chief.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "worker/worker.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::FakeChief;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

class WorkerPlanTest : public ::testing::Test {
 protected:
  WorkerPlanTest() {
    job_.name = "job";
    job_.train_steps = 10;
    job_.batch_size = 4;
    job_.model.kind = "softmax";
    job_.data.train_images = directory_.Join("images");
    job_.data.train_labels = directory_.Join("labels");
    EXPECT_OK(testing::WritePictures(
        {job_.data.train_images, job_.data.train_labels}, 20));
  }

  // Runs worker 0 to its end.
  absl::Status Run(const FakeChief& chief) {
    const absl::StatusOr<TfConfig> config = ParseTfConfig(
        absl::StrCat(R"({"cluster": {"chief": [")", chief.address(),
                     R"("], "worker": ["127.0.0.1:2"], "ps": ["127.0.0.1:1"]},
                        "task": {"type": "worker", "index": 0}})"),
        "test");
    if (!config.ok()) return config.status();
    const absl::StatusOr<Cluster> cluster = Cluster::Make(*config);
    if (!cluster.ok()) return cluster.status();
    absl::StatusOr<std::unique_ptr<Worker>> worker =
        Worker::Make(*cluster, {.device = "cpu"}, Clock::Real());
    return worker.ok() ? (*worker)->Run() : worker.status();
  }

  absl::Status RunWithPlan(const FakeChief::Change& change) {
    FakeChief chief(job_, change);
    const absl::Status status = Run(chief);
    EXPECT_THAT(chief.left(), HasSubstr(std::string(status.message())));
    return status;
  }

  testing::TempDir directory_;
  JobConfig job_;
};

TEST_F(WorkerPlanTest, PlanWithFewerVariablesIsRefused) {
  EXPECT_THAT(RunWithPlan([](v1::GetPlanResponse& plan) {
                plan.mutable_variables()->RemoveLast();
                plan.mutable_parts()->RemoveLast();
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("it has 1 variables, the model 2")));
}

TEST_F(WorkerPlanTest, PlanWithoutVariablesIsRefused) {
  EXPECT_THAT(RunWithPlan([](v1::GetPlanResponse& plan) {
                plan.Clear();
                plan.set_ready(true);
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("it has 0 variables")));
}

TEST_F(WorkerPlanTest, PlanWithSmallerVariablesIsRefused) {
  EXPECT_THAT(RunWithPlan([](v1::GetPlanResponse& plan) {
                plan.mutable_variables(0)->set_shape(0, 1);
                plan.mutable_parts(0)->set_count(10);
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("[1,10]"), HasSubstr("[64,10]"))));
}

TEST_F(WorkerPlanTest, PlanWithHugeVariablesIsRefused) {
  EXPECT_THAT(RunWithPlan([](v1::GetPlanResponse& plan) {
                plan.mutable_variables(0)->set_shape(0, int64_t{1} << 52);
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("[4503599627370496,10]")));
}

TEST_F(WorkerPlanTest, PlanThatLeavesElementsOutIsRefused) {
  EXPECT_THAT(RunWithPlan([](v1::GetPlanResponse& plan) {
                plan.mutable_parts(0)->set_count(600);
              }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("600 of the 640 elements")));
}

TEST_F(WorkerPlanTest, JobThatNoChiefShouldHaveTakenIsRefused) {
  v1::JobConfig job = ToProto(job_);
  job.set_batch_size(-1);
  FakeChief chief(job);
  EXPECT_THAT(Run(chief), StatusIs(absl::StatusCode::kInvalidArgument,
                                   HasSubstr("batch_size")));
  EXPECT_THAT(chief.left(), HasSubstr("batch_size"));
}

TEST_F(WorkerPlanTest, WorkerThatRefusesTheNameOfAJobLeavesIt) {
  v1::JobConfig job = ToProto(job_);
  job.set_name("a\nname");
  FakeChief chief(job);
  EXPECT_THAT(Run(chief),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("name")));
  EXPECT_THAT(chief.left(), HasSubstr("name"));
}

}  // namespace
}  // namespace lockstep::worker
