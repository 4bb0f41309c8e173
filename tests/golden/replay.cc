#include "tests/golden/replay.h"

#include <exception>
#include <string>

#include "absl/strings/str_cat.h"

namespace lockstep::golden {
namespace {

void ReplaySparse(const Json& scenario, Report& report) {
  ReplaySparseAccumulator(scenario, server::SparseInput::kAsSent, report);
  if (!scenario.at("canonical_input").get<bool>()) return;
  ReplaySparseAccumulator(scenario, server::SparseInput::kCanonical, report);
}

struct Kind {
  const char* name;
  void (*replay)(const Json& scenario, Report& report);
};
constexpr Kind kKinds[] = {
    {"dense_accumulator", ReplayDenseAccumulator},
    {"sparse_accumulator", ReplaySparse},
    {"token_queue", ReplayTokenQueue},
    {"optimizer", ReplayOptimizer},
    {"moving_average", ReplayMovingAverage},
    {"clip", ReplayClip},
    {"partition", ReplayPartition},
    {"placement", ReplayPlacement},
    {"sync_loop", ReplaySyncLoop},
    {"torch_optimizer", ReplayTorchOptimizer},
    {"strategy_values", ReplayStrategyValues},
    {"strategy_variables", ReplayStrategyVariables},
    {"strategy_input", ReplayStrategyInput},
    {"strategy_training", ReplayStrategyTraining},
    {"run_steps", ReplayRunSteps},
};

absl::StatusOr<Outcome> Replay(const Json& scenario) {
  const std::string file = scenario.at("file");
  for (const Kind& kind : kKinds) {
    if (file != kind.name) continue;
    Outcome outcome;
    Report report;
    kind.replay(scenario, report);
    outcome.differences = report.differences();
    outcome.left_out = report.left_out();
    return outcome;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no replay for traces of kind \"", file, "\""));
}

}  // namespace

absl::StatusOr<Outcome> ReplayScenario(const Json& scenario) {
  try {
    return Replay(scenario);
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

}  // namespace lockstep::golden
