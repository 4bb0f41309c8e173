#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/job/variable_settings.h"
#include "server/update/slots.h"
#include "tests/golden/gradient_json.h"
#include "tests/golden/optimizer_json.h"
#include "tests/golden/optimizer_tolerance.h"
#include "tests/golden/replay.h"
#include "tests/golden/variable_state.h"

namespace lockstep::golden {
namespace {

// Allowed multiple of the measured difference.
constexpr double kMargin = 2;

// The complete state of a scenario between two steps.
struct State {
  std::vector<VariableState> variables;
  std::vector<bool> has_slots;  // a variable without gradients has none
  int64_t global_step = 0;
  server::AdamPowers powers;
};

// Refuses the values that TensorFlow's constructors refuse, with
// kInvalidArgument. These accept much that makes no sense; ValidateJobConfig()
// is stricter.
absl::Status CheckAsTensorFlow(const OptimizerConfig& config) {
  using Kind = OptimizerConfig::Kind;
  bool accepted = true;
  if (config.kind == Kind::kFtrl) {
    accepted = config.initial_accumulator_value >= 0 && config.l1 >= 0 &&
               config.l2 >= 0 && config.l2_shrinkage >= 0 &&
               config.learning_rate_power <= 0;
  } else if (config.kind == Kind::kAdagrad || config.kind == Kind::kAdagradDa ||
             config.kind == Kind::kProximalAdagrad) {
    accepted = config.initial_accumulator_value > 0;
  }
  return accepted ? absl::OkStatus()
                  : absl::InvalidArgumentError("TensorFlow refuses it");
}

class OptimizerReplay {
 public:
  OptimizerReplay(const Json& scenario, Report& report)
      : scenario_(scenario), report_(report) {
    const OptimizerRecord record =
        ReadOptimizer(scenario.at("optimizer"), scenario.at("hyper"));
    settings_.config = record.config;
    settings_.learning_rate = record.learning_rate;
    settings_.dtype = ReadDType(scenario);
    slots_ = server::Slots(settings_.config);
  }

  void Run() {
    const absl::Status status = CheckAsTensorFlow(settings_.config);
    const bool same = report_.Expect(
        "status of the optimizer", scenario_.at("status"), StatusName(status));
    if (!same || !status.ok()) return;
    CompareNames();
    State state = CompareStart();
    const Json& steps = scenario_.at("steps");
    for (size_t i = 0; i < steps.size(); ++i) {
      report_.Begin(i, "step");
      state = RunStep(std::move(state), steps[i]);
    }
  }

 private:
  void CompareNames() {
    std::vector<std::string> keys;
    for (const server::SlotSpec& slot : slots_) keys.push_back(slot.key);
    std::sort(keys.begin(), keys.end());
    report_.Expect("slot_names", scenario_.at("slot_names").dump(),
                   Json(keys).dump());
    const Json& variables = scenario_.at("variables");
    const Json& recorded = scenario_.at("slot_variables");
    for (size_t v = 0; v < variables.size(); ++v) {
      if (recorded.at(v).empty()) continue;
      Json names = Json::object();
      for (const server::SlotSpec& slot : slots_) {
        names[slot.key] =
            TensorNameOf(variables[v].at("name").get<std::string>(), slot.name);
      }
      report_.Expect("slot_variables", recorded[v].dump(), names.dump());
    }
  }

  // Compares and returns the state before the first step.
  State CompareStart() {
    const Json& variables = scenario_.at("variables");
    const Json& slots = scenario_.at("initial_slots");
    const Json& scalars = scenario_.at("initial_scalars");
    State state;
    for (size_t v = 0; v < variables.size(); ++v) {
      state.has_slots.push_back(!slots.at(v).empty());
      state.variables.push_back(MakeState(
          settings_, ReadTensor(settings_.dtype, variables[v].at("initial"))));
      CompareSlots(v, slots[v], state.variables[v], {}, {});
    }
    state.powers = server::InitialAdamPowers(settings_.config);
    state.global_step = 0;
    CompareScalars(scalars, state);
    return state;
  }

  // Makes the step, compares the results and returns the recorded ones.
  State RunStep(State before, const Json& step) {
    const Json& gradients = step.at("gradients");
    if (gradients.size() != before.variables.size()) {
      throw BadTrace("a step has not one gradient per variable");
    }
    settings_.powers = before.powers;
    settings_.step = before.global_step;
    State after = before;
    const absl::Status status = Apply(gradients, after);
    const bool same =
        report_.Expect("status", step.at("status"), StatusName(status));
    if (same && status.ok()) Compare(step, before, after);
    return Recorded(step.at("after"), std::move(before));
  }

  absl::Status Apply(const Json& gradients, State& state) {
    absl::Status status;
    bool any = false;
    for (size_t v = 0; v < gradients.size(); ++v) {
      if (gradients[v].is_null()) continue;
      any = true;
      status.Update(ApplyOne(gradients[v], state.variables[v]));
    }
    if (!any) {
      return absl::InvalidArgumentError("no variable has a gradient");
    }
    if (state.global_step == std::numeric_limits<int64_t>::max()) {
      throw BadTrace("there is no step after this global_step");
    }
    ++state.global_step;
    state.powers = server::NextAdamPowers(settings_.config, state.powers);
    return status;
  }

  absl::Status ApplyOne(const Json& gradient, VariableState& state) {
    if (gradient.contains("dense")) {
      return ApplyDense(
          settings_, ReadTensor(settings_.dtype, gradient.at("dense")), state);
    }
    const SparseRecord sparse = ReadSparse(settings_.dtype, gradient);
    return ApplySparse(settings_, sparse.indices, sparse.values,
                       /*decayed=*/false, state);
  }

  void Compare(const Json& step, const State& before, const State& after) {
    const Json& recorded = step.at("after");
    const Json& gradients = step.at("gradients");
    for (size_t v = 0; v < before.variables.size(); ++v) {
      const Distance distance = DistanceOf(gradients[v], before.variables[v]);
      CompareTensor(
          absl::StrCat("variable ", v), recorded.at("variables").at(v),
          before.variables[v].value.values, after.variables[v].value.values,
          distance.variable, NewTerms(before.variables[v], after.variables[v]));
      if (!before.has_slots[v]) continue;
      CompareSlots(v, recorded.at("slots").at(v), after.variables[v], distance,
                   before.variables[v]);
    }
    CompareScalars(recorded.at("scalars"), after);
  }

  Distance DistanceOf(const Json& gradient, const VariableState& state) const {
    GradientForm form = GradientForm::kDense;
    if (gradient.is_object() && !gradient.contains("dense")) {
      int64_t width = 1;
      for (size_t i = 1; i < state.value.shape.size(); ++i) {
        width *= state.value.shape[i];
      }
      form = width == 1 ? GradientForm::kColumn : GradientForm::kRows;
    }
    return MeasuredDistance(settings_.config, settings_.dtype, form);
  }

  void CompareSlots(size_t variable, const Json& recorded,
                    const VariableState& after, const Distance& distance,
                    const std::optional<VariableState>& before) {
    if (recorded.empty()) return;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const std::string& key = slots_[i].key;
      const bool far = key == "linear" || key == "accum_update" ||
                       (key == "momentum" && slots_.size() > 1);
      CompareTensor(absl::StrCat("variable ", variable, ", slot ", key),
                    recorded.at(key),
                    before ? before->slots[i] : after.slots[i], after.slots[i],
                    far ? distance.slot : 0,
                    before && key == "linear" ? CancellingTerms(*before, after)
                                              : std::vector<double>{});
    }
  }

  // Returns the terms that RMSProp adds to its momentum, which use the
  // reciprocal square root: if the momentum cancels a large term, the remainder
  // and the variable's change are small.
  std::vector<double> NewTerms(const VariableState& before,
                               const VariableState& after) const {
    if (settings_.config.kind != OptimizerConfig::Kind::kRmsProp) return {};
    const DType dtype = settings_.dtype;
    const std::vector<double> q = ToDoubles(dtype, before.slots.back());
    const std::vector<double> new_q = ToDoubles(dtype, after.slots.back());
    std::vector<double> terms;
    for (size_t i = 0; i < q.size(); ++i) {
      terms.push_back(std::fabs(new_q[i] - q[i] * settings_.config.momentum));
    }
    return terms;
  }

  // Returns the larger of (P(n)/rate) w and (P(n')/rate) w in Ftrl's linear
  // slot.
  std::vector<double> CancellingTerms(const VariableState& before,
                                      const VariableState& after) const {
    const DType dtype = settings_.dtype;
    const std::vector<double> w = ToDoubles(dtype, before.value.values);
    const std::vector<double> n = ToDoubles(dtype, before.slots[0]);
    const std::vector<double> new_n = ToDoubles(dtype, after.slots[0]);
    const double p = -settings_.config.learning_rate_power;
    std::vector<double> terms;
    for (size_t i = 0; i < w.size(); ++i) {
      terms.push_back(std::max(std::fabs(std::pow(n[i], p) * w[i]),
                               std::fabs(std::pow(new_n[i], p) * w[i])) /
                      std::fabs(settings_.learning_rate));
    }
    return terms;
  }

  // `larger` holds other numbers from which the unit of the distance may be
  // taken.
  void CompareTensor(absl::string_view what, const Json& recorded,
                     const std::vector<std::byte>& before,
                     const std::vector<std::byte>& after, double distance,
                     const std::vector<double>& larger) {
    const DType dtype = settings_.dtype;
    const std::vector<double> expected =
        ToDoubles(dtype, ReadTensor(dtype, recorded).values);
    const std::vector<double> got = ToDoubles(dtype, after);
    std::vector<double> scale = ToDoubles(dtype, before);
    if (expected.size() != got.size() || scale.size() != got.size()) {
      throw BadTrace("a recorded tensor is not as long as its variable");
    }
    for (size_t i = 0; i < scale.size(); ++i) {
      scale[i] = std::max(std::fabs(scale[i]), std::fabs(expected[i]));
      if (!larger.empty()) scale[i] = std::max(scale[i], larger[i]);
    }
    if (Near(dtype, expected, got, scale, kMargin * distance)) return;
    report_.Add(what, Text(expected), Text(got));
  }

  void CompareScalars(const Json& recorded, const State& state) {
    report_.Expect("global_step", ReadInt(recorded.at("global_step")),
                   state.global_step);
    if (!server::HasAdamPowers(settings_.config)) return;
    const server::AdamPowers powers = ReadPowers(recorded);
    report_.Expect("beta powers",
                   Text({powers.beta1_power, powers.beta2_power}),
                   Text({state.powers.beta1_power, state.powers.beta2_power}));
  }

  static server::AdamPowers ReadPowers(const Json& scalars) {
    return {static_cast<float>(ReadNumber(scalars.at("beta1_power"))),
            static_cast<float>(ReadNumber(scalars.at("beta2_power")))};
  }

  // Returns `state` with the recorded values in its place.
  State Recorded(const Json& after, State state) const {
    for (size_t v = 0; v < state.variables.size(); ++v) {
      VariableState& variable = state.variables[v];
      Replace(after.at("variables").at(v), variable.value.values);
      for (size_t i = 0; state.has_slots[v] && i < slots_.size(); ++i) {
        Replace(after.at("slots").at(v).at(slots_[i].key), variable.slots[i]);
      }
    }
    const Json& scalars = after.at("scalars");
    state.global_step = ReadInt(scalars.at("global_step"));
    if (server::HasAdamPowers(settings_.config))
      state.powers = ReadPowers(scalars);
    return state;
  }

  void Replace(const Json& recorded, std::vector<std::byte>& values) const {
    std::vector<std::byte> bytes = ReadTensor(settings_.dtype, recorded).values;
    if (bytes.size() != values.size()) {
      throw BadTrace("a recorded tensor is not as long as its variable");
    }
    values = std::move(bytes);
  }

  const Json& scenario_;
  Report& report_;
  StepSettings settings_;
  std::vector<server::SlotSpec> slots_;
};

}  // namespace

void ReplayOptimizer(const Json& scenario, Report& report) {
  OptimizerReplay(scenario, report).Run();
}

}  // namespace lockstep::golden
