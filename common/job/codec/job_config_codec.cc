#include "common/job/codec/job_config_codec.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/job/codec/auto_number_codec.h"
#include "common/job/codec/duration_codec.h"
#include "common/job/codec/job_override_codec.h"
#include "common/job/codec/job_text_codec.h"
#include "common/job/codec/training_config_codec.h"
#include "common/job/codec/variable_settings_codec.h"
#include "common/wire/wire_codec.h"

namespace lockstep {
namespace {

absl::Status NoMeaning(absl::string_view field, int value) {
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is the number ", value, ", which has no name in this version"));
}

v1::SyncMode ToProto(SyncMode mode) {
  return mode == SyncMode::kCompatible ? v1::COMPATIBLE : v1::STRICT;
}

absl::StatusOr<SyncMode> FromProto(v1::SyncMode mode) {
  switch (mode) {
    case v1::SYNC_MODE_UNSPECIFIED:
    case v1::STRICT:
      return SyncMode::kStrict;
    case v1::COMPATIBLE:
      return SyncMode::kCompatible;
    default:
      return NoMeaning("mode", mode);
  }
}

v1::ComputePrecision ToProto(ComputePrecision precision) {
  switch (precision) {
    case ComputePrecision::kTf32:
      return v1::COMPUTE_TF32;
    case ComputePrecision::kBfloat16:
      return v1::COMPUTE_BFLOAT16;
    case ComputePrecision::kFloat32:
      break;
  }
  return v1::COMPUTE_FLOAT32;
}

absl::StatusOr<ComputePrecision> FromProto(v1::ComputePrecision precision) {
  switch (precision) {
    case v1::COMPUTE_PRECISION_UNSPECIFIED:
    case v1::COMPUTE_FLOAT32:
      return ComputePrecision::kFloat32;
    case v1::COMPUTE_TF32:
      return ComputePrecision::kTf32;
    case v1::COMPUTE_BFLOAT16:
      return ComputePrecision::kBfloat16;
    default:
      return NoMeaning("compute_precision", precision);
  }
}

// Proto3 fields without `optional` cannot tell 0 from absent.
template <typename Proto, typename Field>
void SetUnlessZero(const Proto& value, Field& field) {
  if (value != Proto{}) field = value;
}

absl::Status SetIfPresent(absl::string_view name, bool present,
                          const google::protobuf::Duration& value,
                          absl::Duration& field) {
  if (!present) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(field, DurationFromProto(name, value));
  return absl::OkStatus();
}

void WriteModel(const ModelConfig& model, v1::ModelConfig& proto) {
  proto.set_kind(model.kind);
  proto.mutable_hidden_units()->Add(model.hidden_units.begin(),
                                    model.hidden_units.end());
  proto.mutable_conv_filters()->Add(model.conv_filters.begin(),
                                    model.conv_filters.end());
  proto.set_kernel_size(model.kernel_size);
  proto.set_features(model.features);
  proto.set_embedding_dim(model.embedding_dim);
  proto.set_window(model.window);
  proto.set_negatives(model.negatives);
  proto.set_subsample(model.subsample);
  proto.set_table_cut(model.cut_by_div ? v1::BY_DIV : v1::BY_MOD);
  proto.set_row_limit(model.row_limit);
  proto.set_layers(model.layers);
  proto.set_heads(model.heads);
  proto.set_width(model.width);
  proto.set_dropout(model.dropout);
  proto.set_variable_type(std::string(DTypeName(model.variable_type)));
  proto.mutable_categorical()->Add(model.categorical.begin(),
                                   model.categorical.end());
  proto.mutable_crosses()->Add(model.crosses.begin(), model.crosses.end());
  proto.mutable_numeric()->Add(model.numeric.begin(), model.numeric.end());
  proto.set_label(model.label);
  proto.set_embedding_rows(model.embedding_rows);
}

absl::Status ReadVariableType(const v1::ModelConfig& proto,
                              ModelConfig& model) {
  if (proto.variable_type().empty()) return absl::OkStatus();
  const absl::StatusOr<DType> type = ParseDType(proto.variable_type());
  if (!type.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model.variable_type: ", type.status().message()));
  }
  model.variable_type = *type;
  return absl::OkStatus();
}

absl::Status ReadModel(const v1::ModelConfig& proto, ModelConfig& model) {
  SetUnlessZero(proto.kind(), model.kind);
  model.hidden_units.assign(proto.hidden_units().begin(),
                            proto.hidden_units().end());
  model.conv_filters.assign(proto.conv_filters().begin(),
                            proto.conv_filters().end());
  if (proto.has_kernel_size()) model.kernel_size = proto.kernel_size();
  model.features = proto.features();
  model.embedding_dim = proto.embedding_dim();
  SetUnlessZero(proto.window(), model.window);
  if (proto.has_negatives()) model.negatives = proto.negatives();
  if (proto.has_subsample()) model.subsample = proto.subsample();
  // BY_MOD and an absent field mean the same.
  model.cut_by_div = proto.table_cut() == v1::BY_DIV;
  model.row_limit = proto.row_limit();
  model.layers = proto.layers();
  model.heads = proto.heads();
  model.width = proto.width();
  model.dropout = proto.dropout();
  model.categorical.assign(proto.categorical().begin(),
                           proto.categorical().end());
  model.crosses.assign(proto.crosses().begin(), proto.crosses().end());
  model.numeric.assign(proto.numeric().begin(), proto.numeric().end());
  SetUnlessZero(proto.label(), model.label);
  model.embedding_rows = proto.embedding_rows();
  return ReadVariableType(proto, model);
}

void WriteData(const DataConfig& data, v1::DataConfig& proto) {
  proto.set_train_images(data.train_images);
  proto.set_train_labels(data.train_labels);
  proto.set_test_images(data.test_images);
  proto.set_test_labels(data.test_labels);
  proto.set_epochs(data.epochs);
  proto.set_classes(data.classes);
  proto.mutable_train_files()->Add(data.train_files.begin(),
                                   data.train_files.end());
  proto.mutable_test_files()->Add(data.test_files.begin(),
                                  data.test_files.end());
  proto.set_index_base(data.index_base);
  proto.set_min_count(data.min_count);
  proto.set_train_text(data.train_text);
  proto.set_test_text(data.test_text);
  proto.set_sequence_length(data.sequence_length);
}

void ReadData(const v1::DataConfig& proto, DataConfig& data) {
  data.train_images = proto.train_images();
  data.train_labels = proto.train_labels();
  data.test_images = proto.test_images();
  data.test_labels = proto.test_labels();
  data.epochs = proto.epochs();
  data.classes = proto.classes();
  data.train_files.assign(proto.train_files().begin(),
                          proto.train_files().end());
  data.test_files.assign(proto.test_files().begin(), proto.test_files().end());
  if (proto.has_index_base()) data.index_base = proto.index_base();
  if (proto.has_min_count()) data.min_count = proto.min_count();
  data.train_text = proto.train_text();
  data.test_text = proto.test_text();
  data.sequence_length = proto.sequence_length();
}

void WriteCheckpoint(const CheckpointConfig& checkpoint,
                     v1::CheckpointConfig& proto) {
  proto.set_directory(checkpoint.directory);
  proto.set_every_steps(checkpoint.every_steps);
  *proto.mutable_every() = lockstep::ToProto(checkpoint.every);
  proto.set_keep(checkpoint.keep);
  proto.set_initial_values(checkpoint.initial_values);
}

absl::Status ReadCheckpoint(const v1::CheckpointConfig& proto,
                            CheckpointConfig& checkpoint) {
  checkpoint.directory = proto.directory();
  checkpoint.every_steps = proto.every_steps();
  if (proto.has_keep()) checkpoint.keep = proto.keep();
  checkpoint.initial_values = proto.initial_values();
  return SetIfPresent("checkpoint.every", proto.has_every(), proto.every(),
                      checkpoint.every);
}

void WriteSummary(const SummaryConfig& summary, v1::SummaryConfig& proto) {
  proto.set_directory(summary.directory);
  *proto.mutable_every() = lockstep::ToProto(summary.every);
}

absl::Status ReadSummary(const v1::SummaryConfig& proto,
                         SummaryConfig& summary) {
  summary.directory = proto.directory();
  return SetIfPresent("summary.every", proto.has_every(), proto.every(),
                      summary.every);
}

void ReadCounts(const v1::JobConfig& proto, JobConfig& job) {
  SetUnlessZero(proto.name(), job.name);
  if (proto.has_seed()) job.seed = proto.seed();
  job.replicas_to_aggregate = proto.replicas_to_aggregate();
  job.total_num_replicas = proto.total_num_replicas();
  // AUTO is -1 in messages, so it must be replaced: see
  // JobConfig::tune_backups.
  job.tune_backups = proto.replicas_to_aggregate() == kAutoNumber;
  if (job.tune_backups) job.replicas_to_aggregate = job.total_num_replicas;
  if (proto.has_initial_tokens()) job.initial_tokens = proto.initial_tokens();
  job.train_steps = proto.train_steps();
  job.batch_size = proto.batch_size();
  SetUnlessZero(proto.micro_batches(), job.micro_batches);
  if (proto.has_max_part_bytes()) job.max_part_bytes = proto.max_part_bytes();
  if (proto.has_refuse_non_finite()) {
    job.refuse_non_finite = proto.refuse_non_finite();
  }
  // With local steps, servers apply a mean change of values and not a gradient:
  // rate 1 applies all of it.
  if (proto.local_steps() > 1 || proto.local().learning_rate() != 0) {
    job.learning_rate.base = 1;
  }
  if (proto.has_learning_rate()) job.learning_rate.base = proto.learning_rate();
}

absl::Status ReadElastic(const v1::JobConfig& proto, JobConfig& job) {
  job.elastic_workers = proto.elastic_workers();
  switch (proto.elastic_policy()) {
    case v1::ELASTIC_POLICY_UNSPECIFIED:
    case v1::FIXED_BACKUPS:
      job.elastic_policy = ElasticPolicy::kFixedBackups;
      return absl::OkStatus();
    case v1::FIXED_REPLICAS_TO_AGGREGATE:
      job.elastic_policy = ElasticPolicy::kFixedReplicasToAggregate;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("elastic_policy is ", proto.elastic_policy(),
                       ", but must be FIXED_BACKUPS or "
                       "FIXED_REPLICAS_TO_AGGREGATE"));
  }
}

void WriteLocal(const LocalTraining& local, v1::LocalTraining& proto) {
  *proto.mutable_optimizer() = lockstep::ToProto(local.optimizer);
  proto.set_learning_rate(local.learning_rate.base);
  *proto.mutable_learning_rate_schedule() =
      lockstep::ToProto(local.learning_rate);
}

absl::Status ReadLocal(const v1::JobConfig& proto, JobConfig& job) {
  LOCKSTEP_ASSIGN_OR_RETURN(job.local.optimizer,
                            lockstep::FromProto(proto.local().optimizer()));
  job.local.learning_rate.base = proto.local().learning_rate();
  return ReadSchedule(proto.local().learning_rate_schedule(),
                      job.local.learning_rate);
}

absl::Status ReadWork(const v1::JobConfig& proto, JobConfig& job) {
  job.micro_batches_per_step = proto.micro_batches_per_step();
  job.micro_batches_per_push = proto.micro_batches_per_push();
  SetUnlessZero(proto.local_steps(), job.local_steps);
  switch (proto.work()) {
    case v1::WORK_UNSPECIFIED:
    case v1::OWN_BATCHES:
      job.work = Work::kOwnBatches;
      return absl::OkStatus();
    case v1::SHARED:
      job.work = Work::kShared;
      return absl::OkStatus();
    default:
      return NoMeaning("work", proto.work());
  }
}

void WriteStrategy(const StrategyConfig& strategy, v1::StrategyConfig& proto) {
  switch (strategy.kind) {
    case StrategyKind::kParameterServer:
      proto.set_kind(v1::PARAMETER_SERVER);
      break;
    case StrategyKind::kMirrored:
      proto.set_kind(v1::MIRRORED);
      break;
    case StrategyKind::kMultiWorkerMirrored:
      proto.set_kind(v1::MULTI_WORKER_MIRRORED);
      break;
    case StrategyKind::kOneDevice:
      proto.set_kind(v1::ONE_DEVICE);
      break;
  }
  proto.set_replicas_per_worker(strategy.replicas_per_worker);
  proto.mutable_devices()->Assign(strategy.devices.begin(),
                                  strategy.devices.end());
}

absl::Status ReadStrategy(const v1::StrategyConfig& proto,
                          StrategyConfig& strategy) {
  strategy.replicas_per_worker = proto.replicas_per_worker();
  strategy.devices.assign(proto.devices().begin(), proto.devices().end());
  switch (proto.kind()) {
    case v1::STRATEGY_KIND_UNSPECIFIED:
    case v1::PARAMETER_SERVER:
      strategy.kind = StrategyKind::kParameterServer;
      return absl::OkStatus();
    case v1::MULTI_WORKER_MIRRORED:
      strategy.kind = StrategyKind::kMultiWorkerMirrored;
      return absl::OkStatus();
    case v1::MIRRORED:
      strategy.kind = StrategyKind::kMirrored;
      return absl::OkStatus();
    case v1::ONE_DEVICE:
      strategy.kind = StrategyKind::kOneDevice;
      return absl::OkStatus();
    default:
      return NoMeaning("strategy.kind", proto.kind());
  }
}

absl::Status ReadTimes(const v1::JobConfig& proto, JobConfig& job) {
  LOCKSTEP_RETURN_IF_ERROR(
      SetIfPresent("heartbeat_interval", proto.has_heartbeat_interval(),
                   proto.heartbeat_interval(), job.heartbeat_interval));
  LOCKSTEP_RETURN_IF_ERROR(
      SetIfPresent("lease", proto.has_lease(), proto.lease(), job.lease));
  LOCKSTEP_RETURN_IF_ERROR(SetIfPresent("max_wait", proto.has_max_wait(),
                                        proto.max_wait(), job.max_wait));
  return SetIfPresent("stall_timeout", proto.has_stall_timeout(),
                      proto.stall_timeout(), job.stall_timeout);
}

void WriteCounts(const JobConfig& job, v1::JobConfig& proto) {
  proto.set_name(job.name);
  proto.set_seed(job.seed);
  proto.set_mode(ToProto(job.mode));
  proto.set_replicas_to_aggregate(job.tune_backups ? kAutoNumber
                                                   : job.replicas_to_aggregate);
  proto.set_total_num_replicas(job.total_num_replicas);
  // Absent means TensorFlow's default, which is -1 here.
  if (job.initial_tokens != -1) proto.set_initial_tokens(job.initial_tokens);
  proto.set_train_steps(job.train_steps);
  proto.set_batch_size(job.batch_size);
  proto.set_micro_batches(job.micro_batches);
  proto.set_compute_precision(ToProto(job.compute_precision));
  proto.set_max_part_bytes(job.max_part_bytes);
  proto.set_refuse_non_finite(job.refuse_non_finite);
  proto.set_gradient_wire_type(ToProto(job.gradient_wire_type));
  // Always set: an override of local_steps does not change the rate, and
  // JobWarnings() tells the user.
  proto.set_learning_rate(job.learning_rate.base);
  proto.set_elastic_workers(job.elastic_workers);
  proto.set_elastic_policy(job.elastic_policy == ElasticPolicy::kFixedBackups
                               ? v1::FIXED_BACKUPS
                               : v1::FIXED_REPLICAS_TO_AGGREGATE);
  WriteStrategy(job.strategy, *proto.mutable_strategy());
  proto.set_work(job.shares_work() ? v1::SHARED : v1::OWN_BATCHES);
  proto.set_micro_batches_per_step(job.micro_batches_per_step);
  proto.set_micro_batches_per_push(job.micro_batches_per_push);
  proto.set_local_steps(job.local_steps);
  // Without local steps, too: an override may set them after their rule.
  WriteLocal(job.local, *proto.mutable_local());
}

}  // namespace

v1::JobConfig ToProto(const JobConfig& job) {
  v1::JobConfig proto;
  WriteCounts(job, proto);
  WriteModel(job.model, *proto.mutable_model());
  WriteData(job.data, *proto.mutable_data());
  *proto.mutable_optimizer() = ToProto(job.optimizer);
  WriteVariableSettings(job, proto);
  *proto.mutable_clipping() = ToProto(job.clipping);
  *proto.mutable_placement() = ToProto(job.placement);
  *proto.mutable_partitioner() = ToProto(job.partitioner);
  *proto.mutable_learning_rate_schedule() = ToProto(job.learning_rate);
  WriteCheckpoint(job.checkpoint, *proto.mutable_checkpoint());
  WriteSummary(job.summary, *proto.mutable_summary());
  *proto.mutable_heartbeat_interval() = ToProto(job.heartbeat_interval);
  *proto.mutable_lease() = ToProto(job.lease);
  *proto.mutable_max_wait() = ToProto(job.max_wait);
  *proto.mutable_stall_timeout() = ToProto(job.stall_timeout);
  return proto;
}

absl::StatusOr<JobConfig> FromProto(const v1::JobConfig& proto) {
  JobConfig job;
  ReadCounts(proto, job);
  LOCKSTEP_RETURN_IF_ERROR(ReadElastic(proto, job));
  LOCKSTEP_RETURN_IF_ERROR(ReadStrategy(proto.strategy(), job.strategy));
  LOCKSTEP_RETURN_IF_ERROR(ReadWork(proto, job));
  LOCKSTEP_ASSIGN_OR_RETURN(job.compute_precision,
                            FromProto(proto.compute_precision()));
  LOCKSTEP_ASSIGN_OR_RETURN(job.mode, FromProto(proto.mode()));
  LOCKSTEP_ASSIGN_OR_RETURN(
      job.gradient_wire_type,
      FromProto("gradient_wire_type", proto.gradient_wire_type()));
  LOCKSTEP_RETURN_IF_ERROR(ReadModel(proto.model(), job.model));
  ReadData(proto.data(), job.data);
  LOCKSTEP_ASSIGN_OR_RETURN(job.optimizer, FromProto(proto.optimizer()));
  LOCKSTEP_RETURN_IF_ERROR(ReadVariableSettings(proto, job));
  LOCKSTEP_ASSIGN_OR_RETURN(job.clipping, FromProto(proto.clipping()));
  LOCKSTEP_ASSIGN_OR_RETURN(job.placement, FromProto(proto.placement()));
  LOCKSTEP_ASSIGN_OR_RETURN(job.partitioner, FromProto(proto.partitioner()));
  LOCKSTEP_RETURN_IF_ERROR(
      ReadSchedule(proto.learning_rate_schedule(), job.learning_rate));
  LOCKSTEP_RETURN_IF_ERROR(ReadLocal(proto, job));
  LOCKSTEP_RETURN_IF_ERROR(ReadCheckpoint(proto.checkpoint(), job.checkpoint));
  LOCKSTEP_RETURN_IF_ERROR(ReadSummary(proto.summary(), job.summary));
  LOCKSTEP_RETURN_IF_ERROR(ReadTimes(proto, job));
  return job;
}

absl::StatusOr<JobConfig> ParseJobText(absl::string_view text,
                                       absl::string_view source) {
  v1::JobConfig proto;
  LOCKSTEP_RETURN_IF_ERROR(ParseTextMessage(text, source, proto));
  absl::StatusOr<JobConfig> job = FromProto(proto);
  if (job.ok()) return job;
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": ", job.status().message()));
}

absl::StatusOr<bool> NamesModelKind(absl::string_view text,
                                    absl::string_view source) {
  v1::JobConfig proto;
  LOCKSTEP_RETURN_IF_ERROR(ParseTextMessage(text, source, proto));
  return !proto.model().kind().empty();
}

absl::Status ApplyOverride(absl::string_view assignment, JobConfig& job) {
  // By way of the message, whose field names and types are those of the job
  // file.
  v1::JobConfig proto = ToProto(job);
  LOCKSTEP_RETURN_IF_ERROR(SetField(assignment, proto));
  LOCKSTEP_ASSIGN_OR_RETURN(job, FromProto(proto));
  return absl::OkStatus();
}

}  // namespace lockstep
