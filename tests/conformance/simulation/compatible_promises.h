#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_COMPATIBLE_PROMISES_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_COMPATIBLE_PROMISES_H_

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "common/plan/run_settings.h"
#include "server/shard/shard.h"
#include "server/step/engine.h"
#include "tests/conformance/simulation/promises.h"

namespace lockstep::simulation {

// CompatiblePromises watches the servers of a job of compatible mode, as
// Promises does those of strict mode. By TensorFlow's rules alone it decides
// about each gradient, and computes each part from those that count:
//
//   a gradient is stale  if its stamp is older than the part
//   it counts once       per pass of a process of a worker
//   a part is updated    once it has as many as a step takes, with their mean
class CompatiblePromises {
 public:
  // A gradient that was too late.
  struct Drop {
    int worker = 0;
    int64_t pass = 0;
    int64_t stamp = 0;
    int64_t step = 0;  // of the part

    bool operator==(const Drop&) const = default;
  };

  // `replicas`: gradients of a step. Breaks are noted in `promises`.
  CompatiblePromises(std::vector<int> parts_of_server, int replicas,
                     Promises& promises);

  // A process of the server comes up; its state may be half a step.
  void OnStart(int server) { servers_[server].open = false; }
  void OnSettings(int server, const RunSettings& settings) {
    servers_[server].settings = settings;
  }
  // A gradient has come, and the server has said what becomes of it.
  void OnPush(int server, const Pass& pass, int part, float gradient,
              server::PushOutcome outcome);
  // Must be called after each event of an open server.
  void OnServer(int server, server::Shard& shard);
  void OnToken(int64_t step);
  void OnCheckpoint(int64_t step,
                    const std::vector<std::vector<PartState>>& servers);
  // A worker believes that its pass has counted.
  void OnClaim(const Pass& pass);

  // True if parts of open servers are beyond `step`: then no server can copy
  // that step any more.
  bool IsBeyond(int64_t step) const;

  // One for each gradient of a part, on any server.
  const std::vector<Drop>& drops() const { return drops_; }
  // By part, by step: the passes of which it was made, as they came.
  using Update = std::vector<Pass>;
  const std::vector<Update>& updates(int server, int part) const {
    return servers_[server].parts[part].updates;
  }

 private:
  struct Part {
    PartState state;
    std::map<int64_t, PartState> states;            // by step
    int64_t step = 0;                               // how often it was updated
    std::vector<std::pair<Pass, float>> gradients;  // since then
    std::map<int, std::pair<uint64_t, int64_t>> newest;  // by worker
    std::vector<Update> updates;
  };
  struct Server {
    bool open = false;
    RunSettings settings;
    std::vector<Part> parts;
  };

  void Open(int server, int64_t step);
  void UpdatePart(const Server& server, Part& part);

  const int replicas_;
  Promises& promises_;
  std::vector<Server> servers_;
  std::map<int64_t, std::vector<std::vector<PartState>>> checkpoints_;
  std::set<std::tuple<int, uint64_t, int64_t>> counted_;  // passes
  std::vector<Drop> drops_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_COMPATIBLE_PROMISES_H_
