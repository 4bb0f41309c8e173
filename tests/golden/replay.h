#ifndef LOCKSTEP_TESTS_GOLDEN_REPLAY_H_
#define LOCKSTEP_TESTS_GOLDEN_REPLAY_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/step/compatible/sparse_accumulator.h"
#include "tests/golden/report.h"
#include "tests/golden/trace.h"

// Replays scenarios through the classes of the product. Each function executes
// the operations of one kind of scenario and reports every answer that differs
// from TensorFlow's or PyTorch's; no function knows single scenarios.
namespace lockstep::golden {

struct Outcome {
  std::vector<Difference> differences;
  std::map<std::string, int> left_out;  // operations, by reason
};

//   kInvalidArgument  the scenario is of an unknown kind, lacks a field, or has
//                     one of a wrong type
absl::StatusOr<Outcome> ReplayScenario(const Json& scenario);

// These throw if a scenario is malformed; see trace.h.
void ReplayDenseAccumulator(const Json& scenario, Report& report);
// `input` may be kCanonical for scenarios whose "canonical_input" is true.
void ReplaySparseAccumulator(const Json& scenario, server::SparseInput input,
                             Report& report);
void ReplayTokenQueue(const Json& scenario, Report& report);
void ReplayOptimizer(const Json& scenario, Report& report);
void ReplayMovingAverage(const Json& scenario, Report& report);
void ReplayClip(const Json& scenario, Report& report);
void ReplayPartition(const Json& scenario, Report& report);
void ReplayPlacement(const Json& scenario, Report& report);
void ReplaySyncLoop(const Json& scenario, Report& report);
void ReplayTorchOptimizer(const Json& scenario, Report& report);
void ReplayStrategyValues(const Json& scenario, Report& report);
void ReplayStrategyVariables(const Json& scenario, Report& report);
void ReplayStrategyInput(const Json& scenario, Report& report);
void ReplayStrategyTraining(const Json& scenario, Report& report);
void ReplayRunSteps(const Json& scenario, Report& report);

}  // namespace lockstep::golden

#endif  // LOCKSTEP_TESTS_GOLDEN_REPLAY_H_
