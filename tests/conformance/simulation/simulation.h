#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SIMULATION_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/conformance/simulation/cluster.h"
#include "tests/conformance/simulation/job.h"

namespace lockstep::simulation {

// Simulation runs one job from its start to its end, while processes are killed
// (servers with their state or without), hang, are replaced while they hang, or
// as elastic mirrors cannot open their state, and while the network loses,
// repeats, delays and cuts. After a while all of that ends, and the job must.
//
// The schedule follows from the seed alone.
class Simulation final : private Cluster {
 public:
  struct Result {
    std::vector<std::string> broken;  // promises; empty is what we want
    std::vector<std::string> trace;   // the last lines, if asked for
    int64_t events = 0;
    int kills = 0;
    int losses = 0;  // of a server's state
    int went_back = 0;
    Tally tally;
  };

  Simulation(const Options& options, uint64_t seed, bool tracing = false);

  Result Run();

 private:
  void Disturb();
  void KillOne(int place);
  void HangOne(int place);
  void CutOne();
  // Elastic mirrors: a worker and its mirror go together, for so long that the
  // job goes on without them, or for good.
  void LosePair();
  bool MayLosePair(int worker) const;
  void TakePairAway(int worker);
  void BringPairBack(int worker);
  // Whether mirror `server`, whose process has been killed, may come back with
  // a state that it cannot open.
  bool MayComeBroken(int server) const;
  void OnBrokenEnded(int server) override;
  // Operators change the job.
  void Steer();
  // The chief changes the micro-batches of a push.
  void Regroup();
  void RemoveOne();
  // True if the job keeps a worker that is not about to leave.
  bool AnotherStays(int worker) const;
  void AddOne();
  // Operators see to it that the job goes on.
  void Operate();
  // Brings about the event that may end the job before its last step.
  void BringTheEnd();

  Ending ending_;
  int64_t end_comes_ = 0;  // events
  int disturbances_left_;
  int64_t next_disturbance_ = 0;  // events
  // Goes with its mirror once that has prepared a step.
  std::optional<int> to_lose_;
  absl::Time pair_back_ = absl::InfinitePast();  // of the last that went
  // A chief that has just heard of a broken mirror needs mirror 0's state.
  absl::Time first_keeps_until_ = absl::InfinitePast();
  std::set<int> gone_;  // workers that went with their mirrors for good
  Result result_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SIMULATION_H_
