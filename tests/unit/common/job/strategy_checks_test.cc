#include "common/job/strategy_checks.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "common/job/cluster_fit.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

JobConfig Mirrored(int replicas) {
  JobConfig job;
  job.train_steps = 5;
  job.batch_size = 2;
  job.data.train_images = "a";
  job.data.train_labels = "b";
  job.strategy = {StrategyKind::kMirrored, replicas};
  return job;
}

TEST(StrategyChecksTest, OneWorkerOfAnyStrategyIsTaken) {
  for (const StrategyKind kind :
       {StrategyKind::kParameterServer, StrategyKind::kMirrored,
        StrategyKind::kOneDevice}) {
    JobConfig job = Mirrored(1);
    job.strategy.kind = kind;
    EXPECT_THAT(FitToCluster(job, 1), IsOk());
  }
  EXPECT_THAT(FitToCluster(Mirrored(4), 1), IsOk());
}

TEST(StrategyChecksTest, ParameterServersMayHaveWorkersOfSeveralReplicas) {
  JobConfig job = Mirrored(2);
  job.strategy.kind = StrategyKind::kParameterServer;

  EXPECT_THAT(FitToCluster(job, 3), IsOk());
}

TEST(StrategyChecksTest, MoreWorkersThanOneAreRefusedWithTheFix) {
  EXPECT_THAT(
      FitToCluster(Mirrored(1), 3),
      StatusIs(kInvalid,
               HasSubstr("strategy.kind is MIRRORED, which has one worker; the "
                         "cluster has 3: leave one in it and set "
                         "strategy.replicas_per_worker to 3")));
}

TEST(StrategyChecksTest, OneDeviceHasOneReplica) {
  JobConfig job = Mirrored(2);
  job.strategy.kind = StrategyKind::kOneDevice;

  EXPECT_THAT(CheckStrategy(job),
              StatusIs(kInvalid, HasSubstr("set the kind to MIRRORED")));
}

TEST(StrategyChecksTest, ReplicasAreCounted) {
  for (const int replicas : {-1, 65}) {
    EXPECT_THAT(CheckStrategy(Mirrored(replicas)),
                StatusIs(kInvalid, HasSubstr("strategy.replicas_per_worker")));
  }
}

struct Contradiction {
  const char* field;
  std::function<void(JobConfig&)> set;
};

class ContradictionTest : public ::testing::TestWithParam<Contradiction> {};

TEST_P(ContradictionTest, IsRefusedWithTheReasonAndTheFix) {
  JobConfig job = Mirrored(2);
  GetParam().set(job);

  EXPECT_THAT(
      CheckStrategy(job),
      StatusIs(kInvalid,
               AllOf(HasSubstr(GetParam().field),
                     HasSubstr("strategy.kind is MIRRORED"),
                     HasSubstr("set strategy.kind to PARAMETER_SERVER"))));
  job.strategy.kind = StrategyKind::kParameterServer;
  EXPECT_THAT(CheckStrategy(job), IsOk());
}

INSTANTIATE_TEST_SUITE_P(
    All, ContradictionTest,
    ::testing::Values(
        Contradiction{"mode",
                      [](JobConfig& j) { j.mode = SyncMode::kCompatible; }},
        Contradiction{"replicas_to_aggregate",
                      [](JobConfig& j) { j.replicas_to_aggregate = 2; }},
        Contradiction{"total_num_replicas",
                      [](JobConfig& j) { j.total_num_replicas = 2; }},
        Contradiction{"elastic_workers",
                      [](JobConfig& j) { j.elastic_workers = true; }},
        Contradiction{"gradient_wire_type",
                      [](JobConfig& j) {
                        j.gradient_wire_type = GradientType::kBFloat16;
                      }},
        Contradiction{"model.row_limit",
                      [](JobConfig& j) { j.model.row_limit = 5; }}));

JobConfig ManyMirrored() {
  JobConfig job = Mirrored(1);
  job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
  return job;
}

TEST(MirrorChecksTest, AllWorkersCount) {
  EXPECT_THAT(FitToCluster(ManyMirrored(), 3), IsOk());
  JobConfig job = ManyMirrored();
  job.replicas_to_aggregate = 2;

  EXPECT_THAT(FitToCluster(job, 3),
              StatusIs(kInvalid, AllOf(HasSubstr("replicas_to_aggregate is 2"),
                                       HasSubstr("backups need servers"))));
  job.total_num_replicas = 3;
  EXPECT_THAT(
      CheckStrategy(job),
      StatusIs(kInvalid,
               AllOf(HasSubstr("total_num_replicas is 3; backups need servers"),
                     HasSubstr("--set replicas_to_aggregate=0 --set "
                               "total_num_replicas=0"))));
}

TEST(MirrorChecksTest, SettingsThatNeedServersAreRefused) {
  for (const Contradiction& one : {
           Contradiction{"mode",
                         [](JobConfig& j) { j.mode = SyncMode::kCompatible; }},
           Contradiction{"model.row_limit",
                         [](JobConfig& j) { j.model.row_limit = 9; }},
       }) {
    JobConfig job = ManyMirrored();
    one.set(job);
    EXPECT_THAT(
        CheckStrategy(job),
        StatusIs(kInvalid,
                 AllOf(HasSubstr(one.field),
                       HasSubstr("set strategy.kind to PARAMETER_SERVER"))));
  }
}

TEST(StrategyChecksTest, EveryKindAcceptsModelsWithTables) {
  for (const char* model :
       {"logistic_regression", "skip_gram", "wide_and_deep"}) {
    for (const StrategyKind kind :
         {StrategyKind::kParameterServer, StrategyKind::kMultiWorkerMirrored,
          StrategyKind::kMirrored, StrategyKind::kOneDevice}) {
      JobConfig job = ManyMirrored();
      job.model.kind = model;
      job.strategy.kind = kind;
      EXPECT_THAT(CheckStrategy(job), IsOk()) << model;
    }
  }
}

TEST(MirrorChecksTest, TheOrderOfARingIsForMirrorsOfOneReplica) {
  JobConfig ring = ManyMirrored();
  ring.strategy.communication.order = SumOrder::kRing;
  EXPECT_THAT(CheckStrategy(ring), IsOk());
  const auto refused = [](absl::string_view why) {
    return StatusIs(
        kInvalid, AllOf(HasSubstr("strategy.communication.order is RING, but"),
                        HasSubstr(std::string(why)), HasSubstr("leave ")));
  };

  JobConfig job = ring;
  job.strategy.replicas_per_worker = 2;
  EXPECT_THAT(CheckStrategy(job), refused("each worker has 2 replicas"));
  job = ring;
  job.work = Work::kShared;
  EXPECT_THAT(CheckStrategy(job), refused("work is SHARED"));
  for (const StrategyKind kind :
       {StrategyKind::kParameterServer, StrategyKind::kMirrored,
        StrategyKind::kOneDevice}) {
    job = ring;
    job.strategy.kind = kind;
    EXPECT_THAT(CheckStrategy(job),
                refused("set strategy.kind to MULTI_WORKER_MIRRORED"));
  }
}

TEST(MirrorChecksTest, PacksAreForRings) {
  JobConfig job = ManyMirrored();
  CommunicationConfig& options = job.strategy.communication;
  options = {SumOrder::kRing, 0};
  EXPECT_THAT(CheckStrategy(job), IsOk());
  options.bytes_per_pack = int64_t{1} << 40;
  EXPECT_THAT(CheckStrategy(job), IsOk());
  options.bytes_per_pack = -2;
  EXPECT_THAT(
      CheckStrategy(job),
      StatusIs(kInvalid,
               HasSubstr("strategy.communication.bytes_per_pack is -2")));
  options = {SumOrder::kRank, 4096};
  EXPECT_THAT(
      CheckStrategy(job),
      StatusIs(kInvalid,
               AllOf(HasSubstr("strategy.communication.bytes_per_pack is 4096"),
                     HasSubstr("set the order to RING"))));
}

TEST(MirrorChecksTest, WorkersWithMirrorsMayBeElastic) {
  JobConfig job = ManyMirrored();
  job.elastic_workers = true;

  EXPECT_THAT(CheckStrategy(job), IsOk());
  EXPECT_THAT(FitToCluster(job, 3), IsOk());
  // Elastic or not, steps take the gradients of all workers.
  job.replicas_to_aggregate = 2;
  EXPECT_THAT(FitToCluster(job, 3),
              StatusIs(kInvalid, HasSubstr("backups need servers")));
}

TEST(MirrorChecksTest, ServersAreMirrorsOrNone) {
  const JobConfig mirrored = ManyMirrored();
  EXPECT_THAT(CheckStrategyServers(mirrored, 3, 3), IsOk());
  EXPECT_THAT(CheckStrategyServers(mirrored, 3, 0), IsOk());
  EXPECT_THAT(CheckStrategyServers(mirrored, 3, 1),
              StatusIs(kInvalid, HasSubstr("3 workers and 1 ps")));
  JobConfig servers = mirrored;
  servers.strategy.kind = StrategyKind::kParameterServer;
  EXPECT_THAT(CheckStrategyServers(servers, 3, 1), IsOk());
  EXPECT_THAT(CheckStrategyServers(servers, 3, 0),
              StatusIs(kInvalid, HasSubstr("cluster.ps is empty")));
  EXPECT_THAT(CheckStrategyServers(Mirrored(2), 1, 0), IsOk());
}

}  // namespace
}  // namespace lockstep
