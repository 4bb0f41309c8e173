#include "common/job/training_checks.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/job/field_checks.h"
#include "common/job/learning_rate.h"
#include "common/job/local_checks.h"
#include "common/job/rounding_checks.h"
#include "common/text/utf8.h"

namespace lockstep {
namespace {

constexpr absl::string_view kBoundaries = "learning_rate_schedule.boundaries";
constexpr absl::string_view kValues = "learning_rate_schedule.values";

// True for rules that divide by the root of the accumulator: 0 would make the
// first step of an element without a gradient 0 / 0.
bool StartsAboveZero(OptimizerConfig::Kind kind) {
  return kind == OptimizerConfig::Kind::kAdagrad ||
         kind == OptimizerConfig::Kind::kAdagradDa ||
         kind == OptimizerConfig::Kind::kProximalAdagrad;
}

absl::Status CheckAccumulator(const OptimizerConfig& optimizer) {
  constexpr absl::string_view kField = "optimizer.initial_accumulator_value";
  const double value = optimizer.initial_accumulator_value;
  return StartsAboveZero(optimizer.kind) ? CheckPositive(kField, value)
                                         : CheckAtLeastZero(kField, value);
}

absl::Status CheckFtrl(const OptimizerConfig& optimizer) {
  const double power = optimizer.learning_rate_power;
  LOCKSTEP_RETURN_IF_ERROR(CheckReal("optimizer.learning_rate_power", power,
                                     power <= 0,
                                     "a finite number of 0 or less"));
  LOCKSTEP_RETURN_IF_ERROR(CheckAtLeastZero("optimizer.l1", optimizer.l1));
  LOCKSTEP_RETURN_IF_ERROR(CheckAtLeastZero("optimizer.l2", optimizer.l2));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAtLeastZero("optimizer.l2_shrinkage", optimizer.l2_shrinkage));
  return CheckAtLeastZero("optimizer.beta", optimizer.beta);
}

// A match with a variable is checked later, when a worker has described them.
absl::Status CheckPattern(absl::string_view field, const std::string& pattern) {
  if (!pattern.empty() && IsUtf8(pattern)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      field, " must be a shell pattern in UTF-8, such as \"wide/*\""));
}

absl::Status CheckWeightDecay(const OptimizerConfig& optimizer) {
  const double decay = optimizer.weight_decay;
  LOCKSTEP_RETURN_IF_ERROR(CheckAtLeastZero("optimizer.weight_decay", decay));
  if (decay > 0 && !IsTorchOptimizer(optimizer.kind)) {
    return Wrong("optimizer.weight_decay", decay,
                 "0, because optimizer.kind has no weight decay; SGD, "
                 "ADAM_TORCH and ADAMW have");
  }
  const std::vector<std::string>& exempt = optimizer.weight_decay_exempt;
  for (size_t i = 0; i < exempt.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckPattern(Element("optimizer.weight_decay_exempt", i), exempt[i]));
  }
  if (exempt.empty() || decay > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "optimizer.weight_decay_exempt is set, but optimizer.weight_decay is 0; "
      "set both or neither");
}

// Refuses the same settings as torch.optim.SGD.
absl::Status CheckSgd(const OptimizerConfig& optimizer) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckBelowOne("optimizer.dampening", optimizer.dampening));
  const bool sgd = optimizer.kind == OptimizerConfig::Kind::kSgd;
  if (!sgd && optimizer.dampening != 0) {
    return Wrong("optimizer.dampening", optimizer.dampening,
                 "0, because optimizer.kind has no dampening; SGD has");
  }
  if (!sgd || !optimizer.use_nesterov ||
      (optimizer.momentum > 0 && optimizer.dampening == 0)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "optimizer.use_nesterov is true, but optimizer.momentum is ",
      optimizer.momentum, " and optimizer.dampening is ", optimizer.dampening,
      "; SGD needs a momentum above 0 and a dampening of 0 for it"));
}

}  // namespace

absl::Status CheckOptimizer(const OptimizerConfig& optimizer) {
  const int kind = static_cast<int>(optimizer.kind);
  if (kind < 0 || kind > static_cast<int>(
                             OptimizerConfig::Kind::kProximalGradientDescent)) {
    return Wrong(
        "optimizer.kind", kind,
        "GRADIENT_DESCENT, MOMENTUM, ADAM, ADAGRAD, RMSPROP, "
        "ADADELTA, FTRL, LAZY_ADAM, SGD, ADAM_TORCH, ADAMW, ADAGRAD_DA, "
        "PROXIMAL_ADAGRAD or PROXIMAL_GRADIENT_DESCENT");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckBelowOne("optimizer.momentum", optimizer.momentum));
  LOCKSTEP_RETURN_IF_ERROR(CheckBelowOne("optimizer.beta1", optimizer.beta1));
  LOCKSTEP_RETURN_IF_ERROR(CheckBelowOne("optimizer.beta2", optimizer.beta2));
  LOCKSTEP_RETURN_IF_ERROR(CheckBelowOne("optimizer.decay", optimizer.decay));
  LOCKSTEP_RETURN_IF_ERROR(CheckBelowOne("optimizer.rho", optimizer.rho));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckPositive("optimizer.epsilon", optimizer.epsilon));
  LOCKSTEP_RETURN_IF_ERROR(CheckAccumulator(optimizer));
  LOCKSTEP_RETURN_IF_ERROR(CheckWeightDecay(optimizer));
  LOCKSTEP_RETURN_IF_ERROR(CheckSgd(optimizer));
  return CheckFtrl(optimizer);
}

namespace {

absl::Status CheckClipping(const ClippingConfig& clipping, SyncMode mode) {
  const int kind = static_cast<int>(clipping.kind);
  if (kind < 0 ||
      kind > static_cast<int>(ClippingConfig::Kind::kMeanGlobalNorm)) {
    return Wrong("clipping.kind", kind,
                 "GLOBAL_NORM, NORM, VALUE or MEAN_GLOBAL_NORM");
  }
  if (clipping.limits_mean() && mode != SyncMode::kStrict) {
    return absl::InvalidArgumentError(
        "clipping.kind is MEAN_GLOBAL_NORM, which needs one set of gradients "
        "for all variables, but mode is COMPATIBLE; set mode to STRICT, or "
        "clipping.kind to GLOBAL_NORM, which workers apply");
  }
  if (clipping.kind == ClippingConfig::Kind::kNone) {
    return clipping.limit == 0
               ? absl::OkStatus()
               : absl::InvalidArgumentError(
                     "clipping.limit is set, but clipping.kind is not; set "
                     "both or neither");
  }
  return CheckPositive("clipping.limit", clipping.limit);
}

absl::Status CheckPlacement(const PlacementConfig& placement) {
  const int strategy = static_cast<int>(placement.strategy);
  if (strategy >= 0 &&
      strategy <= static_cast<int>(PlacementConfig::Strategy::kNameHash)) {
    return absl::OkStatus();
  }
  return Wrong("placement.strategy", strategy,
               "GREEDY, ROUND_ROBIN or NAME_HASH");
}

absl::Status CheckPartitioner(const PartitionerConfig& partitioner) {
  using Kind = PartitionerConfig::Kind;
  switch (partitioner.kind) {
    case Kind::kMaxPartBytes:
      return absl::OkStatus();
    case Kind::kFixedSize:
      return CheckInt("partitioner.num_shards", partitioner.num_shards, 1);
    case Kind::kAxisSize:
      LOCKSTEP_RETURN_IF_ERROR(CheckInt("partitioner.max_shard_bytes",
                                        partitioner.max_shard_bytes, 1));
      return CheckInt("partitioner.max_shards", partitioner.max_shards, 0);
    case Kind::kMinMax:
      LOCKSTEP_RETURN_IF_ERROR(CheckInt("partitioner.max_partitions",
                                        partitioner.max_partitions, 1));
      return CheckInt("partitioner.min_slice_bytes",
                      partitioner.min_slice_bytes, 1);
  }
  return Wrong("partitioner.kind", static_cast<int>(partitioner.kind),
               "MAX_PART_BYTES, FIXED_SIZE, AXIS_SIZE or MIN_MAX");
}

absl::Status CheckPiecewise(const LearningRateConfig& rate) {
  if (rate.values.size() != rate.boundaries.size() + 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(kValues, " has ", rate.values.size(),
                     " elements, but must have one more than ", kBoundaries,
                     ", which has ", rate.boundaries.size()));
  }
  int64_t least = 0;
  for (size_t i = 0; i < rate.boundaries.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckInt(Element(kBoundaries, i),
                                      rate.boundaries[i], least, kNoLimit - 1));
    // Strictly ascending: an equal boundary would make a value unreachable.
    least = rate.boundaries[i] + 1;
  }
  for (size_t i = 0; i < rate.values.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckPositive(Element(kValues, i), rate.values[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckScheduleKind(const LearningRateConfig& rate) {
  using Schedule = LearningRateConfig::Schedule;
  switch (rate.schedule) {
    case Schedule::kConstant:
    case Schedule::kExponentialDecay:
    case Schedule::kCosineDecay:
    case Schedule::kLinear:
    case Schedule::kCosine:
      return absl::OkStatus();
    case Schedule::kPiecewiseConstant:
      return CheckPiecewise(rate);
  }
  return Wrong("learning_rate_schedule.kind", static_cast<int>(rate.schedule),
               "CONSTANT, EXPONENTIAL_DECAY, PIECEWISE_CONSTANT, "
               "COSINE_DECAY, LINEAR_DECAY or COSINE");
}

// Checks the fields of the schedules with a minimum, which other schedules must
// not have. `rate` must have its decay_steps filled in.
absl::Status CheckMinimum(const LearningRateConfig& rate) {
  using Schedule = LearningRateConfig::Schedule;
  const bool decays =
      rate.schedule == Schedule::kLinear || rate.schedule == Schedule::kCosine;
  if (!decays) {
    if (rate.minimum == 0) return absl::OkStatus();
    return Wrong("learning_rate_schedule.minimum", rate.minimum,
                 "absent: kind is not LINEAR_DECAY or COSINE");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckReal("learning_rate_schedule.minimum", rate.minimum,
                rate.minimum >= 0 && rate.minimum <= rate.base,
                absl::StrCat("from 0 to the learning rate, ", rate.base)));
  // Otherwise the decay would have no step.
  if (rate.warmup_steps < rate.decay_steps) return absl::OkStatus();
  return Wrong("learning_rate_schedule.warmup_steps", rate.warmup_steps,
               absl::StrCat("below decay_steps, which is ", rate.decay_steps));
}

absl::Status CheckLearningRate(const LearningRateConfig& rate) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPositive("learning_rate", rate.base));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("learning_rate_schedule.decay_steps", rate.decay_steps, 0));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckPositive("learning_rate_schedule.decay_rate", rate.decay_rate));
  LOCKSTEP_RETURN_IF_ERROR(CheckReal("learning_rate_schedule.alpha", rate.alpha,
                                     rate.alpha >= 0 && rate.alpha <= 1,
                                     "from 0 to 1"));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("learning_rate_schedule.warmup_steps", rate.warmup_steps, 0));
  LOCKSTEP_RETURN_IF_ERROR(CheckScheduleKind(rate));
  return CheckMinimum(rate);
}

// Ftrl divides by the rate, in the type of the variables. `optimizer` and
// `schedule` are the fields of the two.
absl::Status CheckRateOfFtrl(absl::string_view optimizer,
                             const OptimizerConfig& rule,
                             absl::string_view schedule,
                             const LearningRateConfig& rate, int64_t steps,
                             DType type) {
  if (rule.kind != OptimizerConfig::Kind::kFtrl) return absl::OkStatus();
  if (rate.warmup_steps > 0) {
    return Wrong(absl::StrCat(schedule, ".warmup_steps"), rate.warmup_steps,
                 absl::StrCat("0: the warm-up begins at a learning rate of 0, "
                              "and ",
                              optimizer, ".kind is FTRL, which divides by it"));
  }
  const std::optional<StepRate> zero = ZeroRateOfFtrl(rule, rate, steps, type);
  if (!zero.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      schedule, " makes the learning rate of step ", zero->step, " ",
      zero->rate,
      zero->rate > 0 ? absl::StrCat(", which is 0 in updates of ",
                                    std::string(DTypeName(type)), " variables")
                     : "",
      ", but ", optimizer,
      ".kind is FTRL, which divides by it; set a larger learning_rate, or let "
      "it end above 0, by minimum or alpha where its kind has them, or let it "
      "last longer, by decay_steps, or train fewer steps"));
}

absl::Status CheckRatesOfFtrl(const JobConfig& job) {
  const std::vector<OptimizerConfig> optimizers = OptimizersOf(job);
  const std::vector<LearningRateConfig> rates = LearningRatesOf(job);
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRateOfFtrl("optimizer", optimizers[0], "learning_rate_schedule",
                      rates[0], job.train_steps, job.model.variable_type));
  for (size_t i = 0; i < job.variable_optimizers.size(); ++i) {
    const std::string element = Element("variable_optimizers", i);
    const bool own = job.variable_optimizers[i].schedule.has_value();
    LOCKSTEP_RETURN_IF_ERROR(CheckRateOfFtrl(
        absl::StrCat(element, ".optimizer"), optimizers[i + 1],
        absl::StrCat(own ? element + "." : "", "learning_rate_schedule"),
        rates[i + 1], job.train_steps, job.model.variable_type));
  }
  return absl::OkStatus();
}

// `rate` is that of the variables, the job's schedule included.
absl::Status CheckRateCounts(const VariableOptimizer& other,
                             const LearningRateConfig& rate) {
  if (!other.learning_rate.has_value()) return absl::OkStatus();
  if (!other.schedule.has_value() && rate.minimum > 0 &&
      *other.learning_rate < rate.minimum) {
    return Wrong("learning_rate", *other.learning_rate,
                 absl::StrCat("at least ", rate.minimum,
                              ", the minimum of the job's "
                              "learning_rate_schedule; or give it a "
                              "learning_rate_schedule of its own"));
  }
  if (rate.schedule != LearningRateConfig::Schedule::kPiecewiseConstant) {
    return absl::OkStatus();
  }
  return Wrong(
      "learning_rate", *other.learning_rate,
      absl::StrCat("absent: the kind of ",
                   other.schedule.has_value() ? "its" : "the job's",
                   " learning_rate_schedule is PIECEWISE_CONSTANT, "
                   "whose values are the rates; give it a "
                   "learning_rate_schedule of its own with its rates"));
}

absl::Status CheckVariableOptimizers(const JobConfig& job) {
  const size_t count = job.variable_optimizers.size();
  // The job's own optimizer takes one of the places.
  if (count >= kMaxOptimizers) {
    return Wrong("the number of variable_optimizers", count,
                 absl::StrCat("at most ", kMaxOptimizers - 1));
  }
  const std::vector<LearningRateConfig> rates = LearningRatesOf(job);
  for (size_t i = 0; i < count; ++i) {
    const VariableOptimizer& other = job.variable_optimizers[i];
    const std::string element = Element("variable_optimizers", i);
    LOCKSTEP_RETURN_IF_ERROR(
        CheckPattern(element + ".variables", other.variables));
    if (other.optimizer.has_value()) {
      LOCKSTEP_RETURN_IF_ERROR(
          Within(element, CheckOptimizer(*other.optimizer)));
    }
    // First: a schedule of the job's has no field of this element to be named.
    LOCKSTEP_RETURN_IF_ERROR(
        Within(element, CheckRateCounts(other, rates[i + 1])));
    LOCKSTEP_RETURN_IF_ERROR(Within(element, CheckLearningRate(rates[i + 1])));
  }
  return absl::OkStatus();
}

absl::Status CheckMovingAverage(const MovingAverageConfig& average) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckBelowOne("moving_average.decay", average.decay));
  for (size_t i = 0; i < average.variables.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPattern(
        Element("moving_average.variables", i), average.variables[i]));
  }
  if (average.decay > 0 || average.variables.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "moving_average.decay is missing, but moving_average.variables are set; "
      "set both or neither");
}

absl::Status CheckConstraint(const VariableConstraint& constraint) {
  LOCKSTEP_RETURN_IF_ERROR(CheckPattern("variables", constraint.variables));
  switch (constraint.kind) {
    case VariableConstraint::Kind::kNonNegative:
      if (constraint.max_norm == 0) return absl::OkStatus();
      return Wrong("max_norm", constraint.max_norm,
                   "absent: kind is not "
                   "MAX_NORM");
    case VariableConstraint::Kind::kMaxNorm:
      return CheckPositive("max_norm", constraint.max_norm);
    case VariableConstraint::Kind::kUnspecified:
      break;
  }
  return Wrong("kind", static_cast<int>(constraint.kind),
               "NON_NEGATIVE or MAX_NORM");
}

absl::Status CheckUntrained(const JobConfig& job) {
  for (size_t i = 0; i < job.untrained.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckPattern(Element("untrained", i), job.untrained[i]));
  }
  return absl::OkStatus();
}

absl::Status CheckConstraints(const JobConfig& job) {
  for (size_t i = 0; i < job.constraints.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        Within(Element("constraints", i), CheckConstraint(job.constraints[i])));
  }
  return absl::OkStatus();
}

absl::Status HasNoLocalSteps(const JobConfig& job, absl::string_view field,
                             const absl::AlphaNum& value,
                             absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", value,
                                                 ", but local_steps is ",
                                                 job.local_steps, ": ", why));
}

absl::Status CheckOthersOfLocalSteps(const JobConfig& job) {
  if (job.mode != SyncMode::kStrict) {
    return HasNoLocalSteps(job, "mode", "COMPATIBLE",
                           "it reproduces TensorFlow, which has none; set mode "
                           "to STRICT, or leave local_steps out");
  }
  if (job.shares_work()) {
    return HasNoLocalSteps(job, "work", "SHARED",
                           "a step's micro-batches are of the same values; "
                           "leave one of the two out");
  }
  if (job.model.kind == kExternalModel) {
    return HasNoLocalSteps(
        job, "model.kind", "external",
        "a program of yours makes its own steps: leave local_steps out, and "
        "push the values before a pass minus those after it");
  }
  // Models with tables, and no others, read such files.
  if (!job.data.train_files.empty()) {
    return HasNoLocalSteps(job, "data.train_files", job.data.train_files[0],
                           "workers hold only some rows of the tables of such "
                           "a model; leave local_steps and local out");
  }
  if (job.clipping.limits_mean()) {
    return HasNoLocalSteps(job, "clipping.kind", "MEAN_GLOBAL_NORM",
                           "servers get changes of values; set "
                           "clipping.kind to GLOBAL_NORM, which limits the "
                           "gradients of local steps");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLocalSteps(const JobConfig& job) {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckInt("local_steps", job.local_steps, 1, kMaxLocalSteps));
  const bool has_rule =
      job.local.optimizer.kind != OptimizerConfig::Kind::kGradientDescent;
  // A rule without local steps is a mistake, reported below.
  if (!job.has_local_steps() && !has_rule) return absl::OkStatus();
  if (job.local.learning_rate.base == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "local.learning_rate is not set, but ",
        has_rule ? "local.optimizer is"
                 : absl::StrCat("local_steps is ", job.local_steps),
        ": give the rate of the workers' own steps, as learning_rate would be "
        "without them, or leave the other field out"));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckOthersOfLocalSteps(job));
  LOCKSTEP_RETURN_IF_ERROR(
      Within("local", CheckOptimizer(job.local.optimizer)));
  LOCKSTEP_RETURN_IF_ERROR(CheckRulesOfLocalSteps(job));
  const LearningRateConfig rate = LocalLearningRateOf(job);
  LOCKSTEP_RETURN_IF_ERROR(Within("local", CheckLearningRate(rate)));
  return Within("local", CheckRounding(job.local.optimizer, rate,
                                       job.model.variable_type));
}

absl::Status CheckTraining(const JobConfig& job) {
  LOCKSTEP_RETURN_IF_ERROR(CheckOptimizer(job.optimizer));
  LOCKSTEP_RETURN_IF_ERROR(CheckLearningRate(LearningRatesOf(job)[0]));
  LOCKSTEP_RETURN_IF_ERROR(CheckVariableOptimizers(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckRatesOfFtrl(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckMovingAverage(job.moving_average));
  LOCKSTEP_RETURN_IF_ERROR(CheckConstraints(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckUntrained(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckClipping(job.clipping, job.mode));
  LOCKSTEP_RETURN_IF_ERROR(CheckRoundings(job));
  LOCKSTEP_RETURN_IF_ERROR(CheckPlacement(job.placement));
  LOCKSTEP_RETURN_IF_ERROR(CheckPartitioner(job.partitioner));
  return absl::OkStatus();
}

}  // namespace lockstep
