#ifndef LOCKSTEP_COMMON_JOB_JOB_CONFIG_H_
#define LOCKSTEP_COMMON_JOB_JOB_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/numeric/dtype.h"
#include "common/numeric/sum_order.h"

namespace lockstep {

// The choice of gradients and the order of their sum; the README describes the
// difference.
enum class SyncMode : int {
  kStrict = 0,      // one set of workers for all variables, summed in order
  kCompatible = 1,  // TensorFlow's SyncReplicasOptimizer: order of arrival
};

// ModelConfig::kind of a job whose workers are programs of the user: they
// describe their variables and read their own data.
inline constexpr char kExternalModel[] = "external";

// The model that workers compute. `kind` is a name in the registry of
// worker/models, or one of the kinds of worker/tables.
struct ModelConfig {
  std::string kind = "softmax";       // or kExternalModel
  std::vector<int64_t> hidden_units;  // widths of the fully connected layers
  std::vector<int64_t> conv_filters;  // cnn: output channels of each conv
                                      // layer; resnet: of each stage
  int64_t kernel_size = 3;            // cnn: odd, in pixels
  int64_t layers = 0;  // transformer: blocks; resnet: blocks per stage
  int64_t heads = 0;   // transformer: attention heads; must divide `width`
  int64_t width = 0;   // transformer: elements of each position's vector
  double dropout = 0;  // transformer: in [0, 1)
  // Type of all variables on servers; kFloat64 is not allowed.
  DType variable_type = DType::kFloat32;

  // Models with tables; see RowCut.
  int64_t features = 0;       // logistic_regression, wide_and_deep: rows of the
                              // table of weights
  int64_t embedding_dim = 0;  // skip_gram, wide_and_deep: width of a row
  int64_t window = 5;         // skip_gram: words on either side
  int64_t negatives = 5;      // skip_gram: samples per pair
  double subsample = 1e-3;    // skip_gram: threshold of frequency above which
                              // words are left out at random; 0: never
  bool cut_by_div = false;    // each part has consecutive rows
  // wide_and_deep: names of features of examples.
  std::vector<std::string> categorical = {};
  std::vector<std::string> crosses = {};  // "a*b", both of `categorical`
  std::vector<std::string> numeric = {};
  std::string label = "label";
  int64_t embedding_rows = 0;  // wide_and_deep: rows of each embedding
  int64_t row_limit = 0;       // > 0: tables grow, up to this many rows

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// True for the kinds of worker/tables. False for a user's program, also if it
// has tables: the job does not describe them.
bool HasTables(const ModelConfig& model);

// The lowest precision of matrix products. A device without anything faster
// than float32, such as a CPU, uses float32.
enum class ComputePrecision : int {
  kFloat32 = 0,
  kTf32 = 1,      // operands rounded to 11 significant bits, sums in float32
  kBfloat16 = 2,  // operands rounded to 8 significant bits
};

// Source of the examples: pairs of files with examples and labels, each an IDX
// or a NumPy file, gzipped or not; or plain text; or the files of a model with
// tables.
struct DataConfig {
  std::string train_images;
  std::string train_labels;
  std::string test_images;  // empty: nothing is scored
  std::string test_labels;
  int64_t epochs = 0;   // 0: repeat for ever; n: end of input after n epochs
  int64_t classes = 0;  // pictures; 0: as many as in the training set

  // Files of models with tables, instead of images and labels.
  std::vector<std::string> train_files = {};
  std::vector<std::string> test_files = {};  // none: nothing is scored
  int64_t index_base = 1;       // LIBSVM: number of the first feature
  int64_t min_count = 5;        // skip_gram: rarer words are left out
  std::string train_text;       // instead of pictures
  std::string test_text;        // empty: nothing is scored
  int64_t sequence_length = 0;  // text: bytes of each example, > 0

  bool has_test_set() const {
    return !test_images.empty() || !test_files.empty() || !test_text.empty();
  }

  friend bool operator==(const DataConfig&, const DataConfig&) = default;
};

// The update rule that servers apply, with the defaults of TensorFlow or, for
// kSgd and later kinds, PyTorch.
struct OptimizerConfig {
  enum class Kind : int {
    kGradientDescent = 0,
    kMomentum = 1,
    kAdam = 2,
    kAdagrad = 3,
    kRmsProp = 4,
    kAdadelta = 5,
    kFtrl = 6,
    kLazyAdam = 7,  // Adam that leaves rows without a gradient alone
    kSgd = 8,
    kAdamTorch = 9,  // epsilon after the bias correction
    kAdamW = 10,     // decoupled weight decay
    kAdagradDa = 11,
    kProximalAdagrad = 12,
    kProximalGradientDescent = 13,
  };
  Kind kind = Kind::kGradientDescent;
  double momentum = 0.9;      // Momentum; RMSProp, SGD (default 0): in [0, 1)
  bool use_nesterov = false;  // Momentum, SGD
  double beta1 = 0.9;         // all Adams, in [0, 1)
  double beta2 = 0.999;       // all Adams, in [0, 1)
  double epsilon = 1e-8;      // Adam, Adadelta, RMSProp (default 1e-10): > 0
  double decay = 0.9;         // RMSProp, in [0, 1)
  bool centered = false;      // RMSProp
  double rho = 0.95;          // Adadelta, in [0, 1)
  double initial_accumulator_value = 0.1;  // Adagrads: > 0; Ftrl: >= 0
  double learning_rate_power = -0.5;       // Ftrl, <= 0
  double l1 = 0;            // Ftrl, AdagradDa, proximal rules: >= 0
  double l2 = 0;            // the same
  double l2_shrinkage = 0;  // Ftrl, >= 0
  double beta = 0;          // Ftrl, >= 0
  double dampening = 0;     // SGD, in [0, 1)
  double weight_decay = 0;  // SGD, AdamTorch, AdamW (default 0.01): >= 0
  // Patterns of variables without weight decay.
  std::vector<std::string> weight_decay_exempt = {};
};

// The defaults of momentum, epsilon and weight_decay for a kind.
double DefaultMomentum(OptimizerConfig::Kind kind);
double DefaultEpsilon(OptimizerConfig::Kind kind);
double DefaultWeightDecay(OptimizerConfig::Kind kind);

// True if the rule is PyTorch's; only these rules know weight decay.
bool IsTorchOptimizer(OptimizerConfig::Kind kind);

// Limits gradients on each worker, before they are sent; kMeanGlobalNorm: their
// mean, on the servers.
struct ClippingConfig {
  enum class Kind : int {
    kNone = 0,
    kGlobalNorm = 1,
    kNorm = 2,
    kValue = 3,
    kMeanGlobalNorm = 4,  // strict mode
  };
  Kind kind = Kind::kNone;
  double limit = 0;  // > 0 unless kNone

  bool limits_mean() const { return kind == Kind::kMeanGlobalNorm; }
};

// The rule that assigns parts to servers.
struct PlacementConfig {
  enum class Strategy : int { kGreedy = 0, kRoundRobin = 1, kNameHash = 2 };
  Strategy strategy = Strategy::kGreedy;
  uint64_t seed = 0;  // kNameHash
};

// The rule that cuts variables into parts: along their first axis, except
// kMaxPartBytes, which cuts anywhere.
struct PartitionerConfig {
  enum class Kind : int {
    kMaxPartBytes = 0,
    kFixedSize = 1,
    kAxisSize = 2,
    kMinMax = 3,
  };
  Kind kind = Kind::kMaxPartBytes;
  int64_t num_shards = 0;             // kFixedSize, > 0
  int64_t max_shard_bytes = 0;        // kAxisSize, > 0
  int64_t max_shards = 0;             // kAxisSize; 0: no limit
  int64_t max_partitions = 0;         // kMinMax, > 0
  int64_t min_slice_bytes = 1 << 18;  // kMinMax, > 0
};

// The learning rate as a function of the global step. Warm-up multiplies the
// schedule's rate by step / warmup_steps while step < warmup_steps.
struct LearningRateConfig {
  enum class Schedule : int {
    kConstant = 0,
    kExponentialDecay = 1,   // base * decay_rate ^ (step / decay_steps)
    kPiecewiseConstant = 2,  // values[i] where i = boundaries below step
    kCosineDecay = 3,        // base to alpha * base over decay_steps
    kLinear = 4,             // base to minimum, from the end of the warm-up
    kCosine = 5,             // likewise, along half a cosine
  };
  double base = 0.01;  // > 0
  Schedule schedule = Schedule::kConstant;
  int64_t decay_steps = 0;  // 0: train_steps, as LearningRatesOf() fills in
  double decay_rate = 1;
  bool staircase = false;                // exponential: whole periods only
  std::vector<int64_t> boundaries = {};  // piecewise: ascending steps
  std::vector<double> values = {};       // piecewise: one more than boundaries
  double alpha = 0;  // kCosineDecay: floor, as a fraction of base
  int64_t warmup_steps = 0;
  double minimum = 0;  // kLinear, kCosine: [0, base]
};

// An update rule for the variables whose names match a pattern of
// common/job/variable_settings.h. Absent fields are as in the job, see
// OptimizersOf() and LearningRatesOf().
struct VariableOptimizer {
  std::string variables;
  std::optional<OptimizerConfig> optimizer = {};
  std::optional<double> learning_rate = {};
  std::optional<LearningRateConfig> schedule = {};  // its `base` is not used
};

// The rule of the steps that workers make by themselves.
struct LocalTraining {
  OptimizerConfig optimizer = {};
  // `base` 0: not given. Schedules count local steps.
  LearningRateConfig learning_rate = {.base = 0};
};

// Moving averages of variables, kept by the servers.
struct MovingAverageConfig {
  double decay = 0;                    // in (0, 1); 0: no averages
  bool count_steps = false;            // at most (1 + step) / (10 + step)
  std::vector<std::string> variables;  // patterns; none: all variables
  bool evaluate = true;                // the evaluator scores averages
};

// Projects a variable onto a set of values after each update.
struct VariableConstraint {
  enum class Kind : int {
    kUnspecified = 0,
    kNonNegative = 1,
    kMaxNorm = 2,  // norm of each row
  };
  std::string variables;  // a pattern
  Kind kind = Kind::kUnspecified;
  double max_norm = 0;  // kMaxNorm, > 0
};

// Servers keep an optimizer and its scalars for the job as a whole, in records
// of fixed size, hence the limit.
inline constexpr size_t kMaxOptimizers = 8;

// The times at which the chief writes checkpoints. Steps and seconds may both
// be set; the end of training always writes one.
struct CheckpointConfig {
  std::string directory;                        // empty: no checkpoints
  int64_t every_steps = 0;                      // 0: not by steps
  absl::Duration every = absl::ZeroDuration();  // zero: not by time
  int64_t keep = 5;                             // the newest n stay, >= 1
  std::string initial_values;  // file of first values; empty: none
};

// Curves for TensorBoard.
struct SummaryConfig {
  std::string directory;  // empty: none
  absl::Duration every = absl::Seconds(5);
};

// The number that stays when workers join or leave an elastic job: the backups,
// as long as a step takes at least one gradient; or the gradients, as long as
// there are that many workers.
enum class ElasticPolicy { kFixedBackups, kFixedReplicasToAggregate };

// The place of variables, and the devices that compute a step.
enum class StrategyKind : int {
  kParameterServer = 0,  // on servers
  kMirrored = 1,         // one worker with several replicas
  kOneDevice = 2,        // one worker with one replica
  // A copy of all on the server beside each worker.
  kMultiWorkerMirrored = 3,
};

// How the gradients of workers are added up.
struct CommunicationConfig {
  SumOrder order = SumOrder::kRank;
  // kRing: bytes after which a ring over several variables ends; 0: never; -1:
  // each variable has a ring of its own.
  int64_t bytes_per_pack = -1;
};

// The distribution of a step's computation.
struct StrategyConfig {
  StrategyKind kind = StrategyKind::kParameterServer;
  // Copies of the model that a worker computes at the same time, in [1, 64]; 0:
  // as ReplicasPerWorker() returns it.
  int replicas_per_worker = 0;
  // In place of the number: the device of each replica, "cpu:N" or "cuda:N".
  std::vector<std::string> devices = {};
  CommunicationConfig communication = {};
};

// The division of a step's gradients among workers.
enum class Work {
  kOwnBatches,  // each worker has batches of its own
  kShared       // workers take numbered micro-batches one after the other
};

// JobConfig is the complete description of a job. The chief reads it; all other
// processes receive it from the chief when they register.
//
// Units: lengths count bytes, steps count global steps.
struct JobConfig {
  std::string name = "job";  // letters, digits, '-', '_', '.'
  uint64_t seed = 1;
  SyncMode mode = SyncMode::kStrict;
  int replicas_to_aggregate = 0;  // 0: as many as the cluster has workers
  // The chief sets the number while the job runs. The number that a step begins
  // with, above, is then total_num_replicas.
  bool tune_backups = false;
  int total_num_replicas = 0;  // 0: as many as the cluster has workers
  int initial_tokens = -1;     // compatible mode; -1: TensorFlow's default
  int64_t train_steps = 0;     // > 0; training ends at this global step
  // Examples per replica and pass, of shared steps per step: > 0; >= 0 for
  // programs of the user.
  int64_t batch_size = 0;
  int64_t max_part_bytes = 1 << 20;
  bool refuse_non_finite = true;  // strict mode: NaN and infinities
  // Strict mode: workers may join and leave while the job runs.
  bool elastic_workers = false;
  ElasticPolicy elastic_policy = ElasticPolicy::kFixedBackups;
  StrategyConfig strategy;
  Work work = Work::kOwnBatches;
  int micro_batches_per_step = 0;  // kShared: [1, 4096], else 0
  // kShared: a power of two up to micro_batches_per_step, or 0, for the chief
  // to choose; else 0.
  int micro_batches_per_push = 0;
  int64_t local_steps = 1;   // of a pass, [1, 65536]
  LocalTraining local = {};  // the rule of local steps
  // Encoding of gradients on the wire; kVariable except in strict mode.
  GradientType gradient_wire_type = GradientType::kVariable;

  ComputePrecision compute_precision = ComputePrecision::kFloat32;
  int64_t micro_batches = 1;  // a pass splits its batch into so many, [1, 2^20]

  ModelConfig model;
  DataConfig data;
  OptimizerConfig optimizer;
  LearningRateConfig learning_rate;
  std::vector<VariableOptimizer> variable_optimizers;  // fewer than
                                                       // kMaxOptimizers
  MovingAverageConfig moving_average;
  std::vector<VariableConstraint> constraints;
  // Patterns of variables that keep their values.
  std::vector<std::string> untrained;
  ClippingConfig clipping;
  PlacementConfig placement;
  PartitionerConfig partitioner;
  CheckpointConfig checkpoint;
  SummaryConfig summary;

  absl::Duration heartbeat_interval = absl::Milliseconds(500);
  absl::Duration lease = absl::Seconds(10);     // > 2 heartbeat intervals
  absl::Duration max_wait = absl::Minutes(10);  // then the job fails
  // Strict mode with backups: a member of a step's set that delivers no
  // gradient for this long, or whose connection ends, is replaced. Zero: 2 s,
  // or the lease if that is less.
  absl::Duration stall_timeout = absl::ZeroDuration();

  bool shares_work() const { return work == Work::kShared; }
  // True if the job goes on without any mirror except the first, which commits
  // the steps.
  bool has_elastic_mirrors() const {
    return elastic_workers &&
           strategy.kind == StrategyKind::kMultiWorkerMirrored;
  }
  // True also for 1 local step with a rate of its own: the worker then sends a
  // change of values and not a gradient.
  bool has_local_steps() const {
    return local_steps > 1 || local.learning_rate.base != 0;
  }
  // Examples of a replica's pass.
  int64_t pass_batch_size() const {
    return shares_work() && micro_batches_per_step > 0
               ? batch_size / micro_batches_per_step
               : batch_size;
  }
};

// Returns all optimizers of a job, the job's own first.
std::vector<OptimizerConfig> OptimizersOf(const JobConfig& job);

// Returns the learning rates of OptimizersOf(), in its order, with decay_steps
// filled in.
std::vector<LearningRateConfig> LearningRatesOf(const JobConfig& job);

// Returns the local steps of a whole job: train_steps * local_steps, or the
// largest number if the product is beyond it.
int64_t AllLocalStepsOf(const JobConfig& job);
// Returns the learning rate of local steps, with decay_steps filled in, in
// local steps.
LearningRateConfig LocalLearningRateOf(const JobConfig& job);

inline constexpr int64_t kMaxLocalSteps = 65536;

// Checks every field against its range.
//
//   kInvalidArgument  names the field as the job file spells it, the value and
//                     the allowed range
absl::Status ValidateJobConfig(const JobConfig& job);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_JOB_CONFIG_H_
