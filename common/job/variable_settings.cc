#include "common/job/variable_settings.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/job/learning_rate.h"
#include "common/job/rounding_checks.h"

namespace lockstep {
namespace {

// Returns the variables that match a pattern, of those that are trained.
absl::StatusOr<std::vector<size_t>> Find(
    absl::string_view field, const std::string& pattern,
    const std::vector<VariableSpec>& variables,
    const std::vector<VariableSettings>& settings) {
  std::vector<size_t> found;
  for (size_t i = 0; i < variables.size(); ++i) {
    // Buffers and untrained variables have no update rule that a setting could
    // change.
    if (variables[i].buffer || !settings[i].trained) continue;
    if (MatchesVariable(pattern, variables[i].name)) found.push_back(i);
  }
  // A pattern without a match is probably misspelt.
  if (!found.empty()) return found;
  return absl::InvalidArgumentError(absl::StrCat(
      field, " is \"", pattern,
      "\", which matches no variable that is trained; the first of ",
      variables.size(), " is \"",
      variables.empty() ? "" : variables.front().name, "\""));
}

absl::Status Overlap(absl::string_view field, const std::string& variable,
                     size_t first, size_t second) {
  return absl::InvalidArgumentError(absl::StrCat(
      field, "[", first, "] and [", second, "] both match variable \"",
      variable, "\"; change the patterns so that one does"));
}

absl::Status ChooseOptimizers(const JobConfig& job,
                              const std::vector<VariableSpec>& variables,
                              std::vector<VariableSettings>& settings) {
  for (size_t i = 0; i < job.variable_optimizers.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::vector<size_t> found,
        Find(absl::StrCat("variable_optimizers[", i, "].variables"),
             job.variable_optimizers[i].variables, variables, settings));
    for (const size_t variable : found) {
      int& chosen = settings[variable].optimizer;
      // Two rules for one variable: the order of the list must not decide.
      if (chosen != 0) {
        return Overlap("variable_optimizers", variables[variable].name,
                       static_cast<size_t>(chosen - 1), i);
      }
      chosen = static_cast<int>(i) + 1;
    }
  }
  return absl::OkStatus();
}

absl::Status ChooseDecays(const JobConfig& job,
                          const std::vector<VariableSpec>& variables,
                          std::vector<VariableSettings>& settings) {
  const std::vector<OptimizerConfig> optimizers = OptimizersOf(job);
  // Without an optimizer of its own, a rule has the patterns of another one,
  // which are checked there.
  const auto shares = [&](size_t optimizer) {
    return optimizer > 0 &&
           !job.variable_optimizers[optimizer - 1].optimizer.has_value();
  };
  for (size_t optimizer = 0; optimizer < optimizers.size(); ++optimizer) {
    if (shares(optimizer)) continue;
    const std::string field = optimizer == 0
                                  ? "optimizer"
                                  : absl::StrCat("variable_optimizers[",
                                                 optimizer - 1, "].optimizer");
    for (const std::string& pattern :
         optimizers[optimizer].weight_decay_exempt) {
      LOCKSTEP_ASSIGN_OR_RETURN(
          const std::vector<size_t> found,
          Find(field + ".weight_decay_exempt", pattern, variables, settings));
      // A pattern may match variables of other optimizers too, but not only
      // those.
      bool any = false;
      // See ChooseRuleOfChanges().
      const bool of_all = optimizer == 0 && job.has_local_steps();
      for (const size_t variable : found) {
        const auto own = static_cast<size_t>(settings[variable].optimizer);
        if (!of_all && (shares(own) ? 0 : own) != optimizer) continue;
        settings[variable].decays = false;
        any = true;
      }
      if (any) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          field, ".weight_decay_exempt is \"", pattern,
          "\", which matches only variables of other optimizers, such as \"",
          variables[found.front()].name, "\"; leave it out"));
    }
  }
  return absl::OkStatus();
}

// A step changes only those rows of a table that have a gradient.
absl::Status CheckTables(const JobConfig& job,
                         const std::vector<VariableSpec>& variables,
                         const std::vector<VariableSettings>& settings) {
  const std::vector<OptimizerConfig> optimizers = OptimizersOf(job, variables);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].is_table()) continue;
    const OptimizerConfig& optimizer = optimizers[settings[i].optimizer];
    if (settings[i].decays && optimizer.weight_decay > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "optimizer.weight_decay is ", optimizer.weight_decay, ", but \"",
          variables[i].name,
          "\" is a table, whose rows without a gradient stay as they are; "
          "name it in optimizer.weight_decay_exempt"));
    }
    if (optimizer.dampening > 0 && optimizer.momentum > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "optimizer.dampening is ", optimizer.dampening, ", but \"",
          variables[i].name,
          "\" is a table, whose rows do not know their first gradient; set it "
          "to 0, or give the table a rule in variable_optimizers"));
    }
  }
  return absl::OkStatus();
}

absl::Status ChooseAverages(const JobConfig& job,
                            const std::vector<VariableSpec>& variables,
                            std::vector<VariableSettings>& settings) {
  const MovingAverageConfig& average = job.moving_average;
  if (average.decay == 0) return absl::OkStatus();
  // No pattern means all trained variables.
  if (average.variables.empty()) {
    for (size_t i = 0; i < settings.size(); ++i) {
      settings[i].averaged = !variables[i].buffer && settings[i].trained;
    }
  }
  for (size_t i = 0; i < average.variables.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::vector<size_t> found,
        Find(absl::StrCat("moving_average.variables[", i, "]"),
             average.variables[i], variables, settings));
    for (const size_t variable : found) settings[variable].averaged = true;
  }
  return absl::OkStatus();
}

absl::Status ChooseConstraints(const JobConfig& job,
                               const std::vector<VariableSpec>& variables,
                               std::vector<VariableSettings>& settings) {
  // By variable, the index of its constraint; the size of the list means none.
  std::vector<size_t> chosen(variables.size(), job.constraints.size());
  for (size_t i = 0; i < job.constraints.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::vector<size_t> found,
        Find(absl::StrCat("constraints[", i, "].variables"),
             job.constraints[i].variables, variables, settings));
    for (const size_t variable : found) {
      // A step changes only those rows of a table that have a gradient.
      if (variables[variable].is_table()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "constraints[", i, "].variables is \"",
            job.constraints[i].variables, "\", which matches \"",
            variables[variable].name,
            "\", a table, whose rows without a gradient stay as they are; name "
            "other variables"));
      }
      if (chosen[variable] < i) {
        return Overlap("constraints", variables[variable].name,
                       chosen[variable], i);
      }
      chosen[variable] = i;
      settings[variable].constraint = job.constraints[i];
    }
  }
  return absl::OkStatus();
}

// A row created in the middle of a step has its initial values in every buffer,
// which is correct only if nothing but a gradient moves rows.
absl::Status CheckGrowing(const JobConfig& job,
                          const std::vector<VariableSpec>& variables,
                          const std::vector<VariableSettings>& settings) {
  const std::vector<OptimizerConfig> optimizers = OptimizersOf(job, variables);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].grows()) continue;
    std::string why;
    if (job.mode == SyncMode::kCompatible) {
      why = "mode is COMPATIBLE, which has no growing tables; use STRICT";
    } else if (optimizers[settings[i].optimizer].kind ==
               OptimizerConfig::Kind::kAdam) {
      why =
          "its optimizer.kind is ADAM, which moves every row in every step; "
          "use LAZY_ADAM";
    } else if (settings[i].averaged) {
      why =
          "moving_average is of it too, which moves every row in every step; "
          "name other variables in moving_average.variables";
    } else if (variables[i].initializer.kind ==
               Initializer::Kind::kOrthogonal) {
      why =
          "an orthogonal matrix has all its rows from the start; choose "
          "another initializer";
    } else {
      continue;
    }
    return absl::InvalidArgumentError(absl::StrCat(
        "table \"", variables[i].name, "\" grows (model.row_limit), but ", why,
        ", or leave out model.row_limit"));
  }
  return absl::OkStatus();
}

// Ftrl divides by the rate, which must not be 0 in any step.
absl::Status CheckRateOfFtrlVariable(const OptimizerConfig& rule,
                                     const LearningRateConfig& rate,
                                     int64_t steps, DType type) {
  const std::optional<StepRate> zero = ZeroRateOfFtrl(rule, rate, steps, type);
  if (!zero.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the learning rate of step ", zero->step, " is ", zero->rate,
      ", which is 0 in its updates, but its optimizer.kind is FTRL, which "
      "divides by it; set a larger learning_rate, or let it end above 0"));
}

// Variables of a program have types that the job does not name.
absl::Status CheckRoundingOfTypes(
    const JobConfig& job, const std::vector<VariableSpec>& variables,
    const std::vector<VariableSettings>& settings) {
  const std::vector<OptimizerConfig> rules = OptimizersOf(job);
  const std::vector<LearningRateConfig> rates = LearningRatesOf(job);
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].buffer || !settings[i].trained) continue;
    const DType type = variables[i].dtype;
    absl::Status held = CheckClippingLimit(job.clipping, type);
    // Updates of the other types round as those of float32, which the job's own
    // checks assume.
    if (held.ok() && type == DType::kFloat16) {
      const int rule = settings[i].optimizer;
      held = CheckRounding(rules[rule], rates[rule], type);
      if (held.ok()) {
        held = CheckRateOfFtrlVariable(rules[rule], rates[rule],
                                       job.train_steps, type);
      }
    }
    if (held.ok()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("variable \"", variables[i].name, "\" is ",
                     std::string(DTypeName(type)), ", and ", held.message()));
  }
  return absl::OkStatus();
}

// Checkpoints would have two tensors of one name, which cannot be written.
absl::Status CheckNames(const std::vector<VariableSpec>& variables,
                        const std::vector<VariableSettings>& settings) {
  std::set<absl::string_view> names;
  for (const VariableSpec& variable : variables) names.insert(variable.name);
  for (size_t i = 0; i < variables.size(); ++i) {
    const bool grows = variables[i].grows();
    if (!grows && !settings[i].averaged) continue;
    const std::string taken =
        TensorNameOf(variables[i].name, grows ? kKeysName : kMovingAverageName);
    if (names.count(taken) == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "variable \"", taken, "\" has the name that checkpoints give to the ",
        grows ? "keys of table" : "moving average of variable", " \"",
        variables[i].name, "\"; give it another name"));
  }
  return absl::OkStatus();
}

absl::Status ChooseUntrained(const JobConfig& job,
                             const std::vector<VariableSpec>& variables,
                             std::vector<VariableSettings>& settings) {
  for (size_t i = 0; i < job.untrained.size(); ++i) {
    // Fresh settings, in which everything is trained: two patterns may match
    // the same variable here.
    const std::vector<VariableSettings> all(variables.size());
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<size_t> found,
                              Find(absl::StrCat("untrained[", i, "]"),
                                   job.untrained[i], variables, all));
    for (const size_t variable : found) settings[variable].trained = false;
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    if (settings[i].trained && !variables[i].buffer) return absl::OkStatus();
  }
  if (job.untrained.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("untrained matches all ", variables.size(),
                   " variables; leave one to train"));
}

absl::Status ChooseWithoutOptimizer(const JobConfig& job,
                                    const std::vector<VariableSpec>& variables,
                                    std::vector<VariableSettings>& settings) {
  // The rule behind the job's own ones, see OptimizersOf() with variables.
  const size_t optimizer = OptimizersOf(job).size();
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i].buffer && settings[i].trained) continue;
    if (optimizer >= kMaxOptimizers) {
      return absl::InvalidArgumentError(absl::StrCat(
          "variable_optimizers has ", job.variable_optimizers.size(),
          " entries; with buffers or untrained variables, such as \"",
          variables[i].name, "\", there can be ", kMaxOptimizers - 2,
          " at most"));
    }
    settings[i].optimizer = static_cast<int>(optimizer);
    settings[i].decays = false;
  }
  return absl::OkStatus();
}

// The rules that variables have in local steps are not those of the servers,
// which apply the job's own rule to the change of each.
void ChooseRuleOfChanges(const JobConfig& job,
                         const std::vector<VariableSpec>& variables,
                         std::vector<VariableSettings>& settings) {
  const std::vector<std::string>& exempt = job.optimizer.weight_decay_exempt;
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].buffer || !settings[i].trained) continue;
    settings[i].optimizer = 0;
    settings[i].decays = std::none_of(
        exempt.begin(), exempt.end(), [&](const std::string& pattern) {
          return MatchesVariable(pattern, variables[i].name);
        });
  }
}

}  // namespace

std::vector<OptimizerConfig> OptimizersOf(
    const JobConfig& job, const std::vector<VariableSpec>& variables) {
  std::vector<OptimizerConfig> optimizers = OptimizersOf(job);
  for (const VariableSpec& variable : variables) {
    if (!variable.buffer && !IsUntrained(job, variable)) continue;
    // A default OptimizerConfig is gradient descent.
    optimizers.emplace_back();
    break;
  }
  return optimizers;
}

bool IsUntrained(const JobConfig& job, const VariableSpec& variable) {
  return std::any_of(job.untrained.begin(), job.untrained.end(),
                     [&](const std::string& pattern) {
                       return !variable.buffer &&
                              MatchesVariable(pattern, variable.name);
                     });
}

bool MatchesVariable(const std::string& pattern, const std::string& name) {
  // Without FNM_PATHNAME, '*' also matches '/'.
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

absl::StatusOr<std::vector<VariableSettings>> SettingsOf(
    const JobConfig& job, const std::vector<VariableSpec>& variables) {
  std::vector<VariableSettings> settings(variables.size());
  // First: all later patterns skip untrained variables.
  LOCKSTEP_RETURN_IF_ERROR(ChooseUntrained(job, variables, settings));
  LOCKSTEP_RETURN_IF_ERROR(ChooseWithoutOptimizer(job, variables, settings));
  LOCKSTEP_RETURN_IF_ERROR(ChooseOptimizers(job, variables, settings));
  // After the optimizers: an exemption counts only for variables of its own.
  LOCKSTEP_RETURN_IF_ERROR(ChooseDecays(job, variables, settings));
  if (job.has_local_steps()) ChooseRuleOfChanges(job, variables, settings);
  LOCKSTEP_RETURN_IF_ERROR(CheckTables(job, variables, settings));
  LOCKSTEP_RETURN_IF_ERROR(CheckRoundingOfTypes(job, variables, settings));
  LOCKSTEP_RETURN_IF_ERROR(ChooseAverages(job, variables, settings));
  LOCKSTEP_RETURN_IF_ERROR(ChooseConstraints(job, variables, settings));
  LOCKSTEP_RETURN_IF_ERROR(CheckGrowing(job, variables, settings));
  LOCKSTEP_RETURN_IF_ERROR(CheckNames(variables, settings));
  return settings;
}

std::string TensorNameOf(absl::string_view variable, absl::string_view name) {
  return absl::StrCat(variable, "/", name);
}

}  // namespace lockstep
