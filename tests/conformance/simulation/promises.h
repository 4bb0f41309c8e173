#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_PROMISES_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_PROMISES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/plan/run_settings.h"
#include "server/shard/shard.h"

namespace lockstep::simulation {

// What there is of one part at one step.
struct PartState {
  float value = 1;
  float momentum = 0;
  bool operator==(const PartState&) const = default;
};

// Promises watches a simulated job from outside and notes violations of the
// promises P1 to P7, P11 and P12 of the design. It computes every step with a
// model of its own, and compares the values that servers have committed with
// it, bit by bit. All arithmetic of the model is exact, but for clipping, which
// rounds as the servers do.
//
// Units: parts are numbered over all servers, server after server.
class Promises {
 public:
  struct Kind {
    bool limits_mean = false;  // as Options has it
    bool sparse = false;       // likewise
    // Every server has all parts, and all of so many workers count; 0: servers
    // share the parts.
    int mirrors = 0;
    // Values are updated in place, in compatible mode: a process that ends may
    // leave half a step, and CompatiblePromises watches the values.
    bool in_place = false;
    // A step takes all its numbers, whichever workers compute them; its members
    // are as many times worker 0.
    bool shared = false;
  };
  Promises(std::vector<int> parts_of_server, const Kind& kind);

  // The largest norm of the mean gradients of all parts, if it is limited.
  static constexpr double kLimit = 2;
  static constexpr float kMomentum = 0.5F;  // of the job, whose base rate is 1
  // What a server has of one of its parts.
  static PartState StateOf(server::Shard& shard, int part);

  const std::vector<std::string>& broken() const { return broken_; }
  void Break(const std::string& what);

  int num_parts() const { return num_parts_; }
  int FirstPart(int server) const { return first_part_[server]; }

  // The gradient that a worker makes of a part, given its value.
  static float Gradient(int64_t step, int worker, int slot, int part,
                        float value);

  // Whether a worker's pass has no gradient of a part.
  bool IsAbsent(int64_t step, int worker, int slot, int part) const;

  // Must be called after each event of a server. Null: the process has gone or
  // has no shard.
  void OnServer(int server, server::Shard* shard);
  // The server's state is gone for good; the chief has it discarded.
  void OnStateLost(int server);
  // A process of the server comes up, with or without the state of another.
  void OnStart(int server) { servers_[server].lost |= kind_.in_place; }
  void OnDiscard(int server);
  // A process comes up that has no state file, and so knows no epoch.
  void OnStartWithoutState(int server) { servers_[server].epoch = 0; }
  // ps task 0 has committed `step`, of the gradients of `members`.
  void OnCommit(int64_t step, const std::vector<int>& members);
  // ps task 0 was opened by a chief: its job runs like this from now on.
  void OnSettings(const RunSettings& settings) {
    settings_before_ = std::exchange(settings_, settings);
  }
  // ps task 0 has opened at `step`, and was not open.
  void OnOpen(int64_t step);
  // The round of this epoch brings these servers together.
  void OnRound(uint64_t epoch, const std::vector<int>& servers) {
    rounds_[epoch] = servers;
  }
  // The chief of this epoch has opened the server.
  void OnActivate(int server, uint64_t epoch);
  // A chief takes it that only mirrors which are away can have the state.
  void OnStateElsewhere();

  void OnToken(int64_t step);
  // Chiefs by their incarnation.
  void OnEpoch(int server, uint64_t epoch, uint64_t chief);
  void OnObeyed(int server, uint64_t epoch, uint64_t chief);
  // A call of a worker was performed.
  void OnAdmitted(int server, bool active);
  // A worker that joined in `history` computes, on these values, or says that
  // its gradient has counted for `step`. A ps task 0 that has opened since
  // cannot have told it otherwise.
  void OnCompute(int history, int64_t step, const std::vector<float>& values);
  void OnClaim(int history, int64_t step, int worker);
  void OnCheckpoint(int64_t step,
                    const std::vector<std::vector<PartState>>& servers);

  // Counts how often the job went back to a checkpoint.
  int history() const { return history_; }
  int64_t committed() const { return committed_; }
  // True if ps task 0 has the state of the job.
  bool FirstHasState() const {
    return committed_ >= 0 && !going_back_ && !servers_[0].lost;
  }
  // True if the server has prepared a step that is not committed.
  bool IsAhead(int server) const {
    return servers_[server].prepared > committed_;
  }

 private:
  struct Server {
    int64_t committed = -1;
    int64_t prepared = -1;
    bool checked = false;  // the values of `committed`
    bool lost = false;     // its state, since ps task 0 opened last
    uint64_t epoch = 0;
    uint64_t chief = 0;  // whose epoch it is
    // The epoch of the round that opened it last, and of the one before.
    uint64_t opened = 0;
    uint64_t opened_before = 0;
    int history = 0;  // in which it took part last
  };

  // By part, the mean gradient of a step; nothing where all are absent.
  std::vector<std::optional<float>> MeanOf(
      int64_t step, const std::vector<int>& members) const;
  float ScaleOf(const std::vector<std::optional<float>>& mean) const;
  std::vector<PartState> After(int64_t step,
                               const std::vector<int>& members) const;
  void CheckMembers(int64_t step, const std::vector<int>& members);
  void CheckValues(int server, server::Shard& shard);
  bool HasParts(size_t server) const {
    return kind_.mirrors > 0 || parts_of_server_[server] > 0;
  }
  // Mirrors: the workers whose gradients a step takes.
  std::vector<int> WorkersOf(const RunSettings& settings) const;
  // False for a mirror that has missed the last opening of ps task 0: what it
  // has does not count, until it has copied another's state.
  bool TakesPart(size_t server) const {
    return kind_.mirrors == 0 || servers_[server].opened >= opening_;
  }
  // Mirrors, in the round of `epoch`: ps task 0 has no state, and another
  // server was opened later than this one. Chiefs cannot tell that ps task 0
  // was not, so it need not count.
  bool IsLate(size_t server, uint64_t epoch) const;
  bool IsInRound(size_t server, uint64_t epoch) const;
  // A mirror discards its state: to copy another's, unless it has its own.
  void OnMirrorDiscard(int server);
  // ps task 0 has lost its state, but all others have prepared the step after
  // the one that it was known to have committed: the job goes on from there, in
  // the round of `epoch`. `settings`: those of that step.
  void OnCommitOfTheLost(int64_t step, RunSettings settings, uint64_t epoch);

  const std::vector<int> parts_of_server_;
  const Kind kind_;
  std::vector<int> first_part_;
  int num_parts_ = 0;
  std::vector<Server> servers_;
  int64_t committed_ = -1;
  int64_t opened_ = -1;                          // where ps task 0 opened last
  uint64_t opening_ = 0;                         // the epoch of that round
  std::map<uint64_t, std::vector<int>> rounds_;  // servers, by epoch
  int history_ = 0;
  bool going_back_ = false;
  RunSettings settings_;
  RunSettings settings_before_;  // the last opening of ps task 0
  std::map<int64_t, std::vector<PartState>> model_;  // by step
  std::map<int64_t, std::vector<int>> sets_;         // by step
  std::vector<std::string> broken_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_PROMISES_H_
