#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CLUSTER_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/process.h"
#include "tests/conformance/simulation/world.h"

namespace lockstep::simulation {

// Cluster runs the processes of one job, all in one thread: it starts them,
// kills them, hangs them, starts again those that have ended, and judges how
// the job has ended. Simulation disturbs them at random, Script as a test says.
class Cluster {
 public:
  virtual ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

 protected:
  Cluster(const Options& options, uint64_t seed, bool tracing);

  // All that take part from the beginning.
  void StartAll();
  void Start(int place);
  void Restart(int place, absl::Duration delay);
  // Elastic mirrors: the next process of mirror `server`, not 0, cannot open
  // its state, unless mirror 0 has none when it starts.
  void BreakNext(int server) { to_break_.insert(server); }
  // Whether there is a process that cannot open its state.
  bool IsBroken(int place) const;
  bool HasBrokenMirror() const;
  // Such a process of mirror `server` has ended: so has its worker's, which
  // carried it. Nothing starts them again here.
  virtual void OnBrokenEnded(int server);
  // Takes away processes that have ended by themselves.
  void Reap();
  // As by SIGKILL; a server may lose its state with it.
  void Kill(int place, bool loses_state);
  void LoseState(int server);
  // As by SIGSTOP. `succeeded`: another process takes the place meanwhile, once
  // it is started, and no call reaches this one any more.
  void Hang(int place, absl::Duration time, bool succeeded);

  // No process hangs and the network is reliable from now on.
  void CalmDown();
  // After each event: the next one, and what follows from it.
  bool RunOne();
  bool AllEnded() const;
  // The schedule has taken too long.
  bool IsStuck() const;
  // Notes the promises that the end of the schedule breaks.
  void CheckEnd();
  // Ends all processes.
  void Clear();

  ChiefProcess* Chief() const;  // null: no chief answers operators

  World world_;
  Job job_;
  const int num_places_;
  std::vector<std::unique_ptr<Process>> processes_;        // by place
  std::vector<std::unique_ptr<Process>> successors_hung_;  // were replaced
  std::vector<bool> ended_;                                // by place
  std::set<int> lost_;  // places where no process comes back
  absl::Time calm_since_ = absl::InfiniteFuture();
  bool done_noted_ = false;

 private:
  void StartServer(int server);
  void NoteDone();
  // Whether the chief waits until the process has heard of the end.
  bool IsAwaited(int place) const;
  bool IsServerAwaited(int server) const;
  void CheckOutcome();
  bool MayFail() const;
  // Compatible mode: the input has ended in the midst of a step, which has
  // overwritten the last one, so there can be no checkpoint of it.
  bool HasLostLastStep() const;

  std::set<int> to_break_;  // as BreakNext() says
  std::set<int> must_end_;  // places whose process was fine at the end
  absl::Duration calm_before_done_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CLUSTER_H_
