#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SIMULATION_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/process.h"
#include "tests/conformance/simulation/world.h"

namespace lockstep::simulation {

// Simulation runs one job, all its processes in one thread, from its start to
// its end, while processes are killed (servers with their state or without),
// hang, are replaced while they hang, and while the network loses, repeats,
// delays and cuts. After a while all of that ends, and the job must.
//
// The schedule follows from the seed alone.
class Simulation {
 public:
  struct Result {
    std::vector<std::string> broken;  // promises; empty is what we want
    std::vector<std::string> trace;   // the last lines, if asked for
    int64_t events = 0;
    int kills = 0;
    int losses = 0;  // of a server's state
    int went_back = 0;
  };

  Simulation(const Options& options, uint64_t seed, bool tracing = false);
  ~Simulation();

  Result Run();

 private:
  void Start(int place);
  void Restart(int place, absl::Duration delay);
  // Takes away processes that have ended by themselves.
  void Reap();
  void Disturb();
  void KillOne(int place);
  void HangOne(int place);
  void CutOne();
  // Operators change the job.
  void Steer();
  void RemoveOne();
  void AddOne();
  // Operators see to it that the job goes on.
  void Operate();
  // What may end the job before its last step comes true.
  void BringTheEnd();
  void CalmDown();
  void NoteDone();
  bool AllEnded() const;
  void CheckEnd();
  void CheckOutcome();
  bool MayFail() const;
  ChiefProcess* Chief() const;  // null: nobody answers operators

  World world_;
  Job job_;
  const int num_places_;
  std::vector<std::unique_ptr<Process>> processes_;        // by place
  std::vector<std::unique_ptr<Process>> successors_hung_;  // were replaced
  std::vector<bool> ended_;                                // by place
  Ending ending_;
  int64_t end_comes_ = 0;   // events
  std::set<int> lost_;      // places where nobody comes back
  std::set<int> must_end_;  // places whose process was fine at the end
  int disturbances_left_;
  int64_t next_disturbance_ = 0;  // events
  absl::Time calm_since_ = absl::InfiniteFuture();
  bool done_noted_ = false;
  absl::Duration calm_before_done_;
  Result result_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SIMULATION_H_
