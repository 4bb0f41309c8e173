#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SERVER_PROCESS_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SERVER_PROCESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chief/servers/shard_calls.h"
#include "chief/servers/take_result.h"
#include "server/shard/chief_commands.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/member.h"
#include "tests/conformance/simulation/process.h"
#include "tests/conformance/simulation/world.h"

namespace lockstep::simulation {

// The answer to a push: outcomes, and the values of the parts.
struct PushReply {
  std::vector<PushOutcome> outcomes;
  std::vector<float> values;
};

struct PullReply {
  int64_t step = 0;
  std::vector<float> values;
};

// ServerProcess is a ps: the product's ShardHost, ChiefCommands and Shard,
// behind the calls that the services take from the wire. Some of the mistakes
// that are planted are made here.
class ServerProcess final : public Process {
 public:
  ServerProcess(Job& job, int server);
  ~ServerProcess() override;

  // For workers.
  void TakeToken(const Pass& pass, int64_t attempt, bool computing,
                 const World::Reply<Gate::Answer>& reply);
  absl::StatusOr<Gate::Announced> Announce(const Pass& pass);
  void AddPush(const Push& push, const World::Reply<PushReply>& reply);
  absl::StatusOr<PullReply> Pull(const Pass& pass, int first_part,
                                 int num_parts, int64_t step);

  // For chiefs.
  absl::StatusOr<uint64_t> TakeEpoch(const ChiefCommands::Chief& chief,
                                     uint64_t newer_than);
  absl::StatusOr<ServerReport> CreateShard(const ChiefCommands::Chief& chief,
                                           bool discard);
  absl::StatusOr<bool> WriteParts(const ChiefCommands::Chief& chief,
                                  const std::vector<PartState>& parts);
  absl::StatusOr<bool> Activate(const ChiefCommands::Chief& chief,
                                const ShardCalls::Opening& opening);
  void Take(const ChiefCommands::Chief& chief, int64_t step,
            int64_t commit_until, int64_t attempt,
            const World::Reply<TakeResult>& reply);
  // Returns the attempt that the step begins anew with, or 0.
  absl::StatusOr<int64_t> Commit(
      const ChiefCommands::Chief& chief, int64_t step, int64_t attempt,
      const std::vector<std::vector<int>>& contributors = {});
  absl::StatusOr<ShardCalls::Expired> ExpireWorker(
      const ChiefCommands::Chief& chief, int worker, uint64_t incarnation,
      int64_t step, int64_t attempt);
  absl::StatusOr<ShardCalls::Replaced> ReplaceMember(
      const ChiefCommands::Chief& chief, int worker, int64_t step,
      int64_t attempt);
  absl::StatusOr<ShardSnapshot> BeginSnapshot(
      const ChiefCommands::Chief& chief);
  absl::StatusOr<std::vector<PartState>> ReadSnapshot(
      const ChiefCommands::Chief& chief, int64_t step);
  absl::StatusOr<bool> CloseTokens(const ChiefCommands::Chief& chief);

  // What its step lacks, for a report.
  std::string WaitsFor() const;

 private:
  // The chief that the server takes it for.
  ChiefCommands::Chief ChiefOf(const ChiefCommands::Chief& chief);
  // Notes whom a call that was performed has obeyed.
  absl::Status Obeyed(const ChiefCommands::Chief& chief,
                      const absl::Status& status);
  absl::StatusOr<std::shared_ptr<Shard>> Admit(const Pass& pass);
  void BeforeEvent();
  void AfterEvent();
  void UpdateReturnedParts();
  void Send(ChiefCommands::Ready ready);
  void SendTokens(const std::vector<Gate::Answer>& answers);
  void CancelWaits();
  Shard* shard() const;
  void PlantInPush(Shard& shard, Push& push, uint64_t ticket);

  Job& job_;
  const int server_;
  ShardHost host_;
  ChiefCommands control_;
  Member member_;
  uint64_t tickets_ = 0;
  std::map<uint64_t, World::Reply<Gate::Answer>> waits_;
  std::map<uint64_t, World::Reply<PushReply>> pushes_;
  std::map<uint64_t, World::Reply<TakeResult>> takes_;
  // Before the event at hand.
  bool was_active_ = false;
  int64_t step_before_ = -1;
  std::vector<int> members_before_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SERVER_PROCESS_H_
