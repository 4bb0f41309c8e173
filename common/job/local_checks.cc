#include "common/job/local_checks.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/job/field_checks.h"

namespace lockstep {
namespace {

absl::Status CheckKeepsValues(absl::string_view element,
                              OptimizerConfig::Kind rule) {
  const bool ftrl = rule == OptimizerConfig::Kind::kFtrl;
  if (!ftrl && rule != OptimizerConfig::Kind::kAdagradDa) {
    return absl::OkStatus();
  }
  return Wrong(absl::StrCat(element, ".optimizer.kind"),
               ftrl ? "FTRL" : "ADAGRAD_DA",
               "another rule in local steps: this one computes values from "
               "its state alone, which begins anew with each pass");
}

// The default, learning_rate, is the rate of the servers, which is 1 for the
// mean of the workers' values.
absl::Status CheckHasRate(absl::string_view element,
                          const VariableOptimizer& rule) {
  const bool has_rates = rule.schedule.has_value() &&
                         rule.schedule->schedule ==
                             LearningRateConfig::Schedule::kPiecewiseConstant;
  if (rule.learning_rate.has_value() || has_rates) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      element,
      ".learning_rate is not set, but the job has local steps, in which these "
      "variables have this rule: give its rate there; local.learning_rate is "
      "that of the others, and learning_rate that of the servers"));
}

}  // namespace

absl::Status CheckRulesOfLocalSteps(const JobConfig& job) {
  LOCKSTEP_RETURN_IF_ERROR(CheckKeepsValues("local", job.local.optimizer.kind));
  const std::vector<OptimizerConfig> optimizers = OptimizersOf(job);
  for (size_t i = 0; i < job.variable_optimizers.size(); ++i) {
    const std::string element = Element("variable_optimizers", i);
    const VariableOptimizer& rule = job.variable_optimizers[i];
    LOCKSTEP_RETURN_IF_ERROR(CheckKeepsValues(element, optimizers[i + 1].kind));
    LOCKSTEP_RETURN_IF_ERROR(CheckHasRate(element, rule));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
