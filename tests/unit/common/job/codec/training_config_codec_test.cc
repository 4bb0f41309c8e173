#include "common/job/codec/training_config_codec.h"

#include <string>
#include <vector>

#include "common/job/codec/job_config_codec.h"
#include "common/job/training_checks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/job_override.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ApplyOverride;
using ::lockstep::testing::StatusIs;
using ::testing::StartsWith;

using Schedule = LearningRateConfig::Schedule;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

template <typename Config>
std::string Text(const Config& config) {
  return ToProto(config).ShortDebugString();
}

TEST(TrainingConfigCodecTest, EveryKindAndNumberIsGivenBack) {
  for (int kind = 0; kind < 8; ++kind) {
    OptimizerConfig optimizer;
    optimizer.kind = static_cast<OptimizerConfig::Kind>(kind);
    optimizer.momentum = 0.1 * kind;
    optimizer.epsilon = 1e-10;
    optimizer.decay = 0.25;
    optimizer.centered = true;
    optimizer.rho = 0.5;
    optimizer.initial_accumulator_value = 2;
    optimizer.learning_rate_power = -0.75;
    optimizer.l1 = 3;
    optimizer.l2 = 4;
    optimizer.l2_shrinkage = 5;
    optimizer.beta = 6;
    const auto again = FromProto(ToProto(optimizer));
    ASSERT_OK(again);
    EXPECT_EQ(again->kind, optimizer.kind);
    EXPECT_EQ(again->momentum, optimizer.momentum);
    EXPECT_EQ(again->epsilon, optimizer.epsilon);
    EXPECT_EQ(Text(*again), Text(optimizer));
  }
  for (int kind = 0; kind < 4; ++kind) {
    const ClippingConfig clipping{static_cast<ClippingConfig::Kind>(kind), 2.5};
    EXPECT_EQ(Text(FromProto(ToProto(clipping)).value()), Text(clipping));
    PartitionerConfig partitioner{
        static_cast<PartitionerConfig::Kind>(kind), 1, 2, 3, 4, 5};
    EXPECT_EQ(Text(FromProto(ToProto(partitioner)).value()), Text(partitioner));
    EXPECT_EQ(FromProto(ToProto(partitioner))->kind, partitioner.kind);
  }
  for (int strategy = 0; strategy < 3; ++strategy) {
    const PlacementConfig placement{
        static_cast<PlacementConfig::Strategy>(strategy), 7};
    EXPECT_EQ(FromProto(ToProto(placement))->strategy, placement.strategy);
    EXPECT_EQ(FromProto(ToProto(placement))->seed, 7u);
  }
}

TEST(TrainingConfigCodecTest, AbsentFieldsTakeTensorFlowsDefaults) {
  const OptimizerConfig plain = FromProto(v1::OptimizerConfig()).value();
  EXPECT_EQ(plain.kind, OptimizerConfig::Kind::kGradientDescent);
  EXPECT_EQ(plain.momentum, 0.9);
  EXPECT_EQ(plain.epsilon, 1e-8);
  v1::OptimizerConfig proto;
  proto.set_kind(v1::OptimizerConfig::RMSPROP);
  EXPECT_EQ(FromProto(proto)->momentum, 0);
  EXPECT_EQ(FromProto(proto)->epsilon, 1e-10);
  EXPECT_EQ(FromProto(v1::PartitionerConfig())->min_slice_bytes, 256 << 10);
}

TEST(TrainingConfigCodecTest, AnotherKindBringsItsOwnDefaults) {
  JobConfig job;
  ASSERT_OK(ApplyOverride("optimizer.kind=rmsprop", job));
  EXPECT_EQ(job.optimizer.momentum, 0);
  EXPECT_EQ(job.optimizer.epsilon, 1e-10);
  ASSERT_OK(ApplyOverride("optimizer.momentum=0.5", job));
  ASSERT_OK(ApplyOverride("optimizer.kind=FTRL", job));
  ASSERT_OK(ApplyOverride("optimizer.l1=0.25", job));
  EXPECT_EQ(job.optimizer.momentum, 0.5);
  EXPECT_EQ(job.optimizer.l1, 0.25);
  ASSERT_OK(ApplyOverride("clipping.kind=global_norm", job));
  ASSERT_OK(ApplyOverride("placement.strategy=ROUND_ROBIN", job));
  EXPECT_EQ(job.clipping.kind, ClippingConfig::Kind::kGlobalNorm);
}

// Each of these values is the default of the kind at the time.
TEST(TrainingConfigCodecTest, AGivenValueOutlastsAnOverrideOfTheKind) {
  const auto first = ParseJobText(
      "", "job.txt",
      std::vector<std::string>{
          "optimizer.momentum=0.9", "optimizer.epsilon=1e-8",
          "optimizer.weight_decay=0", "learning_rate_schedule.decay_rate=1",
          "learning_rate_schedule.kind=EXPONENTIAL_DECAY",
          "optimizer.kind=RMSPROP"});
  ASSERT_OK(first);
  EXPECT_EQ(first->optimizer.momentum, 0.9);
  EXPECT_EQ(first->optimizer.epsilon, 1e-8);
  EXPECT_EQ(first->learning_rate.decay_rate, 1);

  const auto file =
      ParseJobText("optimizer { kind: MOMENTUM momentum: 0.9 weight_decay: 0 }",
                   "job.txt", std::vector<std::string>{"optimizer.kind=SGD"});
  ASSERT_OK(file);
  EXPECT_EQ(file->optimizer.momentum, 0.9);

  const auto decay = ParseJobText(
      "optimizer { weight_decay: 0 }", "job.txt",
      std::vector<std::string>{"train_steps=5", "optimizer.kind=ADAMW"});
  ASSERT_OK(decay);
  EXPECT_EQ(decay->optimizer.weight_decay, 0);

  const auto absent =
      ParseJobText("optimizer { kind: MOMENTUM }", "job.txt",
                   std::vector<std::string>{"optimizer.kind=ADAMW"});
  ASSERT_OK(absent);
  EXPECT_EQ(absent->optimizer.weight_decay, 0.01);
}

TEST(TrainingConfigCodecTest, DecayThatAnOverrideChoosesNeedsItsRate) {
  JobConfig job;
  ASSERT_OK(
      ApplyOverride("learning_rate_schedule.kind=EXPONENTIAL_DECAY", job));
  EXPECT_EQ(job.learning_rate.decay_rate, 0);
  EXPECT_THAT(
      CheckTraining(job),
      StatusIs(kInvalid, StartsWith("learning_rate_schedule.decay_rate is 0")));
  ASSERT_OK(ApplyOverride("learning_rate_schedule.decay_rate=0.5", job));
  EXPECT_OK(CheckTraining(job));
  EXPECT_EQ(job.learning_rate.decay_rate, 0.5);

  ASSERT_OK(ApplyOverride("local.learning_rate_schedule.kind=EXPONENTIAL_DECAY",
                          job));
  EXPECT_EQ(job.local.learning_rate.decay_rate, 0);
}

TEST(TrainingConfigCodecTest, DecayRateIsGivenBack) {
  for (const Schedule schedule :
       {Schedule::kConstant, Schedule::kExponentialDecay}) {
    for (const double rate : {0.5, 1.0}) {
      JobConfig job;
      job.learning_rate.schedule = schedule;
      job.learning_rate.decay_rate = rate;
      const auto again = FromProto(ToProto(job));
      ASSERT_OK(again);
      EXPECT_EQ(again->learning_rate.decay_rate, rate);
    }
  }
}

TEST(TrainingConfigCodecTest, NumbersWithoutANameAreRefused) {
  v1::OptimizerConfig optimizer;
  optimizer.set_kind(static_cast<v1::OptimizerConfig::Kind>(99));
  EXPECT_THAT(
      FromProto(optimizer),
      StatusIs(kInvalid, StartsWith("optimizer.kind is the number 99")));
  v1::ClippingConfig clipping;
  clipping.set_kind(static_cast<v1::ClippingConfig::Kind>(99));
  EXPECT_THAT(FromProto(clipping),
              StatusIs(kInvalid, StartsWith("clipping.kind is")));
  v1::PlacementConfig placement;
  placement.set_strategy(static_cast<v1::PlacementConfig::Strategy>(99));
  EXPECT_THAT(FromProto(placement),
              StatusIs(kInvalid, StartsWith("placement.strategy is")));
  v1::PartitionerConfig partitioner;
  partitioner.set_kind(static_cast<v1::PartitionerConfig::Kind>(99));
  EXPECT_THAT(FromProto(partitioner),
              StatusIs(kInvalid, StartsWith("partitioner.kind is")));
}

}  // namespace
}  // namespace lockstep
