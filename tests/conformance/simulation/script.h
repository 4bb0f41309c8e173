#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SCRIPT_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SCRIPT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/conformance/simulation/cluster.h"
#include "tests/conformance/simulation/job.h"

namespace lockstep::simulation {

class ServerProcess;
class WorkerProcess;

// Script runs one job as a test says: nothing happens that the test does not
// bring about, and calls take a millisecond or less.
//
//   Script script({2, 2, {1}});
//   script.UntilCommitted(3);
//   script.Kill(script.job().server_place(0), /*loses_state=*/true);
//   script.StartAgain(script.job().server_place(0));
//   EXPECT_THAT(script.Finish(), IsEmpty());
//
// What a promise forbids ends the schedule; Finish() returns it.
class Script final : private Cluster {
 public:
  // Starts no process yet. `seed`: how long calls and computations take.
  explicit Script(const Options& options, uint64_t seed = 1);

  Job& job() { return job_; }
  World& world() { return world_; }
  ChiefProcess& chief() { return *job_.chief; }
  ServerProcess& server(int server) { return *job_.servers[server]; }
  WorkerProcess& worker(int worker);
  bool IsThere(int place) const { return processes_[place] != nullptr; }

  using Cluster::StartAll;
  // A process comes up at a place that has none.
  void StartAgain(int place) { Start(place); }
  // One of mirror `server` that cannot open its state. Once it has ended, it
  // and its worker stay away until StartAgain().
  void StartBroken(int server) {
    BreakNext(server);
    Start(job_.server_place(server));
  }
  // A killed process stays away until StartAgain().
  void Kill(int place, bool loses_state = false);
  void Hang(int place, absl::Duration time) {
    Cluster::Hang(place, time, /*succeeded=*/false);
  }
  void WakeUp(int place) { world_.WakeUp(processes_[place]->number()); }
  // The chief hangs until WakeOldChief(), and another one starts at once.
  void ReplaceChief();
  ChiefProcess& old_chief();  // that was replaced last
  // Members reach it from now on.
  void WakeOldChief();
  void KillOldChief() { successors_hung_.pop_back(); }

  // Runs until `over`; false, which breaks the schedule, if that has not come
  // after `within`.
  bool Until(const std::string& what, const std::function<bool()>& over,
             absl::Duration within = absl::Seconds(30));
  bool UntilCommitted(int64_t step);
  void For(absl::Duration time);

  // The promises that are broken so far, and the newest lines of the trace.
  std::vector<std::string> Broken() const;
  // Runs the job to its end, which must come. Returns Broken().
  std::vector<std::string> Finish();
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SCRIPT_H_
