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
#include "common/plan/part.h"
#include "server/shard/chief_commands.h"
#include "server/shard/lost_callers.h"
#include "server/shard/lost_news.h"
#include "server/shard/mean_requests.h"
#include "server/shard/mean_waits.h"
#include "server/step/postponed_calls.h"
#include "server/step/strict/mirror_parts.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/lent_views.h"
#include "tests/conformance/simulation/member.h"
#include "tests/conformance/simulation/process.h"
#include "tests/conformance/simulation/world.h"

namespace lockstep::simulation {

// The answer to a push: outcomes, and the values of the parts.
struct PushReply {
  std::vector<server::PushOutcome> outcomes;
  std::vector<LentValue> values;
};

struct PullReply {
  int64_t step = 0;
  std::vector<LentValue> values;
};

// ServerProcess is a ps: the product's ShardHost, ChiefCommands and Shard,
// behind the calls that the services take from the wire. Some of the mistakes
// that are planted are made here.
class ServerProcess final : public Process {
 public:
  // Elastic mirrors: why a process cannot open its state, until it ends.
  enum class Fault {
    kNone,
    kDiskIsFull,  // it cannot draw an epoch
    kDamaged,     // it cannot create its shard
  };

  ServerProcess(Job& job, int server, Fault fault = Fault::kNone);
  ~ServerProcess() override;

  // For workers.
  void TakeToken(const Pass& pass, int64_t attempt, bool computing,
                 const World::Reply<server::Gate::Answer>& reply);
  absl::StatusOr<server::Gate::Announced> Announce(const Pass& pass);
  void AddPush(const server::Push& push, const World::Reply<PushReply>& reply);
  // `share`: as LentViews::Read() has it.
  struct PullCall {
    Pass pass;
    int first_part = 0;
    int64_t step = 0;
    bool share = false;
  };
  void Pull(const PullCall& call, const World::Reply<PullReply>& reply);

  // For the other mirrors: the mean of one part. Waits until it is there.
  struct Mean {
    float value = 0;
    bool absent = false;
  };
  void FetchMean(const TaskId& from, uint64_t incarnation,
                 const server::StepAttempt& of, int part,
                 const World::Reply<Mean>& reply);

  // For chiefs.
  absl::StatusOr<uint64_t> TakeEpoch(const server::ChiefCommands::Chief& chief,
                                     uint64_t newer_than);
  // `planned`: the parts of all servers.
  absl::StatusOr<chief::ServerReport> CreateShard(
      const server::ChiefCommands::Chief& chief,
      const std::vector<Part>& planned, bool discard);
  absl::StatusOr<bool> WriteParts(const server::ChiefCommands::Chief& chief,
                                  const std::vector<PartState>& parts);
  absl::StatusOr<bool> Activate(const server::ChiefCommands::Chief& chief,
                                const chief::ShardCalls::Opening& opening);
  void Take(const server::ChiefCommands::Chief& chief,
            const server::ChiefCommands::TakeOrder& order,
            const World::Reply<chief::TakeResult>& reply);
  // Returns the attempt that the step begins anew with, or 0.
  absl::StatusOr<int64_t> Commit(
      const server::ChiefCommands::Chief& chief, int64_t step, int64_t attempt,
      const std::vector<std::vector<int>>& contributors = {});
  absl::StatusOr<chief::ShardCalls::Expired> ExpireWorker(
      const server::ChiefCommands::Chief& chief, int worker,
      uint64_t incarnation, int64_t step, int64_t attempt,
      bool input_ended = false);
  absl::StatusOr<chief::ShardCalls::Replaced> ReplaceMember(
      const server::ChiefCommands::Chief& chief, int worker, int64_t step,
      int64_t attempt);
  absl::StatusOr<chief::ShardSnapshot> BeginSnapshot(
      const server::ChiefCommands::Chief& chief);
  absl::StatusOr<std::vector<PartState>> ReadSnapshot(
      const server::ChiefCommands::Chief& chief, int64_t step);
  absl::StatusOr<bool> CloseTokens(const server::ChiefCommands::Chief& chief);

  // The connection of a worker's process has ended.
  void LostConnection(uint64_t incarnation) {
    lost_.Ended(incarnation, job_.world.Now());
    job_.world.AfterFor(number_, server::LostCallers::kGrace,
                        [this] { TellOfLost(); });
  }

  bool IsMember() const { return member_.joined(); }
  bool IsBroken() const { return fault_ != Fault::kNone; }
  bool HasShard() const { return shard() != nullptr; }
  bool IsOpen() const { return shard() != nullptr && shard()->active(); }
  // Whether the worker is in the set of the step at hand; for ps task 0.
  bool HasMember(int worker) const;
  // That wait for a token; for ps task 0.
  std::vector<server::Gate::Waiting> WaitingWorkers() const {
    return shard()->gate()->WaitingWorkers();
  }
  // What its step lacks, for a report.
  std::string WaitsFor() const;

 private:
  // The chief that the server takes it for.
  server::ChiefCommands::Chief ChiefOf(
      const server::ChiefCommands::Chief& chief);
  // Notes the chief that a performed call has obeyed.
  absl::Status Obeyed(const server::ChiefCommands::Chief& chief,
                      const absl::Status& status);
  absl::StatusOr<std::shared_ptr<server::Shard>> Admit(const Pass& pass);
  // As Replies::Postpone().
  bool Postpone(server::Shard& open, int64_t step,
                server::PostponedCalls::GoOn go_on);
  absl::StatusOr<PullReply> ValuesFor(const PullCall& call,
                                      server::Shard& open);
  void NoteOutcome(const server::Push& push,
                   const server::ShardAnswers& answers);
  std::vector<LentValue> Read(const std::vector<server::LentBytes>& lent,
                              bool share);
  void BeforeEvent();
  void AfterEvent();
  void UpdateReturnedParts();
  void Send(server::ChiefCommands::Ready ready);
  void SendTokens(const std::vector<server::Gate::Answer>& answers);
  // As Replies::AnswerOld() does.
  void AnswerLateTake(uint64_t ticket);
  void TellOfLost();
  // As Replies::LetGo().
  void LetGo();
  // As MirrorService and MeanFetcher do.
  void AnswerMeans();
  void SendMeans(const std::vector<server::MeanWaits::Answer>& answers);
  void LookForMeans();
  void AskForMean(int part, int reducer);
  absl::Status TakeMean(const std::weak_ptr<server::Shard>& asked,
                        const server::StepAttempt& of, int part,
                        const Mean& mean);
  server::Shard* shard() const;
  void PlantInPush(server::Shard& shard, server::Push& push, uint64_t ticket);
  void PlantInTake(server::ChiefCommands::TakeOrder& order);

  Job& job_;
  const int server_;
  const Fault fault_;
  const uint64_t host_incarnation_;
  server::ShardHost host_;
  server::ChiefCommands control_;
  Member member_;
  // A process has one stream here, whose number is its incarnation.
  server::LostCallers lost_;
  server::LostNews news_;
  server::PostponedCalls postponed_;
  LentViews views_{job_, server_};
  uint64_t tickets_ = 0;
  // For planted bugs.
  std::optional<double> last_norm_;
  double last_squares_ = 0;
  std::map<uint64_t, World::Reply<server::Gate::Answer>> waits_;
  std::map<uint64_t, World::Reply<PushReply>> pushes_;
  std::map<uint64_t, World::Reply<chief::TakeResult>> takes_;
  server::MeanWaits mean_waits_;
  std::map<uint64_t, World::Reply<Mean>> mean_calls_;
  server::MeanRequests mean_requests_;
  // Before the event at hand.
  bool was_active_ = false;
  int64_t step_before_ = -1;
  std::vector<int> members_before_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_SERVER_PROCESS_H_
