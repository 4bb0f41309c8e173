#ifndef LOCKSTEP_DEPLOY_CLI_SPANS_EXPLANATION_H_
#define LOCKSTEP_DEPLOY_CLI_SPANS_EXPLANATION_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/trace/remedy_limits.h"
#include "deploy/cli/spans/step_path.h"

namespace lockstep::cli {

// The remedies for slow steps.
enum class Remedy {
  kBackup,               // one more backup, or a faster machine for one worker
  kEqualWorkers,         // the same where a job can have no backups
  kSmallerMicroBatches,  // shared work: workers wait for the last micro-batch
  kMendWorker,           // a worker dies again and again
  kFasterReader,         // batches come too slowly
  kWorkerNetwork,  // the pushes of one worker take longer than the others'
  kSharedMemory,   // worker and server of one host use the network
  kLargerPushes,   // shared work: more micro-batches in each push
  kBFloat16,       // gradients of half the size
  kMoreParts,      // a server updates few large parts, one after the other
  kMoreServers,    // the servers are busy
  kMoreCompute,    // computing takes the time
};

// Returns its name in JSON, e.g. "more_servers".
std::string RemedyName(Remedy remedy);

// One remedy and the evidence for it.
struct Advice {
  Remedy remedy = Remedy::kMoreCompute;
  double share = 0;  // of the time of all steps that it is about, in [0, 1]
  int worker = -1;   // that it is about; -1: none
  int server = -1;   // likewise
};

// Why the steps of a job take as long as they do.
struct Explanation {
  int64_t first_step = 0;  // numbered from 1, as people see them
  int64_t last_step = 0;
  int workers = 0;  // that handed spans in
  int servers = 0;
  int64_t clock_error = 0;  // ns, as ClockError()
  std::vector<std::string> silent;
  StepPath median;
  StepPath slowest;
  // Shares of the time of all steps, in [0, 1], by PathPart; their sum is 1.
  std::array<double, kPathParts> shares{};
  double waiting = 0;  // for the last worker of a step, of the same time
  // By worker: the share of that time, and the steps in which it was the last.
  std::map<int, double> waiting_for;
  std::map<int, int> last;
  std::map<int, int> deaths;  // by worker, in these steps
  bool shared_work = false;   // steps consist of micro-batches
  RemedyLimits limits;
  int steps = 0;
  std::vector<Advice> advice;  // the one that would help most comes first

  double share(PathPart part) const { return shares[static_cast<int>(part)]; }
  // Values and gradients on their way, and answers of ps 0.
  double network() const {
    return share(PathPart::kToken) + share(PathPart::kReceiving) +
           share(PathPart::kAnnouncing) + share(PathPart::kSending);
  }
};

// Explains the newest `steps` steps of a trace. Aligns its clocks.
//
//   kFailedPrecondition  the spans show no whole step
absl::StatusOr<Explanation> Explain(JobTrace trace, int64_t steps);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SPANS_EXPLANATION_H_
