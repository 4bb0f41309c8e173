#include "common/job/job_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/job/field_checks.h"
#include "common/job/strategy_checks.h"
#include "common/job/training_checks.h"
#include "common/job/work_checks.h"
#include "common/text/excerpt.h"
#include "common/text/utf8.h"

namespace lockstep {
namespace {

constexpr int64_t kMaxReplicas = 1'000'000;  // each costs a token per step
constexpr int64_t kMaxUnits = int64_t{1} << 24;
constexpr int64_t kMaxKernelSize = 1023;
constexpr int64_t kMaxBatchSize = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxSequenceLength = 1 << 16;
constexpr int64_t kMaxMicroBatches = 1 << 20;
constexpr int64_t kMinPartBytes = 8;  // one element of the widest type
constexpr int64_t kMaxPartBytes = int64_t{1} << 30;
constexpr size_t kMaxNameLength = 128;
constexpr size_t kMaxPathLength = 4096;
constexpr size_t kMaxColumnLength = 1024;

absl::Status CheckUnits(absl::string_view field,
                        const std::vector<int64_t>& units) {
  for (size_t i = 0; i < units.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckInt(Element(field, i), units[i], 1, kMaxUnits));
  }
  return absl::OkStatus();
}

absl::Status CheckName(const std::string& name) {
  const bool good =
      !name.empty() && name.size() <= kMaxNameLength &&
      absl::ascii_isalnum(name[0]) &&
      std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
      });
  if (good) return absl::OkStatus();
  return Wrong("name", Excerpt(name),
               "1 to 128 letters, digits, '-', '_' and '.', the first a letter "
               "or a digit");
}

// Paths travel in messages, whose text is UTF-8.
absl::Status CheckPath(absl::string_view field, const std::string& path) {
  const bool has_control = std::any_of(path.begin(), path.end(), [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c));
  });
  if (path.size() <= kMaxPathLength && !has_control && IsUtf8(path)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be a path of at most ", kMaxPathLength,
                   " bytes, in UTF-8 and without control characters"));
}

absl::Status CheckRequiredPath(absl::string_view field,
                               const std::string& path) {
  if (!path.empty()) return CheckPath(field, path);
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is missing; set it to the path of an IDX file"));
}

// Names travel in messages, whose text is UTF-8.
absl::Status CheckColumn(absl::string_view field, const std::string& name) {
  if (!name.empty() && name.size() <= kMaxColumnLength && IsUtf8(name)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      field, " must be a name of 1 to ", kMaxColumnLength, " bytes, in UTF-8"));
}

absl::Status CheckColumns(const ModelConfig& model) {
  for (const auto& [field, names] :
       {std::pair{"model.categorical", &model.categorical},
        {"model.crosses", &model.crosses},
        {"model.numeric", &model.numeric}}) {
    for (size_t i = 0; i < names->size(); ++i) {
      LOCKSTEP_RETURN_IF_ERROR(CheckColumn(Element(field, i), (*names)[i]));
    }
  }
  return CheckColumn("model.label", model.label);
}

absl::Status CheckTables(const ModelConfig& model) {
  constexpr int64_t kMaxRows = int64_t{1} << 40;
  LOCKSTEP_RETURN_IF_ERROR(CheckColumns(model));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("model.embedding_rows", model.embedding_rows, 0, kMaxRows));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("model.features", model.features, 0, kMaxRows));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("model.row_limit", model.row_limit, 0, kMaxRows));
  if (model.row_limit > 0 && model.cut_by_div) {
    return absl::InvalidArgumentError(
        "model.row_limit is set, and model.table_cut is BY_DIV; tables that "
        "grow are spread by their keys: leave table_cut out");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("model.embedding_dim", model.embedding_dim, 0, 1 << 20));
  LOCKSTEP_RETURN_IF_ERROR(CheckInt("model.window", model.window, 1, 1000));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("model.negatives", model.negatives, 0, 1000));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckReal("model.subsample", model.subsample,
                model.subsample >= 0 && model.subsample <= 1, "from 0 to 1"));
  return absl::OkStatus();
}

absl::Status CheckModel(const ModelConfig& model) {
  // Any name may be a kind: the workers' registry of models decides.
  if (model.kind.empty()) {
    return absl::InvalidArgumentError(
        "model.kind is empty; name a model, such as \"mlp\"");
  }
  if (!IsUtf8(model.kind)) {
    return absl::InvalidArgumentError(
        "model.kind is no UTF-8; name a model, such as \"mlp\"");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckUnits("model.hidden_units", model.hidden_units));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckUnits("model.conv_filters", model.conv_filters));
  LOCKSTEP_RETURN_IF_ERROR(CheckTables(model));
  if (model.variable_type == DType::kFloat64) {
    return Wrong("model.variable_type", "float64",
                 "float32, float16 or bfloat16");
  }
  // An even kernel has no middle, and cannot keep the size of a picture.
  if (model.kernel_size % 2 == 0) {
    return Wrong("model.kernel_size", model.kernel_size, "odd");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("model.kernel_size", model.kernel_size, 1, kMaxKernelSize));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("model.layers", model.layers, 0, kMaxUnits));
  LOCKSTEP_RETURN_IF_ERROR(CheckInt("model.heads", model.heads, 0, kMaxUnits));
  LOCKSTEP_RETURN_IF_ERROR(CheckInt("model.width", model.width, 0, kMaxUnits));
  if (model.heads > 0 && (model.width == 0 || model.width % model.heads != 0)) {
    return Wrong(
        "model.width", model.width,
        absl::StrCat("a positive multiple of model.heads, ", model.heads));
  }
  return CheckBelowOne("model.dropout", model.dropout);
}

absl::Status CheckText(const DataConfig& data) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.train_text", data.train_text));
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.test_text", data.test_text));
  LOCKSTEP_RETURN_IF_ERROR(CheckInt(
      "data.sequence_length", data.sequence_length, 1, kMaxSequenceLength));
  return CheckInt("data.epochs", data.epochs, 0);
}

absl::Status CheckFiles(absl::string_view field,
                        const std::vector<std::string>& paths) {
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string name = Element(field, i);
    if (paths[i].empty()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is empty"));
    }
    LOCKSTEP_RETURN_IF_ERROR(CheckPath(name, paths[i]));
  }
  return absl::OkStatus();
}

// Checks lists of files, the input of models with tables.
absl::Status CheckFileLists(const DataConfig& data) {
  LOCKSTEP_RETURN_IF_ERROR(CheckFiles("data.train_files", data.train_files));
  LOCKSTEP_RETURN_IF_ERROR(CheckFiles("data.test_files", data.test_files));
  LOCKSTEP_RETURN_IF_ERROR(CheckInt("data.index_base", data.index_base, 0, 1));
  LOCKSTEP_RETURN_IF_ERROR(CheckInt("data.min_count", data.min_count, 1));
  return CheckInt("data.epochs", data.epochs, 0);
}

// What is trained on decides how the rest is read: a field of another kind of
// data would be ignored, or scored by a model that cannot read it.
absl::Status CheckOneKind(const DataConfig& data) {
  const absl::string_view used = !data.train_files.empty()  ? "files"
                                 : !data.train_text.empty() ? "text"
                                                            : "images";
  if (used == "images" && data.train_images.empty()) return absl::OkStatus();
  for (const auto& [field, kind, is_absent] :
       {std::tuple{"data.train_text", "text", data.train_text.empty()},
        {"data.test_text", "text", data.test_text.empty()},
        {"data.test_files", "files", data.test_files.empty()},
        {"data.train_images", "images", data.train_images.empty()},
        {"data.train_labels", "images", data.train_labels.empty()},
        {"data.test_images", "images", data.test_images.empty()},
        {"data.test_labels", "images", data.test_labels.empty()}}) {
    if (is_absent || kind == used) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is set, but the job trains on data.train_", used,
                     "; leave one of the two out"));
  }
  return absl::OkStatus();
}

absl::Status CheckData(const ModelConfig& model, const DataConfig& data) {
  constexpr int64_t kMaxClasses = 1 << 20;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("data.classes", data.classes, 0, kMaxClasses));
  if (data.classes > 0 && data.train_images.empty()) {
    return absl::InvalidArgumentError(
        "data.classes is set, but data.train_images is not; only pictures have "
        "labels that it bounds: leave it out");
  }
  // A program of the user may read its data from anywhere.
  if (model.kind == kExternalModel && data.train_files.empty() &&
      data.train_text.empty() && data.train_images.empty() &&
      data.train_labels.empty()) {
    return CheckInt("data.epochs", data.epochs, 0);
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckOneKind(data));
  if (!data.train_files.empty()) return CheckFileLists(data);
  if (!data.train_text.empty()) return CheckText(data);
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRequiredPath("data.train_images", data.train_images));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRequiredPath("data.train_labels", data.train_labels));
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.test_images", data.test_images));
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("data.test_labels", data.test_labels));
  if (data.test_images.empty() != data.test_labels.empty()) {
    return absl::InvalidArgumentError(
        "data.test_images and data.test_labels belong together; set both or "
        "neither");
  }
  return CheckInt("data.epochs", data.epochs, 0);
}

absl::Status CheckDuration(absl::string_view field, absl::Duration value,
                           absl::Duration min, absl::Duration max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return Wrong(field, absl::FormatDuration(value),
               absl::StrCat("from ", absl::FormatDuration(min), " to ",
                            absl::FormatDuration(max)));
}

absl::Status CheckCheckpoint(const CheckpointConfig& checkpoint) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckPath("checkpoint.directory", checkpoint.directory));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckPath("checkpoint.initial_values", checkpoint.initial_values));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("checkpoint.every_steps", checkpoint.every_steps, 0));
  LOCKSTEP_RETURN_IF_ERROR(CheckDuration("checkpoint.every", checkpoint.every,
                                         absl::ZeroDuration(),
                                         absl::Hours(24 * 365)));
  const bool asked =
      checkpoint.every_steps > 0 || checkpoint.every > absl::ZeroDuration();
  if (asked && checkpoint.directory.empty()) {
    return absl::InvalidArgumentError(
        "checkpoint.directory is missing, but checkpoint.every_steps or "
        "checkpoint.every is set; set the directory, or neither of them");
  }
  return CheckInt("checkpoint.keep", checkpoint.keep, 1);
}

absl::Status CheckSummary(const SummaryConfig& summary) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPath("summary.directory", summary.directory));
  return CheckDuration("summary.every", summary.every, absl::Milliseconds(100),
                       absl::Hours(1));
}

// TensorFlow refuses fewer tokens than the surplus of gradients over workers,
// because no step could then end. If a count comes from the cluster, the chief
// repeats the check when it knows the cluster.
absl::Status CheckInitialTokens(const JobConfig& job) {
  if (job.initial_tokens == -1) return absl::OkStatus();
  const bool both_of_cluster =
      job.replicas_to_aggregate == 0 && job.total_num_replicas == 0;
  const bool both_given =
      job.replicas_to_aggregate > 0 && job.total_num_replicas > 0;
  const int64_t least =
      both_of_cluster || both_given
          ? int64_t{job.replicas_to_aggregate} - job.total_num_replicas
          : -kMaxReplicas;
  if (job.initial_tokens >= least && job.initial_tokens <= kMaxReplicas) {
    return absl::OkStatus();
  }
  return Wrong("initial_tokens", job.initial_tokens,
               absl::StrCat("absent, or from ", least, " to ", kMaxReplicas,
                            " (at least replicas_to_aggregate - "
                            "total_num_replicas)"));
}

// The types of variables are checked later, when a worker has described them.
absl::Status CheckGradientType(const JobConfig& job) {
  const GradientType type = job.gradient_wire_type;
  if (type == GradientType::kVariable) return absl::OkStatus();
  if (type != GradientType::kBFloat16) {
    return Wrong("gradient_wire_type", static_cast<int>(type),
                 "VARIABLE or BFLOAT16");
  }
  // Compatible mode reproduces TensorFlow, which sends gradients as they are.
  if (job.mode == SyncMode::kStrict) return absl::OkStatus();
  return Wrong("gradient_wire_type", "BFLOAT16",
               "VARIABLE where mode is COMPATIBLE");
}

absl::Status CheckSync(const JobConfig& job) {
  if (job.mode != SyncMode::kStrict && job.mode != SyncMode::kCompatible) {
    return Wrong("mode", static_cast<int>(job.mode), "STRICT or COMPATIBLE");
  }
  if (job.tune_backups && job.mode == SyncMode::kCompatible) {
    return Wrong("replicas_to_aggregate", "AUTO",
                 "a number where mode is COMPATIBLE, which takes whichever "
                 "gradients come first; or set mode to STRICT");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckInt(
      "replicas_to_aggregate", job.replicas_to_aggregate, 0, kMaxReplicas));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("total_num_replicas", job.total_num_replicas, 0, kMaxReplicas));
  LOCKSTEP_RETURN_IF_ERROR(CheckGradientType(job));
  return CheckInitialTokens(job);
}

absl::Status CheckElastic(const JobConfig& job) {
  if (job.elastic_policy != ElasticPolicy::kFixedBackups &&
      job.elastic_policy != ElasticPolicy::kFixedReplicasToAggregate) {
    return Wrong("elastic_policy", static_cast<int>(job.elastic_policy),
                 "FIXED_BACKUPS or FIXED_REPLICAS_TO_AGGREGATE");
  }
  if (!job.elastic_workers) return absl::OkStatus();
  if (job.mode != SyncMode::kStrict) {
    return Wrong("mode", "COMPATIBLE", "STRICT where elastic_workers is set");
  }
  if (job.data.epochs != 0) {
    return Wrong("data.epochs", job.data.epochs,
                 "0 where elastic_workers is set: shards change, so none of "
                 "them ends");
  }
  return absl::OkStatus();
}

// Fields that would have no effect on a program of the user.
absl::Status CheckProgram(const JobConfig& job) {
  if (job.model.kind != kExternalModel) return absl::OkStatus();
  if (job.model.variable_type != DType::kFloat32) {
    return Wrong("model.variable_type",
                 std::string(DTypeName(job.model.variable_type)),
                 "absent where model.kind is \"external\": variables have the "
                 "types of the program's arrays");
  }
  if (job.model.row_limit != 0) {
    return Wrong("model.row_limit", job.model.row_limit,
                 "absent where model.kind is \"external\": the program gives "
                 "each of its tables a limit");
  }
  if (job.micro_batches != 1) {
    return Wrong("micro_batches", job.micro_batches,
                 "1 where model.kind is \"external\": the program may split "
                 "its batch itself");
  }
  return absl::OkStatus();
}

absl::Status CheckSizes(const JobConfig& job) {
  LOCKSTEP_RETURN_IF_ERROR(CheckProgram(job));
  if (job.train_steps == 0) {
    return absl::InvalidArgumentError(
        "train_steps is not given, or 0; set the number of steps, as in "
        "train_steps: 1000, or on a command line --set train_steps=1000");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckInt("train_steps", job.train_steps, 1));
  const int64_t least = job.model.kind == kExternalModel ? 0 : 1;
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("batch_size", job.batch_size, least, kMaxBatchSize));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("micro_batches", job.micro_batches, 1, kMaxMicroBatches));
  // Micro-batches of different sizes would have different weights in the mean.
  if (job.pass_batch_size() % job.micro_batches != 0) {
    return Wrong("micro_batches", job.micro_batches,
                 absl::StrCat("a divisor of ", job.pass_batch_size(),
                              ", the examples of a pass"));
  }
  return CheckInt("max_part_bytes", job.max_part_bytes, kMinPartBytes,
                  kMaxPartBytes);
}

absl::Status CheckTimes(const JobConfig& job) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckDuration("heartbeat_interval", job.heartbeat_interval,
                    absl::Milliseconds(1), absl::Hours(1)));
  LOCKSTEP_RETURN_IF_ERROR(CheckDuration(
      "lease", job.lease, absl::Milliseconds(1), absl::Hours(24)));
  // One heartbeat may be lost or late without an end of the lease.
  if (job.lease <= 2 * job.heartbeat_interval) {
    return Wrong("lease", absl::FormatDuration(job.lease),
                 absl::StrCat("above 2 times heartbeat_interval, which is ",
                              absl::FormatDuration(job.heartbeat_interval)));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckDuration(
      "max_wait", job.max_wait, absl::Milliseconds(1), absl::Hours(24 * 365)));
  return CheckDuration("stall_timeout", job.stall_timeout, absl::ZeroDuration(),
                       absl::Hours(24));
}

}  // namespace

bool HasTables(const ModelConfig& model) {
  return model.kind == "logistic_regression" || model.kind == "skip_gram" ||
         model.kind == "wide_and_deep";
}

double DefaultMomentum(OptimizerConfig::Kind kind) {
  return kind == OptimizerConfig::Kind::kRmsProp ||
                 kind == OptimizerConfig::Kind::kSgd
             ? 0
             : 0.9;
}

double DefaultEpsilon(OptimizerConfig::Kind kind) {
  return kind == OptimizerConfig::Kind::kRmsProp ? 1e-10 : 1e-8;
}

double DefaultWeightDecay(OptimizerConfig::Kind kind) {
  return kind == OptimizerConfig::Kind::kAdamW ? 0.01 : 0;
}

bool IsTorchOptimizer(OptimizerConfig::Kind kind) {
  return kind == OptimizerConfig::Kind::kSgd ||
         kind == OptimizerConfig::Kind::kAdamTorch ||
         kind == OptimizerConfig::Kind::kAdamW;
}

std::vector<OptimizerConfig> OptimizersOf(const JobConfig& job) {
  std::vector<OptimizerConfig> optimizers = {job.optimizer};
  // With local steps these are rules of the workers' steps.
  const OptimizerConfig& own =
      job.has_local_steps() ? job.local.optimizer : job.optimizer;
  for (const VariableOptimizer& other : job.variable_optimizers) {
    optimizers.push_back(other.optimizer.value_or(own));
  }
  return optimizers;
}

std::vector<LearningRateConfig> LearningRatesOf(const JobConfig& job) {
  std::vector<LearningRateConfig> rates = {job.learning_rate};
  for (const VariableOptimizer& other : job.variable_optimizers) {
    LearningRateConfig rate = other.schedule.value_or(job.learning_rate);
    rate.base = other.learning_rate.value_or(job.learning_rate.base);
    rates.push_back(std::move(rate));
  }
  for (LearningRateConfig& rate : rates) {
    if (rate.decay_steps == 0) rate.decay_steps = job.train_steps;
  }
  return rates;
}

int64_t AllLocalStepsOf(const JobConfig& job) {
  // The product could overflow: job files may give any number of steps.
  return job.train_steps > kNoLimit / job.local_steps
             ? kNoLimit
             : job.train_steps * job.local_steps;
}

LearningRateConfig LocalLearningRateOf(const JobConfig& job) {
  LearningRateConfig rate = job.local.learning_rate;
  if (rate.decay_steps == 0) rate.decay_steps = AllLocalStepsOf(job);
  return rate;
}

absl::Status ValidateJobConfig(const JobConfig& job) {
  LOCKSTEP_RETURN_IF_ERROR(CheckName(job.name));
  // In messages 0 means the default.
  if (job.seed == 0) return Wrong("seed", job.seed, "1 or more");
  LOCKSTEP_RETURN_IF_ERROR(CheckSync(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckElastic(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckStrategy(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckWork(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckSizes(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckModel(job.model));
  LOCKSTEP_RETURN_IF_ERROR(CheckData(job.model, job.data));
  LOCKSTEP_RETURN_IF_ERROR(CheckTraining(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckLocalSteps(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckCheckpoint(job.checkpoint));
  LOCKSTEP_RETURN_IF_ERROR(CheckSummary(job.summary));
  return CheckTimes(job);
}

}  // namespace lockstep
