#ifndef LOCKSTEP_TESTS_BENCHMARK_OVERLAP_SCHEDULE_H_
#define LOCKSTEP_TESTS_BENCHMARK_OVERLAP_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::benchmark {

// The arrangement of compute and transfer in one job. A round is a block of
// transfer-only steps, then for each balance a block that sends after all
// compute and a block that sends during it, so that compared figures are
// measured within seconds of each other.
struct OverlapOptions {
  int64_t bytes = 0;  // of the model
  int layers = 25;    // of equal size, > 0
  // Fraction of the compute time in the forward pass.
  double forward_share = 1.0 / 3;
  std::vector<double> balances = {0.5, 1, 2};  // compute / transfer, > 0
  // Steps of a block, more than two: the first two still show the previous
  // block.
  int block = 30;
  int rounds = 3;
  bool spin = false;  // compute keeps a core busy
};

enum class OverlapPhase { kTransfer, kSerial, kOverlapped };

// The contents of a step.
struct OverlapStep {
  OverlapPhase phase = OverlapPhase::kTransfer;
  size_t balance = 0;  // index; of all phases but kTransfer
  int round = 0;
};

int64_t TotalSteps(const OverlapOptions& options);
OverlapStep StepAt(const OverlapOptions& options, int64_t index);

// One step as measured by a worker. Units: milliseconds.
struct OverlapSample {
  double step = 0;     // from its start to that of the next step
  double compute = 0;  // part of it spent on computing
};

// Lower bound of a step: all compute plus the transfer of the first layer,
// whose gradient is computed last and whose value is needed first; or all
// transfer plus the compute between the last value and the first gradient.
// Units: those of the arguments.
double ShortestStep(const OverlapOptions& options, double compute,
                    double transfer);

// Returns one line of JSON for each balance, including line ends. `samples` has
// one element per step, from the first.
std::string OverlapReport(const OverlapOptions& options,
                          const std::vector<OverlapSample>& samples);

// Formats the lines of OverlapReport() for people, with the goal if there is
// one.
std::string OverlapTable(const std::string& report);

}  // namespace lockstep::benchmark

#endif  // LOCKSTEP_TESTS_BENCHMARK_OVERLAP_SCHEDULE_H_
