#include "common/job/codec/training_config_codec.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace lockstep {
namespace {

// One value of an enumeration, in JobConfig and in messages.
template <typename Value, typename Proto>
struct Named {
  Value value;
  Proto proto;
};

using Kind = OptimizerConfig::Kind;
constexpr Named<Kind, v1::OptimizerConfig::Kind> kOptimizers[] = {
    {Kind::kGradientDescent, v1::OptimizerConfig::GRADIENT_DESCENT},
    {Kind::kMomentum, v1::OptimizerConfig::MOMENTUM},
    {Kind::kAdam, v1::OptimizerConfig::ADAM},
    {Kind::kAdagrad, v1::OptimizerConfig::ADAGRAD},
    {Kind::kRmsProp, v1::OptimizerConfig::RMSPROP},
    {Kind::kAdadelta, v1::OptimizerConfig::ADADELTA},
    {Kind::kFtrl, v1::OptimizerConfig::FTRL},
    {Kind::kLazyAdam, v1::OptimizerConfig::LAZY_ADAM},
    {Kind::kSgd, v1::OptimizerConfig::SGD},
    {Kind::kAdamTorch, v1::OptimizerConfig::ADAM_TORCH},
    {Kind::kAdamW, v1::OptimizerConfig::ADAMW},
    {Kind::kAdagradDa, v1::OptimizerConfig::ADAGRAD_DA},
    {Kind::kProximalAdagrad, v1::OptimizerConfig::PROXIMAL_ADAGRAD},
    {Kind::kProximalGradientDescent,
     v1::OptimizerConfig::PROXIMAL_GRADIENT_DESCENT},
};

using Schedule = LearningRateConfig::Schedule;
using ProtoSchedule = v1::LearningRateSchedule;
constexpr Named<Schedule, ProtoSchedule::Kind> kSchedules[] = {
    {Schedule::kConstant, ProtoSchedule::CONSTANT},
    {Schedule::kExponentialDecay, ProtoSchedule::EXPONENTIAL_DECAY},
    {Schedule::kPiecewiseConstant, ProtoSchedule::PIECEWISE_CONSTANT},
    {Schedule::kCosineDecay, ProtoSchedule::COSINE_DECAY},
    {Schedule::kLinear, ProtoSchedule::LINEAR_DECAY},
    {Schedule::kCosine, ProtoSchedule::COSINE},
};

using Clipping = ClippingConfig::Kind;
constexpr Named<Clipping, v1::ClippingConfig::Kind> kClippings[] = {
    {Clipping::kNone, v1::ClippingConfig::KIND_UNSPECIFIED},
    {Clipping::kGlobalNorm, v1::ClippingConfig::GLOBAL_NORM},
    {Clipping::kNorm, v1::ClippingConfig::NORM},
    {Clipping::kValue, v1::ClippingConfig::VALUE},
    {Clipping::kMeanGlobalNorm, v1::ClippingConfig::MEAN_GLOBAL_NORM},
};

using Strategy = PlacementConfig::Strategy;
constexpr Named<Strategy, v1::PlacementConfig::Strategy> kStrategies[] = {
    {Strategy::kGreedy, v1::PlacementConfig::GREEDY},
    {Strategy::kRoundRobin, v1::PlacementConfig::ROUND_ROBIN},
    {Strategy::kNameHash, v1::PlacementConfig::NAME_HASH},
};

using Partitioner = PartitionerConfig::Kind;
constexpr Named<Partitioner, v1::PartitionerConfig::Kind> kPartitioners[] = {
    {Partitioner::kMaxPartBytes, v1::PartitionerConfig::MAX_PART_BYTES},
    {Partitioner::kFixedSize, v1::PartitionerConfig::FIXED_SIZE},
    {Partitioner::kAxisSize, v1::PartitionerConfig::AXIS_SIZE},
    {Partitioner::kMinMax, v1::PartitionerConfig::MIN_MAX},
};

// Returns the first of `names` for an unknown value, which is a caller's bug.
template <typename Value, typename Proto, size_t kCount>
Proto ProtoOf(const Named<Value, Proto> (&names)[kCount], Value value) {
  for (const auto& named : names) {
    if (named.value == value) return named.proto;
  }
  return names[0].proto;
}

// 0 means the first of `names`, the default.
template <typename Value, typename Proto, size_t kCount>
absl::StatusOr<Value> ValueOf(absl::string_view field,
                              const Named<Value, Proto> (&names)[kCount],
                              Proto proto) {
  if (static_cast<int>(proto) == 0) return names[0].value;
  for (const auto& named : names) {
    if (named.proto == proto) return named.value;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is the number ", static_cast<int>(proto),
                   ", which has no name in this version"));
}

}  // namespace

v1::OptimizerConfig ToProto(const OptimizerConfig& optimizer) {
  v1::OptimizerConfig proto;
  proto.set_kind(ProtoOf(kOptimizers, optimizer.kind));
  // Left out if it is the kind's default: an override of optimizer.kind then
  // takes the default of the new kind.
  if (optimizer.momentum != DefaultMomentum(optimizer.kind)) {
    proto.set_momentum(optimizer.momentum);
  }
  proto.set_use_nesterov(optimizer.use_nesterov);
  proto.set_beta1(optimizer.beta1);
  proto.set_beta2(optimizer.beta2);
  if (optimizer.epsilon != DefaultEpsilon(optimizer.kind)) {
    proto.set_epsilon(optimizer.epsilon);
  }
  proto.set_decay(optimizer.decay);
  proto.set_centered(optimizer.centered);
  proto.set_rho(optimizer.rho);
  proto.set_initial_accumulator_value(optimizer.initial_accumulator_value);
  proto.set_learning_rate_power(optimizer.learning_rate_power);
  proto.set_l1(optimizer.l1);
  proto.set_l2(optimizer.l2);
  proto.set_l2_shrinkage(optimizer.l2_shrinkage);
  proto.set_beta(optimizer.beta);
  proto.set_dampening(optimizer.dampening);
  if (optimizer.weight_decay != DefaultWeightDecay(optimizer.kind)) {
    proto.set_weight_decay(optimizer.weight_decay);
  }
  proto.mutable_weight_decay_exempt()->Add(
      optimizer.weight_decay_exempt.begin(),
      optimizer.weight_decay_exempt.end());
  return proto;
}

absl::StatusOr<OptimizerConfig> FromProto(const v1::OptimizerConfig& proto) {
  OptimizerConfig optimizer;
  LOCKSTEP_ASSIGN_OR_RETURN(
      optimizer.kind, ValueOf("optimizer.kind", kOptimizers, proto.kind()));
  optimizer.momentum =
      proto.has_momentum() ? proto.momentum() : DefaultMomentum(optimizer.kind);
  optimizer.epsilon =
      proto.has_epsilon() ? proto.epsilon() : DefaultEpsilon(optimizer.kind);
  optimizer.use_nesterov = proto.use_nesterov();
  if (proto.has_beta1()) optimizer.beta1 = proto.beta1();
  if (proto.has_beta2()) optimizer.beta2 = proto.beta2();
  if (proto.has_decay()) optimizer.decay = proto.decay();
  optimizer.centered = proto.centered();
  if (proto.has_rho()) optimizer.rho = proto.rho();
  if (proto.has_initial_accumulator_value()) {
    optimizer.initial_accumulator_value = proto.initial_accumulator_value();
  }
  if (proto.has_learning_rate_power()) {
    optimizer.learning_rate_power = proto.learning_rate_power();
  }
  optimizer.l1 = proto.l1();
  optimizer.l2 = proto.l2();
  optimizer.l2_shrinkage = proto.l2_shrinkage();
  optimizer.beta = proto.beta();
  optimizer.dampening = proto.dampening();
  optimizer.weight_decay = proto.has_weight_decay()
                               ? proto.weight_decay()
                               : DefaultWeightDecay(optimizer.kind);
  optimizer.weight_decay_exempt.assign(proto.weight_decay_exempt().begin(),
                                       proto.weight_decay_exempt().end());
  return optimizer;
}

v1::LearningRateSchedule ToProto(const LearningRateConfig& rate) {
  v1::LearningRateSchedule proto;
  proto.set_kind(ProtoOf(kSchedules, rate.schedule));
  proto.set_decay_steps(rate.decay_steps);
  proto.set_decay_rate(rate.decay_rate);
  proto.set_staircase(rate.staircase);
  proto.mutable_boundaries()->Add(rate.boundaries.begin(),
                                  rate.boundaries.end());
  proto.mutable_values()->Add(rate.values.begin(), rate.values.end());
  proto.set_alpha(rate.alpha);
  proto.set_warmup_steps(rate.warmup_steps);
  proto.set_minimum(rate.minimum);
  return proto;
}

// A forgotten decay_rate must stay 0, which validation refuses for a decay,
// instead of becoming a decay by nothing.
absl::Status ReadSchedule(const v1::LearningRateSchedule& proto,
                          LearningRateConfig& rate) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      rate.schedule,
      ValueOf("learning_rate_schedule.kind", kSchedules, proto.kind()));
  rate.decay_steps = proto.decay_steps();
  if (rate.schedule == Schedule::kExponentialDecay || proto.decay_rate() != 0) {
    rate.decay_rate = proto.decay_rate();
  }
  rate.staircase = proto.staircase();
  rate.boundaries.assign(proto.boundaries().begin(), proto.boundaries().end());
  rate.values.assign(proto.values().begin(), proto.values().end());
  rate.alpha = proto.alpha();
  rate.warmup_steps = proto.warmup_steps();
  rate.minimum = proto.minimum();
  return absl::OkStatus();
}

v1::ClippingConfig ToProto(const ClippingConfig& clipping) {
  v1::ClippingConfig proto;
  proto.set_kind(ProtoOf(kClippings, clipping.kind));
  proto.set_limit(clipping.limit);
  return proto;
}

absl::StatusOr<ClippingConfig> FromProto(const v1::ClippingConfig& proto) {
  ClippingConfig clipping;
  LOCKSTEP_ASSIGN_OR_RETURN(clipping.kind,
                            ValueOf("clipping.kind", kClippings, proto.kind()));
  clipping.limit = proto.limit();
  return clipping;
}

v1::PlacementConfig ToProto(const PlacementConfig& placement) {
  v1::PlacementConfig proto;
  proto.set_strategy(ProtoOf(kStrategies, placement.strategy));
  proto.set_seed(placement.seed);
  return proto;
}

absl::StatusOr<PlacementConfig> FromProto(const v1::PlacementConfig& proto) {
  PlacementConfig placement;
  LOCKSTEP_ASSIGN_OR_RETURN(
      placement.strategy,
      ValueOf("placement.strategy", kStrategies, proto.strategy()));
  placement.seed = proto.seed();
  return placement;
}

v1::PartitionerConfig ToProto(const PartitionerConfig& partitioner) {
  v1::PartitionerConfig proto;
  proto.set_kind(ProtoOf(kPartitioners, partitioner.kind));
  proto.set_num_shards(partitioner.num_shards);
  proto.set_max_shard_bytes(partitioner.max_shard_bytes);
  proto.set_max_shards(partitioner.max_shards);
  proto.set_max_partitions(partitioner.max_partitions);
  proto.set_min_slice_bytes(partitioner.min_slice_bytes);
  return proto;
}

absl::StatusOr<PartitionerConfig> FromProto(
    const v1::PartitionerConfig& proto) {
  PartitionerConfig partitioner;
  LOCKSTEP_ASSIGN_OR_RETURN(
      partitioner.kind,
      ValueOf("partitioner.kind", kPartitioners, proto.kind()));
  partitioner.num_shards = proto.num_shards();
  partitioner.max_shard_bytes = proto.max_shard_bytes();
  partitioner.max_shards = proto.max_shards();
  partitioner.max_partitions = proto.max_partitions();
  if (proto.has_min_slice_bytes()) {
    partitioner.min_slice_bytes = proto.min_slice_bytes();
  }
  return partitioner;
}

}  // namespace lockstep
