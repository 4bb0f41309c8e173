#include "common/job/codec/job_config_codec.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/job/codec/auto_number_codec.h"
#include "common/job/codec/field_list_codec.h"
#include "common/job/codec/job_override_codec.h"
#include "common/job/codec/job_text_codec.h"
#include "common/job/codec/training_config_codec.h"
#include "common/job/codec/variable_settings_codec.h"

namespace lockstep {

constexpr EnumValue<SyncMode> kModes[] = {
    {SyncMode::kStrict, v1::STRICT}, {SyncMode::kCompatible, v1::COMPATIBLE}};
constexpr EnumValue<ComputePrecision> kPrecisions[] = {
    {ComputePrecision::kFloat32, v1::COMPUTE_FLOAT32},
    {ComputePrecision::kTf32, v1::COMPUTE_TF32},
    {ComputePrecision::kBfloat16, v1::COMPUTE_BFLOAT16}};
constexpr EnumValue<GradientType> kGradientTypes[] = {
    {GradientType::kVariable, v1::VARIABLE},
    {GradientType::kBFloat16, v1::BFLOAT16}};
constexpr EnumValue<ElasticPolicy> kElasticPolicies[] = {
    {ElasticPolicy::kFixedBackups, v1::FIXED_BACKUPS},
    {ElasticPolicy::kFixedReplicasToAggregate,
     v1::FIXED_REPLICAS_TO_AGGREGATE}};
constexpr EnumValue<StrategyKind> kStrategies[] = {
    {StrategyKind::kParameterServer, v1::PARAMETER_SERVER},
    {StrategyKind::kMirrored, v1::MIRRORED},
    {StrategyKind::kOneDevice, v1::ONE_DEVICE},
    {StrategyKind::kMultiWorkerMirrored, v1::MULTI_WORKER_MIRRORED}};
constexpr EnumValue<SumOrder> kSumOrders[] = {{SumOrder::kRank, v1::RANK},
                                              {SumOrder::kRing, v1::RING}};
constexpr EnumValue<Work> kWorks[] = {{Work::kOwnBatches, v1::OWN_BATCHES},
                                      {Work::kShared, v1::SHARED}};

// Not `cut_by_div`: see ToProto(const JobConfig&).
static void VisitFields(FieldVisitor& visit, ModelConfig& model) {
  visit("kind", model.kind);
  visit("hidden_units", model.hidden_units);
  visit("conv_filters", model.conv_filters);
  visit("kernel_size", model.kernel_size);
  visit("layers", model.layers);
  visit("heads", model.heads);
  visit("width", model.width);
  visit("dropout", model.dropout);
  visit("variable_type", model.variable_type);
  visit("features", model.features);
  visit("embedding_dim", model.embedding_dim);
  visit("window", model.window);
  visit("negatives", model.negatives);
  visit("subsample", model.subsample);
  visit("categorical", model.categorical);
  visit("crosses", model.crosses);
  visit("numeric", model.numeric);
  visit("label", model.label);
  visit("embedding_rows", model.embedding_rows);
  visit("row_limit", model.row_limit);
}

static void VisitFields(FieldVisitor& visit, DataConfig& data) {
  visit("train_images", data.train_images);
  visit("train_labels", data.train_labels);
  visit("test_images", data.test_images);
  visit("test_labels", data.test_labels);
  visit("epochs", data.epochs);
  visit("classes", data.classes);
  visit("train_files", data.train_files);
  visit("test_files", data.test_files);
  visit("index_base", data.index_base);
  visit("min_count", data.min_count);
  visit("train_text", data.train_text);
  visit("test_text", data.test_text);
  visit("sequence_length", data.sequence_length);
}

static void VisitFields(FieldVisitor& visit, CheckpointConfig& checkpoint) {
  visit("directory", checkpoint.directory);
  visit("every_steps", checkpoint.every_steps);
  visit("every", checkpoint.every);
  visit("keep", checkpoint.keep);
  visit("initial_values", checkpoint.initial_values);
}

static void VisitFields(FieldVisitor& visit, SummaryConfig& summary) {
  visit("directory", summary.directory);
  visit("every", summary.every);
}

static void VisitFields(FieldVisitor& visit, CommunicationConfig& options) {
  visit("order", options.order, kSumOrders);
  visit.Optional("bytes_per_pack", options.bytes_per_pack, -1);
}

static void VisitFields(FieldVisitor& visit, StrategyConfig& strategy) {
  visit("kind", strategy.kind, kStrategies);
  visit("replicas_per_worker", strategy.replicas_per_worker);
  visit("devices", strategy.devices);
  visit("communication", strategy.communication);
}

static void VisitFields(FieldVisitor& visit, LocalTraining& local) {
  visit("optimizer", local.optimizer);
  visit("learning_rate", local.learning_rate.base);
  visit("learning_rate_schedule", local.learning_rate);
}

static void VisitFields(FieldVisitor& visit, JobConfig& job) {
  visit("name", job.name);
  visit("seed", job.seed);
  visit("replicas_to_aggregate", job.replicas_to_aggregate);
  visit("total_num_replicas", job.total_num_replicas);
  // Absent means TensorFlow's default, which is -1 here.
  visit.Optional("initial_tokens", job.initial_tokens, -1);
  visit("train_steps", job.train_steps);
  visit("batch_size", job.batch_size);
  visit("max_part_bytes", job.max_part_bytes);
  visit("refuse_non_finite", job.refuse_non_finite);
  visit("elastic_workers", job.elastic_workers);
  visit("elastic_policy", job.elastic_policy, kElasticPolicies);
  visit("strategy", job.strategy);
  visit("work", job.work, kWorks);
  visit("micro_batches_per_step", job.micro_batches_per_step);
  visit("micro_batches_per_push", job.micro_batches_per_push);
  visit("compute_precision", job.compute_precision, kPrecisions);
  visit("micro_batches", job.micro_batches);
  visit("mode", job.mode, kModes);
  visit("gradient_wire_type", job.gradient_wire_type, kGradientTypes);
  visit("model", job.model);
  visit("data", job.data);
  visit("optimizer", job.optimizer);
  visit("variable_optimizers", job.variable_optimizers);
  visit("moving_average", job.moving_average);
  visit("constraints", job.constraints);
  visit("untrained", job.untrained);
  visit("clipping", job.clipping);
  visit("placement", job.placement);
  visit("partitioner", job.partitioner);
  visit("learning_rate_schedule", job.learning_rate);
  visit("local_steps", job.local_steps);
  // Written without local steps, too: an override may set them after their
  // rule.
  visit("local", job.local);
  // With local steps, servers apply a mean change of values and not a gradient:
  // rate 1 applies all of it. The rate is always written: an override of
  // local_steps does not change it, and JobWarnings() tells the user.
  if (job.has_local_steps()) visit.Default(job.learning_rate.base, 1);
  visit("learning_rate", job.learning_rate.base);
  visit("checkpoint", job.checkpoint);
  visit("summary", job.summary);
  visit("heartbeat_interval", job.heartbeat_interval);
  visit("lease", job.lease);
  visit("max_wait", job.max_wait);
  visit("stall_timeout", job.stall_timeout);
}

v1::JobConfig ToProto(const JobConfig& job) {
  v1::JobConfig proto = ToMessage<v1::JobConfig>(job);
  if (job.tune_backups) proto.set_replicas_to_aggregate(kAutoNumber);
  proto.mutable_model()->set_table_cut(job.model.cut_by_div ? v1::BY_DIV
                                                            : v1::BY_MOD);
  return proto;
}

absl::StatusOr<JobConfig> FromProto(const v1::JobConfig& proto) {
  LOCKSTEP_ASSIGN_OR_RETURN(JobConfig job, FromMessage<JobConfig>(proto, ""));
  // AUTO is -1 in messages, so it must be replaced: see
  // JobConfig::tune_backups.
  job.tune_backups = job.replicas_to_aggregate == kAutoNumber;
  if (job.tune_backups) job.replicas_to_aggregate = job.total_num_replicas;
  // BY_MOD, an absent field and an unknown number mean the same.
  job.model.cut_by_div = proto.model().table_cut() == v1::BY_DIV;
  return job;
}

absl::StatusOr<JobConfig> ParseJobText(
    absl::string_view text, absl::string_view source,
    absl::Span<const std::string> overrides) {
  v1::JobConfig proto;
  LOCKSTEP_RETURN_IF_ERROR(ParseTextMessage(text, source, proto));
  absl::StatusOr<JobConfig> job = FromProto(proto);
  if (!job.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(source, ": ", job.status().message()));
  }
  if (overrides.empty()) return job;
  // The message knows which fields are given, which a JobConfig does not. The
  // rate is given, too: an override of local_steps does not change it.
  proto.set_learning_rate(job->learning_rate.base);
  for (const std::string& assignment : overrides) {
    LOCKSTEP_RETURN_IF_ERROR(SetField(assignment, proto));
  }
  return FromProto(proto);
}

absl::StatusOr<std::string> ModelKindIn(absl::string_view text,
                                        absl::string_view source) {
  v1::JobConfig proto;
  LOCKSTEP_RETURN_IF_ERROR(ParseTextMessage(text, source, proto));
  return proto.model().kind();
}

}  // namespace lockstep
