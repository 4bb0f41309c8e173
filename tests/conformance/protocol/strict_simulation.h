#ifndef LOCKSTEP_TESTS_CONFORMANCE_PROTOCOL_STRICT_SIMULATION_H_
#define LOCKSTEP_TESTS_CONFORMANCE_PROTOCOL_STRICT_SIMULATION_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chief/steps/sync_loop.h"
#include "server/step/strict/strict_engine.h"
#include "server/step/strict/strict_gate.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep {

// StrictSimulation runs the cores of strict mode, those of several servers and
// of the chief, with simulated workers, in one thread. What they say to each
// other is delivered in random order; while there is chaos, requests are
// repeated, delayed and answered to nobody, workers die and come again, and
// members that are slow are replaced.
//
// Every gradient has a number, so that the values of a committed step tell
// what they were made from. All that breaks a promise is noted in broken().
class StrictSimulation {
 public:
  struct Options {
    int replicas_to_aggregate = 2;
    int total_num_replicas = 2;
    std::vector<int> parts = {2, 1};  // by server
    int64_t steps = 4;                // then training ends
    int chaos_events = 250;           // after so many the network is reliable
  };

  StrictSimulation(const Options& options, uint32_t seed);

  // Until every worker has been told that training has ended.
  void Run();

  const std::vector<std::string>& broken() const { return broken_; }

  // What happened, so that a test can tell that something did.
  int64_t deaths() const { return deaths_; }
  int64_t redone_attempts() const { return redone_attempts_; }
  int64_t replaced() const { return replaced_; }

 private:
  // A request is performed by the server, for a caller that hears the answer
  // or, having been repeated, does not.
  using Request = std::function<void(bool heard)>;
  struct Event {
    int64_t not_before = 0;
    std::function<void()> run;
  };
  struct Worker {
    uint64_t incarnation = 1;
    bool alive = true;
    bool finished = false;
    uint64_t call = 0;  // what is answered under another number is too late
    Pass pass{0, 0, -1, 0, 0};
    float gradient = 0;  // its number
    int64_t attempt = 0;
    std::set<int> open_items;  // of the pulls or pushes at hand
    bool newer_seen = false;
    bool counted = false;
    bool doomed = false;  // taken for dead, rightly or not
  };
  struct Caller {
    int worker = 0;
    uint64_t incarnation = 0;
    uint64_t call = 0;
    int item = 0;  // of several that make one call
  };
  struct TakeCall {
    int server = 0;
    uint64_t call = 0;
    int64_t step = 0;
  };
  struct Server {
    explicit Server(const Options& options, int parts);
    server::FakePartUpdater updater;
    server::StrictEngine shard;
    std::map<int, uint64_t> expired;  // by worker: the newest incarnation
  };

  void Break(const std::string& what) { broken_.push_back(what); }
  int64_t Random(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }
  bool Chance(int percent) { return Random(100) < percent; }
  bool chaos() const { return now_ < options_.chaos_events; }
  void Post(std::function<void()> run, int64_t delay = 0);
  void Send(const Request& request);
  bool RunOne();

  // Workers, in the order of a pass.
  Worker* Find(const Caller& caller);
  Caller NewCall(int worker);
  bool Admits(int server, const Caller& caller);
  // A server refuses a call: fine only if the caller is taken for dead.
  void OnRefused(const Caller& caller, const absl::Status& status);
  void SendWait(int worker);
  void OnAnswer(const Caller& caller, const server::Gate::Answer& answer);
  void SendPulls(int worker);
  void OnPulled(const Caller& caller, bool newer);
  void SendAnnounce(int worker);
  void OnAnnounced(const Caller& caller,
                   const server::Gate::Announced& announced);
  void SendPushes(int worker);
  void SendPush(const Caller& caller, int server, const server::Push& push);
  void OnPushed(const Caller& caller, server::PushOutcome outcome);
  void EndPass(Worker& worker);

  // Servers' answers.
  void FinishWaits(const std::vector<server::Gate::Answer>& answers);
  void Finish(const server::ShardAnswers& answers);
  void OnCommit(int server, int64_t step,
                const std::vector<std::vector<float>>& values);
  void CheckSet(int64_t step, const std::vector<float>& gradients);

  // The chief.
  void Ask(const chief::SyncLoop::Actions& actions);
  void SendTake(int server, int64_t step);
  void OnTake(const TakeCall& call, const server::TakeAnswer& answer);
  void SendCommit(const chief::SyncLoop::CommitAction& commit);
  void PerformCommit(const chief::SyncLoop::CommitAction& commit,
                     uint64_t call);
  void OnCommitted(uint64_t call, const chief::SyncLoop::CommitAction& commit);
  void Kill(int worker);
  void ReplaceSomebody();
  void TellOfAttempt(size_t server, int64_t step, int64_t attempt);
  void Bury(int worker, uint64_t incarnation);
  void BuryOn(size_t server, int worker, uint64_t incarnation, int64_t step,
              int64_t attempt);
  void Restart(int worker, uint64_t incarnation);
  void CheckEnd();

  const Options options_;
  std::mt19937 random_;
  server::StrictGate gate_;
  std::deque<Server> servers_;
  chief::SyncLoop loop_;
  std::vector<Worker> workers_;

  int64_t now_ = 0;  // events so far
  std::vector<Event> events_;
  uint64_t tickets_ = 0;
  std::map<uint64_t, Caller> waits_;
  std::map<uint64_t, Caller> pushes_;
  std::map<uint64_t, TakeCall> takes_;
  std::map<int, uint64_t> take_calls_;  // by server: the one at hand
  uint64_t commit_call_ = 0;

  std::map<float, Pass> gradients_;              // all that were ever computed
  std::map<int64_t, std::vector<int>> members_;  // by step, of the gate
  std::map<int64_t, std::vector<float>> sets_;   // by step, of the values
  std::vector<std::pair<int64_t, float>> claims_;  // what workers say counted
  int64_t deaths_ = 0;
  int64_t redone_attempts_ = 0;
  int64_t replaced_ = 0;
  std::vector<std::string> broken_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONFORMANCE_PROTOCOL_STRICT_SIMULATION_H_
