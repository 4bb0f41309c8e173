#include "server/shard/parts/job_rules.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/job/variable_settings.h"
#include "server/state/state_tensors.h"

namespace lockstep::server {
namespace {

struct Field {
  std::string name;
  std::string value;
  bool has_text = true;  // false: the value is no text for people
};

std::string TextOf(bool value) { return value ? "true" : "false"; }
std::string TextOf(int64_t value) { return absl::StrCat(value); }
std::string TextOf(const std::string& value) { return value; }
// The shortest text that is read as the same number.
std::string TextOf(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return {text, end};
}
template <typename T>
std::string TextOf(const std::vector<T>& values) {
  const auto append = [](std::string* out, const T& value) {
    absl::StrAppend(out, TextOf(value));
  };
  return absl::StrCat("[", absl::StrJoin(values, ", ", append), "]");
}

// Collects fields in the order of the job file.
class Fields {
 public:
  const std::vector<Field>& all() const { return all_; }

  template <typename T>
  void Add(absl::string_view name, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      all_.push_back({absl::StrCat(prefix_, name),
                      absl::StrCat(static_cast<int>(value)), false});
    } else {
      all_.push_back({absl::StrCat(prefix_, name), TextOf(value)});
    }
  }
  // The names added by `add` follow `name` and a dot.
  template <typename Function>
  void AddBelow(absl::string_view name, const Function& add) {
    const std::string outer = prefix_;
    absl::StrAppend(&prefix_, name, ".");
    add();
    prefix_ = outer;
  }

  // The compiler counts the names in brackets, so that no new field of a struct
  // is left out here.
  void AddOptimizer(const OptimizerConfig& config) {
    const auto& [kind, momentum, use_nesterov, beta1, beta2, epsilon, decay,
                 centered, rho, initial_accumulator_value, learning_rate_power,
                 l1, l2, l2_shrinkage, beta, dampening, weight_decay,
                 weight_decay_exempt] = config;
    Add("kind", kind);
    Add("momentum", momentum);
    Add("use_nesterov", use_nesterov);
    Add("beta1", beta1);
    Add("beta2", beta2);
    Add("epsilon", epsilon);
    Add("decay", decay);
    Add("centered", centered);
    Add("rho", rho);
    Add("initial_accumulator_value", initial_accumulator_value);
    Add("learning_rate_power", learning_rate_power);
    Add("l1", l1);
    Add("l2", l2);
    Add("l2_shrinkage", l2_shrinkage);
    Add("beta", beta);
    Add("dampening", dampening);
    Add("weight_decay", weight_decay);
    Add("weight_decay_exempt", weight_decay_exempt);
  }

  // `rate` has decay_steps filled in, from train_steps if need be, which count
  // only if the schedule uses them.
  void AddRate(const LearningRateConfig& rate) {
    using Schedule = LearningRateConfig::Schedule;
    const auto& [base, schedule, decay_steps, decay_rate, staircase, boundaries,
                 values, alpha, warmup_steps, minimum] = rate;
    const bool decays = schedule != Schedule::kConstant &&
                        schedule != Schedule::kPiecewiseConstant;
    Add("learning_rate", base);
    AddBelow("learning_rate_schedule", [&] {
      Add("kind", rate.schedule);
      Add("decay_steps", decays ? rate.decay_steps : 0);
      Add("decay_rate", rate.decay_rate);
      Add("staircase", rate.staircase);
      Add("boundaries", rate.boundaries);
      Add("values", rate.values);
      Add("alpha", rate.alpha);
      Add("warmup_steps", rate.warmup_steps);
      Add("minimum", rate.minimum);
    });
  }

 private:
  std::string prefix_;
  std::vector<Field> all_;
};

void AddVariableRules(const JobConfig& job, Fields& fields) {
  const std::vector<OptimizerConfig> optimizers = OptimizersOf(job);
  const std::vector<LearningRateConfig> rates = LearningRatesOf(job);
  fields.AddBelow("optimizer", [&] { fields.AddOptimizer(job.optimizer); });
  fields.AddRate(rates[0]);
  for (size_t i = 0; i < job.variable_optimizers.size(); ++i) {
    const VariableOptimizer& other = job.variable_optimizers[i];
    fields.AddBelow(absl::StrCat("variable_optimizers[", i, "]"), [&] {
      fields.Add("variables", other.variables);
      fields.AddBelow("optimizer",
                      [&] { fields.AddOptimizer(optimizers[i + 1]); });
      fields.AddRate(rates[i + 1]);
    });
  }
  for (size_t i = 0; i < job.constraints.size(); ++i) {
    fields.AddBelow(absl::StrCat("constraints[", i, "]"), [&] {
      const auto& [variables, kind, max_norm] = job.constraints[i];
      fields.Add("variables", variables);
      fields.Add("kind", kind);
      fields.Add("max_norm", max_norm);
    });
  }
}

std::vector<Field> RulesOf(const JobConfig& job) {
  Fields fields;
  AddVariableRules(job, fields);
  fields.Add("untrained", job.untrained);
  fields.Add("moving_average.decay", job.moving_average.decay);
  fields.Add("moving_average.count_steps", job.moving_average.count_steps);
  fields.Add("moving_average.variables", job.moving_average.variables);
  // The other kinds of clipping are the work of workers.
  fields.Add("clipping.kind", job.clipping.limits_mean()
                                  ? job.clipping.kind
                                  : ClippingConfig::Kind::kNone);
  fields.Add("clipping.limit",
             job.clipping.limits_mean() ? job.clipping.limit : 0);
  fields.Add("refuse_non_finite", job.refuse_non_finite);
  fields.Add("strategy.communication.order", job.strategy.communication.order);
  fields.Add("strategy.communication.bytes_per_pack",
             job.strategy.communication.bytes_per_pack);
  return fields.all();
}

}  // namespace

std::string DifferenceOfRules(const JobConfig& before, const JobConfig& after) {
  const std::vector<Field> old_rules = RulesOf(before);
  const std::vector<Field> new_rules = RulesOf(after);
  const size_t both = std::min(old_rules.size(), new_rules.size());
  for (size_t i = 0; i < both; ++i) {
    const Field& field = old_rules[i];
    if (field.name != new_rules[i].name) return field.name;  // a longer list
    if (field.value == new_rules[i].value) continue;
    if (!field.has_text) return field.name;
    return absl::StrCat(field.name, ": ", field.value, " -> ",
                        new_rules[i].value);
  }
  return "";  // the last field is in both
}

bool HaveSameTensors(const JobConfig& a, const JobConfig& b,
                     const std::vector<VariableSpec>& variables) {
  const auto of_a = SettingsOf(a, variables);
  const auto of_b = SettingsOf(b, variables);
  if (!of_a.ok() || !of_b.ok()) return false;
  const auto same_name = [](const SlotSpec& x, const SlotSpec& y) {
    return x.name == y.name;
  };
  const auto same = [&](const std::vector<SlotSpec>& x,
                        const std::vector<SlotSpec>& y) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_name);
  };
  const auto slots_a = SlotsByVariable(OptimizersOf(a, variables), *of_a);
  const auto slots_b = SlotsByVariable(OptimizersOf(b, variables), *of_b);
  return std::equal(slots_a.begin(), slots_a.end(), slots_b.begin(),
                    slots_b.end(), same);
}

}  // namespace lockstep::server
