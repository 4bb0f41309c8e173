#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_PROCESS_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/member.h"
#include "tests/conformance/simulation/process.h"
#include "tests/conformance/simulation/waiting.h"
#include "tests/conformance/simulation/worker_client.h"

namespace lockstep::simulation {

// WorkerProcess is a worker: the product's TrainingLoop, in a fiber, with
// gradients that tell what they were computed from.
class WorkerProcess final : public Process {
 public:
  WorkerProcess(Job& job, int worker);
  ~WorkerProcess() override;

  bool IsMember() const { return member_.joined(); }
  // That its last gradient was computed for; -1: none yet.
  int64_t computed_step() const { return computed_step_; }
  // As by SIGTERM, to a member: it leaves the job, for good.
  void Stop();

 private:
  void Main();
  // Returns only if the chief has not heard it and the worker must join again.
  Member::End LeaveFor(LeaveCause cause);
  // Until the membership ends.
  Member::End RunOnce();
  absl::Status Train();

  Job& job_;
  const int worker_;
  Member member_;
  std::optional<Member::End> end_;
  bool stopped_ = false;
  int64_t passes_ = 0;  // of this process
  int64_t computed_step_ = -1;
  // The one in use comes last. Answers may still come for the others.
  std::vector<std::unique_ptr<WorkerClient>> clients_;
  Waiting waiting_;  // its fiber ends before the members above
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_WORKER_PROCESS_H_
