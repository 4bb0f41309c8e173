// The kinds of strategy give the same bits where as many replicas compute a
// step, in strict mode, and go on from one another's checkpoints.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/checkpoint/step_directory.h"
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
using ::lockstep::testing::ReadCheckpoint;
using ::lockstep::testing::StartServer;
using ::lockstep::testing::StartWorker;

constexpr int kReplicas = 3;
constexpr int kCheckpoints = 4;  // of each job, the last one at its end

struct Recipe {
  std::string name;
  OptimizerConfig::Kind optimizer = OptimizerConfig::Kind::kMomentum;
  int64_t steps = 200;
  void (*change)(JobConfig&) = nullptr;
};

// Where a step of `replicas` gradients is computed.
struct Strategy {
  StrategyKind kind = StrategyKind::kParameterServer;
  int replicas = kReplicas;

  bool has_one_worker() const {
    return kind == StrategyKind::kMirrored || kind == StrategyKind::kOneDevice;
  }
  int workers() const { return has_one_worker() ? 1 : replicas; }
  // A mirror beside each worker.
  int servers() const {
    return kind == StrategyKind::kMultiWorkerMirrored ? workers() : 1;
  }
};

// A job of one kind, and the roles that the kind needs, in this process.
class KindJob {
 public:
  explicit KindJob(const Strategy& strategy)
      : strategy_(strategy),
        local_({.servers = strategy.servers(), .workers = strategy.workers()}) {
    job().strategy.kind = strategy.kind;
    if (strategy.has_one_worker()) {
      job().strategy.replicas_per_worker = strategy.replicas;
    }
  }

  JobConfig& job() { return local_.job(); }
  std::string checkpoints() const { return local_.checkpoints(); }

  bool HasCheckpoint(int64_t step) const {
    return std::filesystem::exists(checkpoints() + "/" +
                                   StepDirectoryName(step));
  }

  // Begins with the checkpoint that another job has written at `step`.
  void BeginWith(const KindJob& other, int64_t step) {
    const std::string name = "/" + StepDirectoryName(step);
    std::filesystem::create_directories(checkpoints());
    std::filesystem::copy(other.checkpoints() + name, checkpoints() + name,
                          std::filesystem::copy_options::recursive);
  }

  absl::Status Train(const Recipe& recipe) {
    job().optimizer.kind = recipe.optimizer;
    job().optimizer.momentum = DefaultMomentum(recipe.optimizer);
    job().optimizer.epsilon = DefaultEpsilon(recipe.optimizer);
    job().optimizer.weight_decay = DefaultWeightDecay(recipe.optimizer);
    job().train_steps = recipe.steps;
    job().checkpoint.every_steps = recipe.steps / kCheckpoints;
    if (recipe.change != nullptr) recipe.change(job());
    LocalChief chief(local_);
    std::vector<std::unique_ptr<LocalServer>> servers;
    for (int i = 0; i < strategy_.servers(); ++i) {
      servers.push_back(StartServer(local_, i));
    }
    std::vector<std::unique_ptr<LocalWorker>> workers;
    for (int i = 0; i < strategy_.workers(); ++i) {
      workers.push_back(StartWorker(local_, i));
    }
    for (const auto& worker : workers) {
      const absl::Status end = worker->Wait();
      if (!end.ok()) return end;
    }
    return chief.Wait();
  }

 private:
  const Strategy strategy_;
  LocalJob local_;
};

// Compares the last checkpoints, and those before that both jobs have: a
// checkpoint is left out while the one before is written.
void ExpectSameCheckpoints(const KindJob& one, const KindJob& other,
                           int64_t steps) {
  for (int i = 1; i <= kCheckpoints; ++i) {
    const int64_t step = steps * i / kCheckpoints;
    const bool written = one.HasCheckpoint(step) && other.HasCheckpoint(step);
    if (written || step == steps) {
      ExpectSameBits(one.checkpoints(), other.checkpoints(), step);
    }
  }
}

class StrategyKindsTest : public ::testing::TestWithParam<Recipe> {};

TEST_P(StrategyKindsTest, HaveTheSameCheckpoints) {
  const Recipe& recipe = GetParam();
  KindJob servers({StrategyKind::kParameterServer});
  KindJob mirrored({StrategyKind::kMirrored});
  KindJob mirrors({StrategyKind::kMultiWorkerMirrored});

  ASSERT_THAT(servers.Train(recipe), IsOk());
  ASSERT_THAT(mirrored.Train(recipe), IsOk());
  ASSERT_THAT(mirrors.Train(recipe), IsOk());

  ExpectSameCheckpoints(servers, mirrored, recipe.steps);
  ExpectSameCheckpoints(servers, mirrors, recipe.steps);
}

using Kind = OptimizerConfig::Kind;

void Regularise(JobConfig& job) {
  job.optimizer.l1 = 1e-4;
  job.optimizer.l2 = 1e-3;
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, StrategyKindsTest,
    ::testing::Values(
        Recipe{"GradientDescent", Kind::kGradientDescent},
        Recipe{"Momentum", Kind::kMomentum}, Recipe{"Adam", Kind::kAdam},
        Recipe{"Adagrad", Kind::kAdagrad}, Recipe{"RmsProp", Kind::kRmsProp},
        Recipe{"Adadelta", Kind::kAdadelta}, Recipe{"Ftrl", Kind::kFtrl},
        Recipe{"LazyAdam", Kind::kLazyAdam}, Recipe{"Sgd", Kind::kSgd},
        Recipe{"AdamTorch", Kind::kAdamTorch}, Recipe{"AdamW", Kind::kAdamW},
        Recipe{"AdagradDa", Kind::kAdagradDa, 200, Regularise},
        Recipe{"ProximalAdagrad", Kind::kProximalAdagrad, 200, Regularise},
        Recipe{"ProximalGradientDescent", Kind::kProximalGradientDescent, 200,
               Regularise}),
    [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Jobs, StrategyKindsTest,
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
        Recipe{"MlpWithUntrainedLayer", Kind::kAdam, 40,
               [](JobConfig& job) {
                 job.model.kind = "mlp";
                 job.model.hidden_units = {16, 8};
                 job.untrained = {"hidden1/*"};
                 job.clipping = {ClippingConfig::Kind::kGlobalNorm, 0.1};
               }},
        Recipe{"LimitedMeanNorm", Kind::kMomentum, 40,
               [](JobConfig& job) {
                 job.clipping = {ClippingConfig::Kind::kMeanGlobalNorm, 0.05};
               }},
        Recipe{
            "HalfVariables", Kind::kMomentum, 40,
            [](JobConfig& job) { job.model.variable_type = DType::kFloat16; }}),
    [](const auto& info) { return info.param.name; });

// Not MIRRORED, whose mean of bfloat16 is rounded once more.
TEST(StrategyKindsBFloat16Test, MirrorsHaveTheLimitedMeanNormOfServers) {
  const Recipe recipe = {
      "", Kind::kMomentum, 40, [](JobConfig& job) {
        job.model.variable_type = DType::kBFloat16;
        job.clipping = {ClippingConfig::Kind::kMeanGlobalNorm, 0.05};
      }};
  KindJob servers({StrategyKind::kParameterServer});
  KindJob mirrors({StrategyKind::kMultiWorkerMirrored});

  ASSERT_THAT(servers.Train(recipe), IsOk());
  ASSERT_THAT(mirrors.Train(recipe), IsOk());

  ExpectSameCheckpoints(servers, mirrors, recipe.steps);
}

// Each kind goes on from the last checkpoint of each other one. The half before
// has another learning rate, so that a job that began anew would end otherwise.
void ExpectKindsGoOnFromOneAnother(const std::vector<StrategyKind>& kinds,
                                   int replicas) {
  const Recipe half = {"", Kind::kAdam, 20,
                       [](JobConfig& job) { job.learning_rate.base = 0.03; }};
  const Recipe whole = {"", Kind::kAdam, 40};
  KindJob anew({kinds[0], replicas});
  ASSERT_THAT(anew.Train(whole), IsOk());
  std::vector<std::unique_ptr<KindJob>> ends;
  for (const StrategyKind first : kinds) {
    KindJob begun({first, replicas});
    ASSERT_THAT(begun.Train(half), IsOk());
    for (const StrategyKind second : kinds) {
      ends.push_back(std::make_unique<KindJob>(Strategy{second, replicas}));
      ends.back()->BeginWith(begun, half.steps);

      ASSERT_THAT(ends.back()->Train(whole), IsOk());

      ExpectSameBits(ends[0]->checkpoints(), ends.back()->checkpoints(),
                     whole.steps);
    }
  }
  EXPECT_NE(
      ReadCheckpoint(ends[0]->checkpoints(), whole.steps, "model.safetensors"),
      ReadCheckpoint(anew.checkpoints(), whole.steps, "model.safetensors"));
}

TEST(StrategyKindsCheckpointTest, KindsOfManyReplicasGoOnFromOneAnother) {
  ExpectKindsGoOnFromOneAnother(
      {StrategyKind::kParameterServer, StrategyKind::kMirrored,
       StrategyKind::kMultiWorkerMirrored},
      kReplicas);
}

TEST(StrategyKindsCheckpointTest, KindsOfOneReplicaGoOnFromOneAnother) {
  ExpectKindsGoOnFromOneAnother(
      {StrategyKind::kParameterServer, StrategyKind::kMirrored,
       StrategyKind::kMultiWorkerMirrored, StrategyKind::kOneDevice},
      1);
}

TEST(ModelWorkloadReplicasTest, WorkersOfTwoReplicasRepeatTheirBits) {
  const Recipe recipe = {"", Kind::kMomentum, 40};
  KindJob one({StrategyKind::kParameterServer, 2});
  KindJob other({StrategyKind::kParameterServer, 2});
  KindJob mirrors({StrategyKind::kMultiWorkerMirrored, 2});
  for (KindJob* job : {&one, &other, &mirrors}) {
    job->job().strategy.replicas_per_worker = 2;
    ASSERT_THAT(job->Train(recipe), IsOk());
  }

  ExpectSameCheckpoints(one, other, recipe.steps);
  ExpectSameCheckpoints(one, mirrors, recipe.steps);
}

}  // namespace
}  // namespace lockstep::worker
