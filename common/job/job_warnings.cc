#include "common/job/job_warnings.h"

#include "absl/strings/str_cat.h"
#include "common/job/learning_rate.h"

namespace lockstep {
namespace {

// `steps` are those that the schedule counts, `name` their fields.
void CheckSchedule(const std::string& field, const LearningRateConfig& rate,
                   const std::string& name, int64_t steps,
                   std::vector<std::string>& warnings) {
  using Schedule = LearningRateConfig::Schedule;
  const bool ends = rate.schedule == Schedule::kCosineDecay ||
                    rate.schedule == Schedule::kLinear ||
                    rate.schedule == Schedule::kCosine;
  // Other schedules go on after decay_steps.
  if (!ends || rate.decay_steps >= steps) return;
  warnings.push_back(absl::StrCat(
      field, ".decay_steps is ", rate.decay_steps, ", ", name, " is ", steps,
      ": the last ", steps - rate.decay_steps,
      " steps are made at a learning rate of ", LearningRate(rate, steps - 1),
      "; leave decay_steps out, which makes it ", name, ", or set it to ",
      steps));
}

// Below this, most of the change that workers have computed is thrown away.
constexpr double kLeastShareOfChange = 0.1;

// True if the rule multiplies the change by the rate. Rules that divide by the
// size of the change, such as Adam, do not.
bool AppliesAShare(OptimizerConfig::Kind kind) {
  return kind == OptimizerConfig::Kind::kGradientDescent ||
         kind == OptimizerConfig::Kind::kMomentum ||
         kind == OptimizerConfig::Kind::kSgd;
}

void CheckLocalRate(const JobConfig& job, std::vector<std::string>& warnings) {
  const double rate = job.learning_rate.base;
  if (!job.has_local_steps() || rate >= kLeastShareOfChange ||
      !AppliesAShare(job.optimizer.kind)) {
    return;
  }
  warnings.push_back(absl::StrCat(
      "learning_rate is ", rate, ", and local_steps is ", job.local_steps,
      ": servers apply that share of the change that workers have made; set it "
      "to 1 for the mean of their values. The rate of local steps is "
      "local.learning_rate"));
}

}  // namespace

std::vector<std::string> JobWarnings(const JobConfig& job) {
  std::vector<std::string> warnings;
  const std::vector<LearningRateConfig> rates = LearningRatesOf(job);
  CheckSchedule("learning_rate_schedule", rates[0], "train_steps",
                job.train_steps, warnings);
  for (size_t i = 0; i < job.variable_optimizers.size(); ++i) {
    // Without a schedule of its own, it has the job's, which is checked above.
    if (!job.variable_optimizers[i].schedule.has_value()) continue;
    CheckSchedule(
        absl::StrCat("variable_optimizers[", i, "].learning_rate_schedule"),
        rates[i + 1], "train_steps", job.train_steps, warnings);
  }
  if (job.has_local_steps()) {
    CheckSchedule("local.learning_rate_schedule", LocalLearningRateOf(job),
                  "train_steps * local_steps", AllLocalStepsOf(job), warnings);
  }
  CheckLocalRate(job, warnings);
  if (job.mode == SyncMode::kStrict && job.initial_tokens != -1) {
    warnings.push_back(absl::StrCat(
        "initial_tokens is ", job.initial_tokens,
        ", but mode is STRICT, which has no token queue: it changes nothing; "
        "leave it out, or set mode to COMPATIBLE"));
  }
  return warnings;
}

}  // namespace lockstep
