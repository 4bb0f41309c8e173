// Several replicas in one worker give the bits of as many workers of one
// replica each, in strict mode.

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/local_job.h"
#include "tests/testing/local_roles.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::ExpectSameBits;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::LocalChief;
using ::lockstep::testing::LocalJob;
using ::lockstep::testing::LocalServer;
using ::lockstep::testing::LocalWorker;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StartWorker;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int kReplicas = 3;

struct Recipe {
  std::string name;
  OptimizerConfig::Kind optimizer = OptimizerConfig::Kind::kMomentum;
  int64_t steps = 200;
  void (*change)(JobConfig&) = nullptr;
};

// Trains, with a checkpoint every half of the steps.
absl::Status Train(LocalJob& local, const Recipe& recipe, int workers) {
  JobConfig& job = local.job();
  job.optimizer.kind = recipe.optimizer;
  job.optimizer.momentum = DefaultMomentum(recipe.optimizer);
  job.optimizer.epsilon = DefaultEpsilon(recipe.optimizer);
  job.optimizer.weight_decay = DefaultWeightDecay(recipe.optimizer);
  job.train_steps = recipe.steps;
  job.checkpoint.every_steps = recipe.steps / 2;
  if (recipe.change != nullptr) recipe.change(job);
  LocalChief chief(local);
  const std::unique_ptr<LocalServer> server = StartServer(local);
  std::vector<std::unique_ptr<LocalWorker>> all;
  for (int w = 0; w < workers; ++w) all.push_back(StartWorker(local, w));
  for (const auto& worker : all) {
    const absl::Status end = worker->Wait();
    if (!end.ok()) return end;
  }
  return chief.Wait();
}

void ExpectSameCheckpoints(const LocalJob& one, const LocalJob& other,
                           int64_t steps) {
  for (const int64_t step : {steps / 2, steps}) {
    ExpectSameBits(one.checkpoints(), other.checkpoints(), step);
  }
}

class ReplicasTest : public ::testing::TestWithParam<Recipe> {};

TEST_P(ReplicasTest, MirroredHasTheBitsOfAsManyWorkers) {
  LocalJob servers({.workers = kReplicas});
  LocalJob mirrored({});
  mirrored.job().strategy = {StrategyKind::kMirrored, kReplicas};

  ASSERT_THAT(Train(servers, GetParam(), kReplicas), IsOk());
  ASSERT_THAT(Train(mirrored, GetParam(), 1), IsOk());

  ExpectSameCheckpoints(servers, mirrored, GetParam().steps);
}

using Kind = OptimizerConfig::Kind;

INSTANTIATE_TEST_SUITE_P(
    Optimizers, ReplicasTest,
    ::testing::Values(
        Recipe{"GradientDescent", Kind::kGradientDescent},
        Recipe{"Momentum", Kind::kMomentum}, Recipe{"Adam", Kind::kAdam},
        Recipe{"Adagrad", Kind::kAdagrad}, Recipe{"RmsProp", Kind::kRmsProp},
        Recipe{"Adadelta", Kind::kAdadelta}, Recipe{"Ftrl", Kind::kFtrl},
        Recipe{"LazyAdam", Kind::kLazyAdam}, Recipe{"Sgd", Kind::kSgd},
        Recipe{"AdamTorch", Kind::kAdamTorch}, Recipe{"AdamW", Kind::kAdamW}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Jobs, ReplicasTest,
    ::testing::Values(
        Recipe{"MlpInParts", Kind::kMomentum, 40,
               [](JobConfig& job) {
                 job.model.kind = "mlp";
                 job.model.hidden_units = {16, 8};
                 job.micro_batches = 2;
               }},
        Recipe{"CnnWithClippingByGlobalNorm", Kind::kAdam, 20,
               [](JobConfig& job) {
                 job.model.kind = "cnn";
                 job.model.conv_filters = {2};
                 job.clipping = {ClippingConfig::Kind::kGlobalNorm, 0.1};
               }},
        Recipe{"SoftmaxWithClippingByValue", Kind::kMomentum, 40,
               [](JobConfig& job) {
                 job.clipping = {ClippingConfig::Kind::kValue, 0.001};
               }},
        Recipe{
            "HalfVariables", Kind::kMomentum, 40,
            [](JobConfig& job) { job.model.variable_type = DType::kFloat16; }}),
    [](const auto& info) { return info.param.name; });

TEST(ModelWorkloadReplicasTest, OneDeviceHasTheBitsOfOneWorker) {
  LocalJob servers({});
  LocalJob one_device({});
  one_device.job().strategy.kind = StrategyKind::kOneDevice;
  const Recipe recipe = {"", Kind::kAdam, 40};

  ASSERT_THAT(Train(servers, recipe, 1), IsOk());
  ASSERT_THAT(Train(one_device, recipe, 1), IsOk());

  ExpectSameCheckpoints(servers, one_device, recipe.steps);
}

TEST(ModelWorkloadReplicasTest, WorkersOfTwoReplicasRepeatTheirBits) {
  LocalJob one({.workers = 2});
  LocalJob other({.workers = 2});
  for (LocalJob* job : {&one, &other}) {
    job->job().strategy.replicas_per_worker = 2;
    ASSERT_THAT(Train(*job, {"", Kind::kMomentum, 40}, 2), IsOk());
  }

  ExpectSameCheckpoints(one, other, 40);
}

TEST(ModelWorkloadReplicasTest, ACheckpointOfOneKindGoesOnUnderAnother) {
  LocalJob whole({.workers = kReplicas});
  LocalJob half({.workers = kReplicas});
  const Recipe all = {"", Kind::kMomentum, 40};
  ASSERT_THAT(Train(whole, all, kReplicas), IsOk());
  ASSERT_THAT(Train(half, {"", Kind::kMomentum, 20}, kReplicas), IsOk());

  LocalJob rest({});
  rest.job().checkpoint.directory = half.checkpoints();
  rest.job().strategy = {StrategyKind::kMirrored, kReplicas};
  ASSERT_THAT(Train(rest, all, 1), IsOk());

  ExpectSameBits(whole.checkpoints(), rest.checkpoints(), 40);
}

TEST(ModelWorkloadReplicasTest, ReplicasOfAModelWithTablesAreRefused) {
  LocalJob local({});
  local.job().strategy.replicas_per_worker = 2;

  EXPECT_THAT(
      Train(local,
            {"", Kind::kMomentum, 2,
             [](JobConfig& job) { job.model.kind = "logistic_regression"; }},
            1),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("start more workers")));
}

}  // namespace
}  // namespace lockstep::worker
