#ifndef LOCKSTEP_TESTS_BENCHMARK_OVERLAP_SCHEDULE_H_
#define LOCKSTEP_TESTS_BENCHMARK_OVERLAP_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::benchmark {

// How compute and transfer are laid out in one job. A round is a block of steps
// that only transfer, then for each balance a block that sends when all is
// computed and a block that sends meanwhile, so that what is compared was
// measured within seconds of each other.
struct OverlapOptions {
  int64_t bytes = 0;  // of the model
  int layers = 25;    // of equal size, > 0
  // What the forward pass takes of the compute time.
  double forward_share = 1.0 / 3;
  std::vector<double> balances = {0.5, 1, 2};  // compute / transfer, > 0
  // Steps of a block, more than two: the first two show what was before.
  int block = 30;
  int rounds = 3;
  bool spin = false;  // compute keeps a core busy
};

enum class OverlapPhase { kTransfer, kSerial, kOverlapped };

// What happens in a step.
struct OverlapStep {
  OverlapPhase phase = OverlapPhase::kTransfer;
  size_t balance = 0;  // index; of all phases but kTransfer
  int round = 0;
};

int64_t TotalSteps(const OverlapOptions& options);
OverlapStep StepAt(const OverlapOptions& options, int64_t index);

// One step as a worker saw it. Units: milliseconds.
struct OverlapSample {
  double step = 0;     // from its begin to the next one's
  double compute = 0;  // what of it was spent on computing
};

// What no step can be shorter than: beside all compute the transfer of the
// first layer, whose gradient is computed last and whose value is needed first;
// beside all transfer the compute between the last value and the first
// gradient. Units: those of the arguments.
double ShortestStep(const OverlapOptions& options, double compute,
                    double transfer);

// One line of JSON for each balance, each with its line's end. `samples` has
// one for each step, from the first.
std::string OverlapReport(const OverlapOptions& options,
                          const std::vector<OverlapSample>& samples);

// The lines of OverlapReport() for people, with the goal where there is one.
std::string OverlapTable(const std::string& report);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_OVERLAP_SCHEDULE_H_
