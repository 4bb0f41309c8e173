#include "common/job/codec/training_config_codec.h"

namespace lockstep {
namespace {

using Kind = OptimizerConfig::Kind;
using Rule = v1::OptimizerConfig;
constexpr EnumValue<Kind> kOptimizers[] = {
    {Kind::kGradientDescent, Rule::GRADIENT_DESCENT},
    {Kind::kMomentum, Rule::MOMENTUM},
    {Kind::kAdam, Rule::ADAM},
    {Kind::kAdagrad, Rule::ADAGRAD},
    {Kind::kRmsProp, Rule::RMSPROP},
    {Kind::kAdadelta, Rule::ADADELTA},
    {Kind::kFtrl, Rule::FTRL},
    {Kind::kLazyAdam, Rule::LAZY_ADAM},
    {Kind::kSgd, Rule::SGD},
    {Kind::kAdamTorch, Rule::ADAM_TORCH},
    {Kind::kAdamW, Rule::ADAMW},
    {Kind::kAdagradDa, Rule::ADAGRAD_DA},
    {Kind::kProximalAdagrad, Rule::PROXIMAL_ADAGRAD},
    {Kind::kProximalGradientDescent, Rule::PROXIMAL_GRADIENT_DESCENT}};

using Schedule = LearningRateConfig::Schedule;
constexpr EnumValue<Schedule> kSchedules[] = {
    {Schedule::kConstant, v1::LearningRateSchedule::CONSTANT},
    {Schedule::kExponentialDecay, v1::LearningRateSchedule::EXPONENTIAL_DECAY},
    {Schedule::kPiecewiseConstant,
     v1::LearningRateSchedule::PIECEWISE_CONSTANT},
    {Schedule::kCosineDecay, v1::LearningRateSchedule::COSINE_DECAY},
    {Schedule::kLinear, v1::LearningRateSchedule::LINEAR_DECAY},
    {Schedule::kCosine, v1::LearningRateSchedule::COSINE}};

using Clipping = ClippingConfig::Kind;
constexpr EnumValue<Clipping> kClippings[] = {
    {Clipping::kNone, v1::ClippingConfig::KIND_UNSPECIFIED},
    {Clipping::kGlobalNorm, v1::ClippingConfig::GLOBAL_NORM},
    {Clipping::kNorm, v1::ClippingConfig::NORM},
    {Clipping::kValue, v1::ClippingConfig::VALUE},
    {Clipping::kMeanGlobalNorm, v1::ClippingConfig::MEAN_GLOBAL_NORM}};

using Placement = PlacementConfig::Strategy;
constexpr EnumValue<Placement> kPlacements[] = {
    {Placement::kGreedy, v1::PlacementConfig::GREEDY},
    {Placement::kRoundRobin, v1::PlacementConfig::ROUND_ROBIN},
    {Placement::kNameHash, v1::PlacementConfig::NAME_HASH}};

using Partitioner = PartitionerConfig::Kind;
constexpr EnumValue<Partitioner> kPartitioners[] = {
    {Partitioner::kMaxPartBytes, v1::PartitionerConfig::MAX_PART_BYTES},
    {Partitioner::kFixedSize, v1::PartitionerConfig::FIXED_SIZE},
    {Partitioner::kAxisSize, v1::PartitionerConfig::AXIS_SIZE},
    {Partitioner::kMinMax, v1::PartitionerConfig::MIN_MAX}};

}  // namespace

void VisitFields(FieldVisitor& visit, OptimizerConfig& optimizer) {
  visit("kind", optimizer.kind, kOptimizers);
  visit.Optional("momentum", optimizer.momentum,
                 DefaultMomentum(optimizer.kind));
  visit("use_nesterov", optimizer.use_nesterov);
  visit("beta1", optimizer.beta1);
  visit("beta2", optimizer.beta2);
  visit.Optional("epsilon", optimizer.epsilon, DefaultEpsilon(optimizer.kind));
  visit("decay", optimizer.decay);
  visit("centered", optimizer.centered);
  visit("rho", optimizer.rho);
  visit("initial_accumulator_value", optimizer.initial_accumulator_value);
  visit("learning_rate_power", optimizer.learning_rate_power);
  visit("l1", optimizer.l1);
  visit("l2", optimizer.l2);
  visit("l2_shrinkage", optimizer.l2_shrinkage);
  visit("beta", optimizer.beta);
  visit("dampening", optimizer.dampening);
  visit.Optional("weight_decay", optimizer.weight_decay,
                 DefaultWeightDecay(optimizer.kind));
  visit("weight_decay_exempt", optimizer.weight_decay_exempt);
}

void VisitFields(FieldVisitor& visit, LearningRateConfig& rate) {
  visit("kind", rate.schedule, kSchedules);
  visit("decay_steps", rate.decay_steps);
  // A forgotten decay_rate must stay 0, which validation refuses for a decay,
  // instead of becoming a decay by nothing; also if an override chooses the
  // decay.
  visit.Optional("decay_rate", rate.decay_rate,
                 rate.schedule == Schedule::kExponentialDecay ? 0 : 1);
  visit("staircase", rate.staircase);
  visit("boundaries", rate.boundaries);
  visit("values", rate.values);
  visit("alpha", rate.alpha);
  visit("warmup_steps", rate.warmup_steps);
  visit("minimum", rate.minimum);
}

void VisitFields(FieldVisitor& visit, ClippingConfig& clipping) {
  visit("kind", clipping.kind, kClippings);
  visit("limit", clipping.limit);
}

void VisitFields(FieldVisitor& visit, PlacementConfig& placement) {
  visit("strategy", placement.strategy, kPlacements);
  visit("seed", placement.seed);
}

void VisitFields(FieldVisitor& visit, PartitionerConfig& partitioner) {
  visit("kind", partitioner.kind, kPartitioners);
  visit("num_shards", partitioner.num_shards);
  visit("max_shard_bytes", partitioner.max_shard_bytes);
  visit("max_shards", partitioner.max_shards);
  visit("max_partitions", partitioner.max_partitions);
  visit("min_slice_bytes", partitioner.min_slice_bytes);
}

}  // namespace lockstep
