#include "common/job/codec/job_config_codec.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/job_override.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ApplyOverride;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Schedule = LearningRateConfig::Schedule;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

constexpr char kWholeJob[] = R"(
  name: "mnist-1"
  seed: 7
  mode: COMPATIBLE
  replicas_to_aggregate: 3
  total_num_replicas: 4
  initial_tokens: 2
  train_steps: 1000
  batch_size: 64
  max_part_bytes: 4096
  refuse_non_finite: false
  model { kind: "cnn" hidden_units: [128, 64] conv_filters: 32 kernel_size: 5 }
  data { train_images: "a" train_labels: "b" test_images: "c" test_labels: "d"
         epochs: 2 }
  optimizer { kind: MOMENTUM momentum: 0 use_nesterov: true beta1: 0.5
              beta2: 0.6 epsilon: 0.7 }
  learning_rate: 0.25
  learning_rate_schedule { kind: PIECEWISE_CONSTANT decay_steps: 11
                           decay_rate: 0.5 staircase: true boundaries: [1, 2]
                           values: [3, 2, 1] alpha: 0.125 warmup_steps: 9 }
  checkpoint { directory: "/c" every_steps: 100
               every { seconds: 60 nanos: 500000000 } keep: 2 }
  summary { directory: "/s" every { seconds: 2 } }
  heartbeat_interval { nanos: 250000000 }
  lease { seconds: 1 }
  max_wait { seconds: 30 }
  stall_timeout { seconds: 3 }
  gradient_wire_type: VARIABLE
  strategy { kind: PARAMETER_SERVER replicas_per_worker: 3 }
)";

std::string Text(const JobConfig& job) { return ToProto(job).DebugString(); }

JobConfig WholeJob() { return ParseJobText(kWholeJob, "job.txt").value(); }

TEST(JobConfigCodecTest, WholeJobFileIsRead) {
  const absl::StatusOr<JobConfig> job = ParseJobText(kWholeJob, "job.txt");

  ASSERT_OK(job);
  EXPECT_EQ(job->name, "mnist-1");
  EXPECT_EQ(job->seed, 7u);
  EXPECT_EQ(job->mode, SyncMode::kCompatible);
  EXPECT_EQ(job->replicas_to_aggregate, 3);
  EXPECT_EQ(job->total_num_replicas, 4);
  EXPECT_EQ(job->initial_tokens, 2);
  EXPECT_EQ(job->train_steps, 1000);
  EXPECT_EQ(job->batch_size, 64);
  EXPECT_EQ(job->max_part_bytes, 4096);
  EXPECT_FALSE(job->refuse_non_finite);
  EXPECT_EQ(job->heartbeat_interval, absl::Milliseconds(250));
  EXPECT_EQ(job->lease, absl::Seconds(1));
  EXPECT_EQ(job->max_wait, absl::Seconds(30));
  EXPECT_EQ(job->stall_timeout, absl::Seconds(3));
  EXPECT_EQ(job->strategy.replicas_per_worker, 3);
  EXPECT_OK(ValidateJobConfig(*job));
}

TEST(JobConfigCodecTest, NestedFieldsAreRead) {
  const JobConfig job = WholeJob();

  EXPECT_EQ(job.model.kind, "cnn");
  EXPECT_THAT(job.model.hidden_units, ElementsAre(128, 64));
  EXPECT_THAT(job.model.conv_filters, ElementsAre(32));
  EXPECT_EQ(job.model.kernel_size, 5);
  EXPECT_EQ(job.data.train_images, "a");
  EXPECT_EQ(job.data.train_labels, "b");
  EXPECT_EQ(job.data.test_images, "c");
  EXPECT_EQ(job.data.test_labels, "d");
  EXPECT_EQ(job.data.epochs, 2);
  EXPECT_EQ(job.optimizer.kind, OptimizerConfig::Kind::kMomentum);
  EXPECT_EQ(job.optimizer.momentum, 0);
  EXPECT_TRUE(job.optimizer.use_nesterov);
  EXPECT_EQ(job.optimizer.beta1, 0.5);
  EXPECT_EQ(job.optimizer.beta2, 0.6);
  EXPECT_EQ(job.optimizer.epsilon, 0.7);
  EXPECT_EQ(job.checkpoint.directory, "/c");
  EXPECT_EQ(job.checkpoint.every_steps, 100);
  EXPECT_EQ(job.checkpoint.every, absl::Milliseconds(60'500));
  EXPECT_EQ(job.checkpoint.keep, 2);
  EXPECT_EQ(job.summary.directory, "/s");
  EXPECT_EQ(job.summary.every, absl::Seconds(2));
}

TEST(JobConfigCodecTest, ColumnsOfExamplesAreReadAndGivenBack) {
  const auto job = ParseJobText(R"(
    model { kind: "wide_and_deep" categorical: ["a", "b"] crosses: "a*b"
            numeric: "x" label: "y" embedding_rows: 9 row_limit: 8 })",
                                "job.txt");
  ASSERT_OK(job);
  const auto again = FromProto(ToProto(*job));
  ASSERT_OK(again);
  EXPECT_THAT(again->model.categorical, ElementsAre("a", "b"));
  EXPECT_THAT(again->model.crosses, ElementsAre("a*b"));
  EXPECT_THAT(again->model.numeric, ElementsAre("x"));
  EXPECT_EQ(again->model.label, "y");
  EXPECT_EQ(again->model.embedding_rows, 9);
  EXPECT_EQ(again->model.row_limit, 8);
}

TEST(JobConfigCodecTest, TypesOfVariablesHaveNames) {
  for (const DType type :
       {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    JobConfig job;
    job.model.variable_type = type;
    const auto again = FromProto(ToProto(job));
    ASSERT_OK(again);
    EXPECT_EQ(again->model.variable_type, type);
  }
  EXPECT_THAT(ParseJobText("model { variable_type: \"half\" }", "job.txt"),
              StatusIs(kInvalid, HasSubstr("model.variable_type: dtype")));
}

TEST(JobConfigCodecTest, LearningRateIsReadFromItsTwoFields) {
  const LearningRateConfig rate = WholeJob().learning_rate;

  EXPECT_EQ(rate.base, 0.25);
  EXPECT_EQ(rate.schedule, Schedule::kPiecewiseConstant);
  EXPECT_EQ(rate.decay_steps, 11);
  EXPECT_EQ(rate.decay_rate, 0.5);
  EXPECT_TRUE(rate.staircase);
  EXPECT_THAT(rate.boundaries, ElementsAre(1, 2));
  EXPECT_THAT(rate.values, ElementsAre(3, 2, 1));
  EXPECT_EQ(rate.alpha, 0.125);
  EXPECT_EQ(rate.warmup_steps, 9);
}

TEST(JobConfigCodecTest, AbsentFieldsTakeTheDefaults) {
  const absl::StatusOr<JobConfig> job = ParseJobText("", "job.txt");

  ASSERT_OK(job);
  EXPECT_EQ(Text(*job), Text(JobConfig()));
  EXPECT_EQ(job->initial_tokens, -1);
  EXPECT_EQ(job->learning_rate.base, 0.01);
  EXPECT_EQ(job->model.kernel_size, 3);
  EXPECT_EQ(job->lease, absl::Seconds(10));
  EXPECT_EQ(job->stall_timeout, absl::ZeroDuration());
}

TEST(JobConfigCodecTest, MessageGivesTheJobBack) {
  for (const JobConfig& job : {JobConfig(), WholeJob()}) {
    const absl::StatusOr<JobConfig> again = FromProto(ToProto(job));

    ASSERT_OK(again);
    EXPECT_EQ(Text(*again), Text(job));
  }
}

TEST(JobConfigCodecTest, EveryEnumerationValueIsGivenBack) {
  for (int i = 0; i < 4; ++i) {
    JobConfig job;
    job.mode = static_cast<SyncMode>(i % 2);
    job.gradient_wire_type = static_cast<GradientType>(i % 2);
    job.optimizer.kind = static_cast<OptimizerConfig::Kind>(i % 3);
    job.learning_rate.schedule = static_cast<Schedule>(i);

    const absl::StatusOr<JobConfig> again = FromProto(ToProto(job));

    ASSERT_OK(again);
    EXPECT_EQ(again->mode, job.mode);
    EXPECT_EQ(again->gradient_wire_type, job.gradient_wire_type);
    EXPECT_EQ(again->optimizer.kind, job.optimizer.kind);
    EXPECT_EQ(again->learning_rate.schedule, job.learning_rate.schedule);
  }
}

TEST(JobConfigCodecTest, GradientTypeIsReadByName) {
  const auto job = ParseJobText("gradient_wire_type: BFLOAT16", "job.txt");
  JobConfig overridden;

  ASSERT_OK(job);
  EXPECT_EQ(job->gradient_wire_type, GradientType::kBFloat16);
  EXPECT_OK(ApplyOverride("gradient_wire_type=bfloat16", overridden));
  EXPECT_EQ(overridden.gradient_wire_type, GradientType::kBFloat16);
  EXPECT_THAT(ApplyOverride("gradient_wire_type=FLOAT16", overridden),
              StatusIs(kInvalid, HasSubstr("one of VARIABLE, BFLOAT16")));
}

TEST(JobConfigCodecTest, ForgottenDecayRateIsNotTakenForNoDecay) {
  const absl::StatusOr<JobConfig> job = ParseJobText(
      "train_steps: 1 batch_size: 1 data { train_images: 'a' train_labels: 'b' "
      "} learning_rate_schedule { kind: EXPONENTIAL_DECAY decay_steps: 5 }",
      "job.txt");

  ASSERT_OK(job);
  EXPECT_THAT(
      ValidateJobConfig(*job),
      StatusIs(kInvalid, HasSubstr("learning_rate_schedule.decay_rate is 0")));
}

TEST(JobConfigCodecTest, NumbersWithoutANameAreRefused) {
  v1::JobConfig mode;
  mode.set_mode(static_cast<v1::SyncMode>(9));
  v1::JobConfig gradients;
  gradients.set_gradient_wire_type(static_cast<v1::GradientType>(9));
  v1::JobConfig optimizer;
  optimizer.mutable_optimizer()->set_kind(
      static_cast<v1::OptimizerConfig::Kind>(99));
  v1::JobConfig schedule;
  schedule.mutable_learning_rate_schedule()->set_kind(
      static_cast<v1::LearningRateSchedule::Kind>(-1));

  EXPECT_THAT(FromProto(mode),
              StatusIs(kInvalid, StartsWith("mode is the number 9")));
  EXPECT_THAT(
      FromProto(gradients),
      StatusIs(kInvalid, StartsWith("gradient_wire_type is the number 9")));
  EXPECT_THAT(
      FromProto(optimizer),
      StatusIs(kInvalid, StartsWith("optimizer.kind is the number 99")));
  EXPECT_THAT(
      FromProto(schedule),
      StatusIs(kInvalid,
               StartsWith("learning_rate_schedule.kind is the number -1")));
}

TEST(JobConfigCodecTest, MeaninglessDurationsAreRefusedWithTheirName) {
  EXPECT_THAT(ParseJobText("lease { seconds: 1 nanos: -1 }", "job.txt"),
              StatusIs(kInvalid, StartsWith("job.txt: lease has seconds 1")));
  EXPECT_THAT(
      ParseJobText("checkpoint { every { nanos: 2000000000 } }", "job.txt"),
      StatusIs(kInvalid, StartsWith("job.txt: checkpoint.every has")));
  EXPECT_THAT(ParseJobText("max_wait { seconds: -999999999999 }", "job.txt"),
              StatusIs(kInvalid, StartsWith("job.txt: max_wait has")));
}

TEST(JobConfigCodecTest, FaultyTextNamesItsPlace) {
  EXPECT_THAT(ParseJobText("\n  sed: 1", "job.txt"),
              StatusIs(kInvalid, StartsWith("job.txt:2:6: ")));
}

TEST(JobConfigCodecTest, OverrideSetsOneFieldAndKeepsTheOthers) {
  JobConfig job = WholeJob();

  ASSERT_OK(ApplyOverride("learning_rate=0.5", job));
  ASSERT_OK(ApplyOverride("checkpoint.every_steps=7", job));
  ASSERT_OK(ApplyOverride("optimizer.kind=adam", job));
  ASSERT_OK(ApplyOverride("model.hidden_units=9,8", job));
  ASSERT_OK(ApplyOverride("lease=1500ms", job));

  JobConfig expected = WholeJob();
  expected.learning_rate.base = 0.5;
  expected.checkpoint.every_steps = 7;
  expected.optimizer.kind = OptimizerConfig::Kind::kAdam;
  expected.model.hidden_units = {9, 8};
  expected.lease = absl::Milliseconds(1500);
  EXPECT_EQ(Text(job), Text(expected));
}

TEST(JobConfigCodecTest, WeightDecayIsOfTheKindUnlessItIsSet) {
  JobConfig job = WholeJob();
  ASSERT_OK(ApplyOverride("optimizer.kind=ADAMW", job));
  EXPECT_EQ(job.optimizer.weight_decay, 0.01);
  ASSERT_OK(ApplyOverride("optimizer.kind=SGD", job));
  EXPECT_EQ(job.optimizer.weight_decay, 0);
  ASSERT_OK(ApplyOverride("optimizer.weight_decay=0.01", job));
  ASSERT_OK(ApplyOverride("optimizer.dampening=0.5", job));
  ASSERT_OK(ApplyOverride("optimizer.weight_decay_exempt=*bias,*norm*", job));

  const auto again = FromProto(ToProto(job));

  ASSERT_OK(again);
  EXPECT_EQ(again->optimizer.kind, OptimizerConfig::Kind::kSgd);
  EXPECT_EQ(again->optimizer.weight_decay, 0.01);
  EXPECT_EQ(again->optimizer.dampening, 0.5);
  EXPECT_THAT(again->optimizer.weight_decay_exempt,
              ElementsAre("*bias", "*norm*"));
}

TEST(JobConfigCodecTest, OverridesOfATextAreSetInOrder) {
  const auto job = ParseJobText(
      "seed: 7 learning_rate: 0.5", "job.txt",
      std::vector<std::string>{"seed=8", "model.hidden_units=9,8", "seed=9"});
  ASSERT_OK(job);
  EXPECT_EQ(job->seed, 9u);
  EXPECT_EQ(job->learning_rate.base, 0.5);
  EXPECT_THAT(job->model.hidden_units, ElementsAre(9, 8));
  EXPECT_THAT(ParseJobText("", "job.txt", std::vector<std::string>{"sead=1"}),
              StatusIs(kInvalid, HasSubstr("did you mean seed?")));
}

// The rate of the servers is that of the text, where workers get one of theirs.
TEST(JobConfigCodecTest, OverrideOfLocalStepsKeepsTheRate) {
  const auto job = ParseJobText(
      "seed: 7", "job.txt",
      std::vector<std::string>{"local_steps=4", "local.learning_rate=0.25"});
  ASSERT_OK(job);
  EXPECT_EQ(job->learning_rate.base, 0.01);
  const auto local =
      ParseJobText("local_steps: 4 local { learning_rate: 0.5 }", "job.txt",
                   std::vector<std::string>{"local.learning_rate=0.25"});
  ASSERT_OK(local);
  EXPECT_EQ(local->learning_rate.base, 1);
  EXPECT_EQ(local->local.learning_rate.base, 0.25);
}

TEST(JobConfigCodecTest, FailedOverrideChangesNothing) {
  JobConfig job = WholeJob();

  EXPECT_THAT(ApplyOverride("model.hidden_units=1,x", job),
              StatusIs(kInvalid, StartsWith("model.hidden_units is \"x\"")));
  EXPECT_THAT(ApplyOverride("sead=1", job),
              StatusIs(kInvalid, HasSubstr("did you mean seed?")));

  EXPECT_EQ(Text(job), Text(WholeJob()));
}

TEST(JobConfigCodecTest, ElasticWorkersAreGivenBack) {
  JobConfig job;
  job.elastic_workers = true;
  job.elastic_policy = ElasticPolicy::kFixedReplicasToAggregate;

  const auto back = FromProto(ToProto(job));

  ASSERT_OK(back);
  EXPECT_TRUE(back->elastic_workers);
  EXPECT_EQ(back->elastic_policy, ElasticPolicy::kFixedReplicasToAggregate);
  v1::JobConfig proto;
  proto.set_elastic_policy(static_cast<v1::ElasticPolicy>(9));
  EXPECT_THAT(FromProto(proto), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("elastic_policy")));
}

TEST(JobConfigCodecTest, EveryStrategyIsReadAsItIsWritten) {
  for (const StrategyKind kind :
       {StrategyKind::kParameterServer, StrategyKind::kMirrored,
        StrategyKind::kMultiWorkerMirrored, StrategyKind::kOneDevice}) {
    JobConfig job;
    job.strategy = {kind, 4, {"cuda:1", "cpu:0"}, {SumOrder::kRing, 0}};

    const absl::StatusOr<JobConfig> back = FromProto(ToProto(job));

    ASSERT_OK(back);
    EXPECT_EQ(back->strategy.kind, kind);
    EXPECT_EQ(back->strategy.replicas_per_worker, 4);
    EXPECT_THAT(back->strategy.devices, ElementsAre("cuda:1", "cpu:0"));
    EXPECT_EQ(back->strategy.communication.order, SumOrder::kRing);
    EXPECT_EQ(back->strategy.communication.bytes_per_pack, 0);
  }
  v1::JobConfig proto;
  EXPECT_EQ(FromProto(proto)->strategy.communication.bytes_per_pack, -1);
  EXPECT_EQ(FromProto(proto)->strategy.replicas_per_worker, 0);
  proto.mutable_strategy()->set_kind(static_cast<v1::StrategyKind>(5));
  EXPECT_THAT(FromProto(proto),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("strategy.kind is the number 5")));
}

TEST(JobConfigCodecTest, SharedWorkIsReadAsItIsWritten) {
  JobConfig job;
  job.work = Work::kShared;
  job.micro_batches_per_step = 12;
  job.micro_batches_per_push = 4;

  const absl::StatusOr<JobConfig> back = FromProto(ToProto(job));

  ASSERT_OK(back);
  EXPECT_EQ(back->work, Work::kShared);
  EXPECT_EQ(back->micro_batches_per_step, 12);
  EXPECT_EQ(back->micro_batches_per_push, 4);
  v1::JobConfig proto;
  EXPECT_EQ(FromProto(proto)->work, Work::kOwnBatches);
  proto.set_work(static_cast<v1::Work>(7));
  EXPECT_THAT(FromProto(proto), StatusIs(absl::StatusCode::kInvalidArgument,
                                         HasSubstr("work is the number 7")));
}

TEST(JobConfigCodecTest, AutoIsReadAndWrittenAgain) {
  const auto parsed = ParseJobText(
      "train_steps: 1 replicas_to_aggregate: AUTO # AUTO\n"
      "total_num_replicas: 4 model { kind: \"external\" } name: \"AUTO\"",
      "job");
  ASSERT_OK(parsed);
  EXPECT_TRUE(parsed->tune_backups);
  EXPECT_EQ(parsed->replicas_to_aggregate, 4);
  EXPECT_EQ(parsed->name, "AUTO");
  const auto again = FromProto(ToProto(*parsed));
  ASSERT_OK(again);
  EXPECT_TRUE(again->tune_backups);
  EXPECT_EQ(again->replicas_to_aggregate, 4);
}

TEST(JobConfigCodecTest, AutoElsewhereIsNoNumber) {
  EXPECT_FALSE(ParseJobText("train_steps: AUTO", "job").ok());
}

TEST(JobConfigCodecTest, LocalStepsComeBackAndTheirDefaultsAreThoseOfAMean) {
  const auto job = ParseJobText(
      R"(local_steps: 16
         local { optimizer { kind: ADAMW } learning_rate: 0.001
                 learning_rate_schedule { kind: COSINE warmup_steps: 50 } })",
      "f");
  ASSERT_OK(job);
  EXPECT_EQ(job->local_steps, 16);
  EXPECT_EQ(job->learning_rate.base, 1);
  EXPECT_EQ(job->local.learning_rate.base, 0.001);
  EXPECT_EQ(job->local.learning_rate.warmup_steps, 50);

  const auto back = FromProto(ToProto(*job));
  ASSERT_OK(back);
  EXPECT_EQ(back->local_steps, 16);
  EXPECT_EQ(back->local.optimizer.kind, OptimizerConfig::Kind::kAdamW);
  EXPECT_EQ(back->local.learning_rate.base, 0.001);
  EXPECT_EQ(back->local.learning_rate.schedule,
            LearningRateConfig::Schedule::kCosine);

  const auto given = ParseJobText("local_steps: 16 learning_rate: 0.7", "f");
  ASSERT_OK(given);
  EXPECT_EQ(given->learning_rate.base, 0.7);
}

TEST(JobConfigCodecTest, OverridesOfLocalStepsHoldInAnyOrder) {
  const std::vector<std::string> overrides = {
      "local.optimizer.kind=ADAMW", "local.learning_rate=0.25",
      "local.learning_rate_schedule.kind=COSINE", "local_steps=4"};
  for (const bool backwards : {false, true}) {
    JobConfig job;
    for (size_t i = 0; i < overrides.size(); ++i) {
      ASSERT_OK(ApplyOverride(
          overrides[backwards ? overrides.size() - 1 - i : i], job));
    }
    EXPECT_EQ(job.local_steps, 4);
    EXPECT_EQ(job.local.optimizer.kind, OptimizerConfig::Kind::kAdamW);
    EXPECT_EQ(job.local.learning_rate.base, 0.25);
    EXPECT_EQ(job.local.learning_rate.schedule,
              LearningRateConfig::Schedule::kCosine);
  }
}

}  // namespace
}  // namespace lockstep
