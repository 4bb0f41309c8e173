#include "common/job/job_config.h"

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Schedule = LearningRateConfig::Schedule;
using Change = std::function<void(JobConfig&)>;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

JobConfig ValidJob() {
  JobConfig job;
  job.train_steps = 100;
  job.batch_size = 32;
  job.data.train_images = "/data/images.gz";
  job.data.train_labels = "/data/labels.gz";
  return job;
}

absl::Status ValidateWith(const Change& change) {
  JobConfig job = ValidJob();
  change(job);
  return ValidateJobConfig(job);
}

TEST(JobConfigTest, DefaultsAreValidOnceTheRequiredFieldsAreSet) {
  EXPECT_OK(ValidateJobConfig(ValidJob()));
}

TEST(JobConfigTest, NothingSetIsNotValid) {
  EXPECT_THAT(ValidateJobConfig(JobConfig()),
              StatusIs(kInvalid, HasSubstr("train_steps is not given")));
}

class GoodJobTest : public ::testing::TestWithParam<Change> {};

TEST_P(GoodJobTest, IsTaken) { EXPECT_OK(ValidateWith(GetParam())); }

INSTANTIATE_TEST_SUITE_P(
    All, GoodJobTest,
    ::testing::Values(
        [](JobConfig& job) { job.name = std::string(128, 'a'); },
        [](JobConfig& job) { job.name = "0-a_b.c"; },
        [](JobConfig& job) { job.seed = ~uint64_t{0}; },
        [](JobConfig& job) { job.batch_size = 1; },
        [](JobConfig& job) { job.max_part_bytes = 8; },
        [](JobConfig& job) { job.max_part_bytes = 1 << 30; },
        [](JobConfig& job) { job.replicas_to_aggregate = 1'000'000; },
        [](JobConfig& job) {
          job.model = {"cnn", {1, 1 << 24}, {32}, 1};
        },
        [](JobConfig& job) {
          job.data.test_images =
              "/donn\xC3\xA9"
              "es";
          job.data.test_labels = "b";
        },
        [](JobConfig& job) {
          job.gradient_wire_type = GradientType::kBFloat16;
        },
        [](JobConfig& job) { job.optimizer.momentum = 0; },
        [](JobConfig& job) {
          job.optimizer = {OptimizerConfig::Kind::kAdam, 0, true, 0, 0, 1e-30};
        },
        [](JobConfig& job) {
          job.learning_rate.schedule = Schedule::kExponentialDecay;
          job.learning_rate.decay_steps = 1;
          job.learning_rate.decay_rate = 1.5;
        },
        [](JobConfig& job) {
          job.learning_rate.schedule = Schedule::kCosineDecay;
          job.learning_rate.decay_steps = 10;
          job.learning_rate.alpha = 1;
        },
        [](JobConfig& job) {
          job.learning_rate.schedule = Schedule::kPiecewiseConstant;
          job.learning_rate.boundaries = {0, 1, 50};
          job.learning_rate.values = {4, 3, 2, 1};
        },
        [](JobConfig& job) {
          job.learning_rate.schedule = Schedule::kPiecewiseConstant;
          job.learning_rate.values = {1};
        },
        [](JobConfig& job) {
          job.checkpoint = {"/c", 10, absl::Minutes(5), 1, "/v"};
        },
        [](JobConfig& job) { job.lease = absl::Milliseconds(1001); }));

struct BadCase {
  Change change;
  const char* message;
};

class BadJobTest : public ::testing::TestWithParam<BadCase> {};

TEST_P(BadJobTest, NamesFieldValueAndRange) {
  EXPECT_THAT(ValidateWith(GetParam().change),
              StatusIs(kInvalid, StartsWith(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    Counts, BadJobTest,
    ::testing::Values(
        BadCase{[](JobConfig& job) { job.name = ""; }, "name is \"\", but"},
        BadCase{[](JobConfig& job) { job.name = ".."; }, "name is \"..\","},
        BadCase{[](JobConfig& job) { job.name = "a/\n"; }, "name is \"a/\\n\""},
        BadCase{[](JobConfig& job) { job.name = std::string(129, 'a'); },
                "name is \"aaaaaaaa"},
        BadCase{[](JobConfig& job) { job.seed = 0; },
                "seed is 0, but must be 1 or more"},
        BadCase{[](JobConfig& job) { job.mode = static_cast<SyncMode>(2); },
                "mode is 2, but must be STRICT or COMPATIBLE"},
        BadCase{[](JobConfig& job) {
                  job.gradient_wire_type = GradientType::kBFloat16;
                  job.mode = SyncMode::kCompatible;
                },
                "gradient_wire_type is BFLOAT16, but must be VARIABLE where "
                "mode is COMPATIBLE"},
        BadCase{[](JobConfig& job) {
                  job.gradient_wire_type = static_cast<GradientType>(2);
                },
                "gradient_wire_type is 2, but must be VARIABLE or BFLOAT16"},
        BadCase{[](JobConfig& job) { job.replicas_to_aggregate = -1; },
                "replicas_to_aggregate is -1, but must be from 0 to 1000000"},
        BadCase{[](JobConfig& job) { job.total_num_replicas = 1'000'001; },
                "total_num_replicas is 1000001, but must be from 0"},
        BadCase{[](JobConfig& job) { job.train_steps = -5; },
                "train_steps is -5, but must be 1 or more"},
        BadCase{[](JobConfig& job) { job.batch_size = 0; },
                "batch_size is 0, but must be from 1 to 2147483647"},
        BadCase{[](JobConfig& job) { job.batch_size = int64_t{1} << 31; },
                "batch_size is 2147483648"},
        BadCase{[](JobConfig& job) { job.max_part_bytes = 7; },
                "max_part_bytes is 7, but must be from 8 to 1073741824"},
        BadCase{[](JobConfig& job) { job.max_part_bytes = (1 << 30) + 1; },
                "max_part_bytes is 1073741825"}));

INSTANTIATE_TEST_SUITE_P(
    ModelAndData, BadJobTest,
    ::testing::Values(
        BadCase{[](JobConfig& job) { job.model.kind.clear(); },
                "model.kind is empty"},
        BadCase{[](JobConfig& job) { job.model.kind = "\xC7nn"; },
                "model.kind is no UTF-8"},
        BadCase{[](JobConfig& job) {
                  job.model.hidden_units = {8, 0};
                },
                "model.hidden_units[1] is 0, but must be from 1 to"},
        BadCase{[](JobConfig& job) { job.model.conv_filters = {-1}; },
                "model.conv_filters[0] is -1"},
        BadCase{[](JobConfig& job) {
                  job.model.categorical = {"a", ""};
                },
                "model.categorical[1] must be a name"},
        BadCase{[](JobConfig& job) { job.model.numeric = {"\xC7"}; },
                "model.numeric[0] must be a name"},
        BadCase{[](JobConfig& job) { job.model.label.clear(); },
                "model.label must be a name"},
        BadCase{[](JobConfig& j) { j.model.heads = 4; }, "model.width is 0"},
        BadCase{[](JobConfig& job) { job.model.row_limit = -1; },
                "model.row_limit is -1"},
        BadCase{[](JobConfig& job) {
                  job.model.row_limit = 5;
                  job.model.cut_by_div = true;
                },
                "model.row_limit is set, and model.table_cut is BY_DIV"},
        BadCase{[](JobConfig& job) { job.model.embedding_rows = -1; },
                "model.embedding_rows is -1"},
        BadCase{
            [](JobConfig& job) { job.model.variable_type = DType::kFloat64; },
            "model.variable_type is float64, but must be"},
        BadCase{[](JobConfig& job) { job.model.kernel_size = 2; },
                "model.kernel_size is 2, but must be odd"},
        BadCase{[](JobConfig& job) { job.model.kernel_size = -3; },
                "model.kernel_size is -3, but must be from 1 to 1023"},
        BadCase{[](JobConfig& job) { job.data.train_images = ""; },
                "data.train_images is missing; set it to"},
        BadCase{[](JobConfig& job) { job.data.train_labels = ""; },
                "data.train_labels is missing"},
        BadCase{[](JobConfig& job) { job.data.train_images = "a\nb"; },
                "data.train_images must be a path of at most 4096 bytes"},
        BadCase{[](JobConfig& job) { job.data.train_labels = "a\xFF"; },
                "data.train_labels must be a path"},
        BadCase{[](JobConfig& job) { job.data.test_images = "a"; },
                "data.test_images and data.test_labels belong together"},
        BadCase{[](JobConfig& job) {
                  job.data.test_images = std::string(5000, 'a');
                },
                "data.test_images must be a path"},
        BadCase{[](JobConfig& job) { job.data.epochs = -1; },
                "data.epochs is -1, but must be 0 or more"},
        BadCase{[](JobConfig& job) { job.checkpoint.every_steps = 5; },
                "checkpoint.directory is missing, but checkpoint.every_steps"},
        BadCase{[](JobConfig& job) { job.checkpoint.every = absl::Seconds(5); },
                "checkpoint.directory is missing"},
        BadCase{[](JobConfig& job) { job.checkpoint.every_steps = -5; },
                "checkpoint.every_steps is -5"},
        BadCase{
            [](JobConfig& job) { job.checkpoint.every = -absl::Seconds(5); },
            "checkpoint.every is -5s, but must be from 0 to 8760h"},
        BadCase{[](JobConfig& job) { job.checkpoint.keep = 0; },
                "checkpoint.keep is 0, but must be 1 or more"},
        BadCase{[](JobConfig& job) {
                  job.checkpoint.directory = std::string("a\0b", 3);
                },
                "checkpoint.directory must be a path"}));

INSTANTIATE_TEST_SUITE_P(
    Optimizer, BadJobTest,
    ::testing::Values(
        BadCase{[](JobConfig& job) {
                  job.optimizer.kind = static_cast<OptimizerConfig::Kind>(14);
                },
                "optimizer.kind is 14, but must be GRADIENT_DESCENT, MOMENTUM"},
        BadCase{[](JobConfig& job) { job.optimizer.momentum = 1; },
                "optimizer.momentum is 1, but must be at least 0 and below 1"},
        BadCase{[](JobConfig& job) { job.optimizer.momentum = kNan; },
                "optimizer.momentum is nan"},
        BadCase{[](JobConfig& job) { job.optimizer.beta1 = -0.1; },
                "optimizer.beta1 is -0.1"},
        BadCase{[](JobConfig& job) { job.optimizer.beta2 = kInfinity; },
                "optimizer.beta2 is inf"},
        BadCase{[](JobConfig& job) { job.optimizer.epsilon = 0; },
                "optimizer.epsilon is 0, but must be a finite number above 0"},
        BadCase{[](JobConfig& job) { job.optimizer.epsilon = kInfinity; },
                "optimizer.epsilon is inf"},
        BadCase{[](JobConfig& job) { job.optimizer.decay = 1; },
                "optimizer.decay is 1, but must be at least 0 and below 1"},
        BadCase{[](JobConfig& job) { job.optimizer.rho = -1; },
                "optimizer.rho is -1"},
        BadCase{[](JobConfig& job) {
                  job.optimizer.kind = OptimizerConfig::Kind::kAdagrad;
                  job.optimizer.initial_accumulator_value = 0;
                },
                "optimizer.initial_accumulator_value is 0, but must be a"},
        BadCase{[](JobConfig& job) { job.optimizer.learning_rate_power = 0.5; },
                "optimizer.learning_rate_power is 0.5, but must be a finite"},
        BadCase{[](JobConfig& job) { job.optimizer.l1 = -1; },
                "optimizer.l1 is -1, but must be a finite number of 0"},
        BadCase{[](JobConfig& job) { job.optimizer.l2 = -1; },
                "optimizer.l2 is -1"},
        BadCase{[](JobConfig& job) { job.optimizer.l2_shrinkage = kNan; },
                "optimizer.l2_shrinkage is nan"},
        BadCase{[](JobConfig& job) { job.optimizer.beta = kInfinity; },
                "optimizer.beta is inf"}));

INSTANTIATE_TEST_SUITE_P(
    ClippingAndParts, BadJobTest,
    ::testing::Values(
        BadCase{[](JobConfig& job) { job.clipping.limit = 1; },
                "clipping.limit is set, but clipping.kind is not"},
        BadCase{[](JobConfig& job) {
                  job.clipping.kind = ClippingConfig::Kind::kNorm;
                },
                "clipping.limit is 0, but must be a finite number above 0"},
        BadCase{[](JobConfig& job) {
                  job.clipping.kind = static_cast<ClippingConfig::Kind>(9);
                },
                "clipping.kind is 9, but must be GLOBAL_NORM"},
        BadCase{[](JobConfig& job) {
                  job.placement.strategy =
                      static_cast<PlacementConfig::Strategy>(9);
                },
                "placement.strategy is 9, but must be GREEDY"},
        BadCase{[](JobConfig& job) {
                  job.partitioner.kind = PartitionerConfig::Kind::kFixedSize;
                },
                "partitioner.num_shards is 0, but must be 1 or more"},
        BadCase{[](JobConfig& job) {
                  job.partitioner.kind = PartitionerConfig::Kind::kAxisSize;
                },
                "partitioner.max_shard_bytes is 0"},
        BadCase{[](JobConfig& job) {
                  job.partitioner.kind = PartitionerConfig::Kind::kMinMax;
                },
                "partitioner.max_partitions is 0"},
        BadCase{[](JobConfig& job) {
                  job.partitioner.kind =
                      static_cast<PartitionerConfig::Kind>(9);
                },
                "partitioner.kind is 9, but must be MAX_PART_BYTES"},
        BadCase{[](JobConfig& job) {
                  job.elastic_workers = true;
                  job.mode = SyncMode::kCompatible;
                },
                "mode is COMPATIBLE, but must be STRICT where elastic_workers"},
        BadCase{[](JobConfig& job) {
                  job.elastic_workers = true;
                  job.data.epochs = 3;
                },
                "data.epochs is 3, but must be 0 where elastic_workers"},
        BadCase{[](JobConfig& job) {
                  job.elastic_policy = static_cast<ElasticPolicy>(9);
                },
                "elastic_policy is 9, but must be FIXED_BACKUPS"}));

Change WithSchedule(Schedule schedule, Change change) {
  return [=](JobConfig& job) {
    job.learning_rate.schedule = schedule;
    change(job);
  };
}

INSTANTIATE_TEST_SUITE_P(
    LearningRate, BadJobTest,
    ::testing::Values(
        BadCase{[](JobConfig& job) { job.learning_rate.base = 0; },
                "learning_rate is 0, but must be a finite number above 0"},
        BadCase{[](JobConfig& job) { job.learning_rate.base = kNan; },
                "learning_rate is nan"},
        BadCase{[](JobConfig& job) { job.learning_rate.base = kInfinity; },
                "learning_rate is inf"},
        BadCase{[](JobConfig& job) { job.learning_rate.warmup_steps = -1; },
                "learning_rate_schedule.warmup_steps is -1"},
        BadCase{[](JobConfig& job) { job.learning_rate.decay_steps = -1; },
                "learning_rate_schedule.decay_steps is -1"},
        BadCase{[](JobConfig& job) { job.learning_rate.decay_rate = kNan; },
                "learning_rate_schedule.decay_rate is nan"},
        BadCase{[](JobConfig& job) { job.learning_rate.alpha = 1.5; },
                "learning_rate_schedule.alpha is 1.5, but must be from 0 to 1"},
        BadCase{[](JobConfig& job) { job.learning_rate.alpha = kNan; },
                "learning_rate_schedule.alpha is nan"},
        BadCase{WithSchedule(static_cast<Schedule>(9), [](JobConfig&) {}),
                "learning_rate_schedule.kind is 9, but must be CONSTANT"},
        BadCase{WithSchedule(Schedule::kExponentialDecay,
                             [](JobConfig& job) {
                               job.learning_rate.decay_steps = 5;
                               job.learning_rate.decay_rate = 0;
                             }),
                "learning_rate_schedule.decay_rate is 0"},
        BadCase{[](JobConfig& job) { job.data.classes = -1; },
                "data.classes is -1"},
        BadCase{[](JobConfig& job) {
                  job.data = {};
                  job.data.train_files = {"a"};
                  job.data.classes = 2;
                },
                "data.classes is set, but data.train_images is not"},
        BadCase{WithSchedule(Schedule::kPiecewiseConstant, [](JobConfig&) {}),
                "learning_rate_schedule.values has 0 elements, but must have "
                "one more than learning_rate_schedule.boundaries, which has 0"},
        BadCase{WithSchedule(Schedule::kPiecewiseConstant,
                             [](JobConfig& job) {
                               job.learning_rate.boundaries = {5, 5};
                               job.learning_rate.values = {1, 1, 1};
                             }),
                "learning_rate_schedule.boundaries[1] is 5, but must be from "
                "6"},
        BadCase{WithSchedule(Schedule::kPiecewiseConstant,
                             [](JobConfig& job) {
                               job.learning_rate.boundaries = {-1};
                               job.learning_rate.values = {1, 1};
                             }),
                "learning_rate_schedule.boundaries[0] is -1, but must be from "
                "0"},
        BadCase{WithSchedule(Schedule::kPiecewiseConstant,
                             [](JobConfig& job) {
                               job.learning_rate.boundaries = {
                                   std::numeric_limits<int64_t>::max()};
                               job.learning_rate.values = {1, 1};
                             }),
                "learning_rate_schedule.boundaries[0] is 9223372036854775807"},
        BadCase{WithSchedule(Schedule::kPiecewiseConstant,
                             [](JobConfig& job) {
                               job.learning_rate.boundaries = {5};
                               job.learning_rate.values = {1, kNan};
                             }),
                "learning_rate_schedule.values[1] is nan"}));

INSTANTIATE_TEST_SUITE_P(
    Times, BadJobTest,
    ::testing::Values(
        BadCase{[](JobConfig& job) {
                  job.heartbeat_interval = absl::ZeroDuration();
                },
                "heartbeat_interval is 0, but must be from 1ms to 1h"},
        BadCase{[](JobConfig& job) {
                  job.heartbeat_interval = absl::InfiniteDuration();
                },
                "heartbeat_interval is inf"},
        BadCase{[](JobConfig& job) { job.lease = absl::Seconds(1); },
                "lease is 1s, but must be above 2 times heartbeat_interval, "
                "which is 500ms"},
        BadCase{[](JobConfig& job) { job.lease = absl::Hours(25); },
                "lease is 25h, but must be from 1ms to 24h"},
        BadCase{[](JobConfig& job) { job.max_wait = absl::ZeroDuration(); },
                "max_wait is 0, but must be from 1ms"},
        BadCase{[](JobConfig& job) { job.max_wait = -absl::Seconds(1); },
                "max_wait is -1s"},
        BadCase{[](JobConfig& job) { job.stall_timeout = -absl::Seconds(1); },
                "stall_timeout is -1s, but must be from 0 to 24h"},
        BadCase{[](JobConfig& job) { job.stall_timeout = absl::Hours(25); },
                "stall_timeout is 25h"}));

struct TokensCase {
  int replicas_to_aggregate;
  int total_num_replicas;
  int initial_tokens;
  bool good;
};

class TokensTest : public ::testing::TestWithParam<TokensCase> {};

TEST_P(TokensTest, AreAtLeastTheSurplusOfGradients) {
  const absl::Status status = ValidateWith([](JobConfig& job) {
    job.mode = SyncMode::kCompatible;
    job.replicas_to_aggregate = GetParam().replicas_to_aggregate;
    job.total_num_replicas = GetParam().total_num_replicas;
    job.initial_tokens = GetParam().initial_tokens;
  });

  if (GetParam().good) {
    EXPECT_OK(status);
  } else {
    EXPECT_THAT(status,
                StatusIs(kInvalid, AllOf(StartsWith("initial_tokens is "),
                                         HasSubstr("absent, or from "))));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, TokensTest,
    ::testing::Values(TokensCase{4, 2, 4, true}, TokensCase{4, 2, 2, true},
                      TokensCase{4, 2, 1, false}, TokensCase{4, 2, -1, true},
                      TokensCase{2, 4, -2, true}, TokensCase{2, 4, -3, false},
                      TokensCase{2, 4, 0, true}, TokensCase{0, 0, 0, true},
                      TokensCase{0, 0, -2, false}, TokensCase{4, 0, 1, true},
                      TokensCase{0, 4, -3, true},
                      TokensCase{0, 4, 1'000'001, false}));

TEST(JobConfigTest, FieldsWithoutAnEffectOnExternalWorkersAreRefused) {
  for (const BadCase& wrong :
       {BadCase{[](JobConfig& j) { j.model.row_limit = 9; }, "row_limit"},
        BadCase{[](JobConfig& j) { j.micro_batches = 2; }, "micro_batches"},
        BadCase{[](JobConfig& j) { j.model.variable_type = DType::kFloat16; },
                "variable_type"}}) {
    EXPECT_THAT(ValidateWith([&](JobConfig& job) {
                  job.model.kind = kExternalModel;
                  wrong.change(job);
                }),
                StatusIs(kInvalid, HasSubstr(wrong.message)));
  }
}

TEST(JobConfigTest, MessageDoesNotEchoLongText) {
  EXPECT_THAT(ValidateWith([](JobConfig& job) {
                job.data.train_images = std::string(5000, 's');
              }),
              StatusIs(kInvalid, Not(HasSubstr("ssss"))));
}

}  // namespace
}  // namespace lockstep
