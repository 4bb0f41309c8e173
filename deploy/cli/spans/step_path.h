#ifndef LOCKSTEP_DEPLOY_CLI_SPANS_STEP_PATH_H_
#define LOCKSTEP_DEPLOY_CLI_SPANS_STEP_PATH_H_

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "deploy/cli/spans/job_trace.h"

namespace lockstep::cli {

// The parts of a step's time on its critical path.
enum class PathPart {
  kToken,      // until the worker has its token
  kReceiving,  // it brings values into its memory, or waits for them
  kReading,    // it waits for a batch
  kComputing,
  kAnnouncing,
  kSending,   // gradients, from the end of computing to the last server
  kUnknown,   // the worker takes part, but hands no spans in
  kAbsent,    // the worker has no spans of this time: it was not there
  kUpdating,  // the last server updates, or is busy when the gradients come;
              // mirrors: also the means are on their way
  kCommitting,
  kCheckpoint,  // servers copy their state aside
};
inline constexpr int kPathParts = 11;

using PathTimes = std::array<int64_t, kPathParts>;  // ns

// The time of one worker in one step.
struct WorkerStep {
  PathTimes times{};
  // Its last push, at the server that was last; mirrors: at any server; ns.
  int64_t arrived = 0;
};

// The critical path of one step, from the commit of the step before it to its
// own: the worker whose push came last, at the server that was prepared last.
struct StepPath {
  int64_t step = 0;  // as Span::step
  int64_t begin = 0;
  int64_t end = 0;
  int worker = 0;
  int server = 0;
  PathTimes times{};     // their sum is end - begin
  int64_t lateness = 0;  // of the worker, after the last but one of its set; ns
  std::map<int, WorkerStep> workers{};  // whose pushes came, by index
  int64_t last_update = 0;              // the last update alone, ns
  int parts = 0;                        // that the server updated

  int64_t duration() const { return end - begin; }
  int64_t of(PathPart part) const { return times[static_cast<int>(part)]; }
};

// Returns the paths of those steps whose spans are complete enough for one, in
// the order of steps. The clocks of `trace` must be aligned.
std::vector<StepPath> StepPaths(const JobTrace& trace);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SPANS_STEP_PATH_H_
