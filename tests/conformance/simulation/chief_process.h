#ifndef LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CHIEF_PROCESS_H_
#define LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CHIEF_PROCESS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "chief/checkpoint/checkpoint_policy.h"
#include "chief/job/recovery_round.h"
#include "chief/job/shard_group.h"
#include "chief/job/stall_watch.h"
#include "chief/job/step_pace.h"
#include "chief/job/sync_loop.h"
#include "chief/members/membership_table.h"
#include "common/base/retry_schedule.h"
#include "tests/conformance/simulation/chief_calls.h"
#include "tests/conformance/simulation/job.h"
#include "tests/conformance/simulation/process.h"
#include "tests/conformance/simulation/waiting.h"

namespace lockstep::simulation {

// ChiefProcess is a chief: the product's MembershipTable, RecoveryRound,
// ShardGroup, SyncLoop, StallWatch and schedules, joined in a fiber as Chief
// joins them in a thread.
class ChiefProcess final : public Process, private RecoverySource {
 public:
  explicit ChiefProcess(Job& job);
  ~ChiefProcess() override;

  // For members.
  absl::Status Register(const TaskId& task, uint64_t incarnation);
  // Whether the job is over.
  bool IsTraining() const { return training_; }
  absl::StatusOr<bool> Heartbeat(const TaskId& task, uint64_t incarnation);
  void Leave(const TaskId& task, uint64_t incarnation);
  bool HasPlan() const { return has_plan_; }

  // What it waits for, for a report.
  std::string WaitsFor() const;

 private:
  using Handler = std::function<absl::Status()>;

  void Main();
  absl::Status Run();
  bool WaitForMembers();
  // Whether the job was done before this chief started, which has opened
  // nothing and has waited this long for members.
  bool FinishedBefore(absl::Duration waited) const;
  absl::Status Recover();
  absl::Status Train();
  absl::Status NextStep();
  absl::Status SaveLastCheckpoint();
  absl::Status TrySaveLastCheckpoint();
  absl::Status StartCheckpoint();
  void JoinCheckpoint();
  void WaitForLeaves();

  absl::Status Tick();
  absl::Status Bury(const MembershipTable::Dead& dead);
  void ReplaceStalled();
  void HearOfAttempt(int64_t step, int64_t attempt);
  void AskAgain();
  void Ask(const SyncLoop::Actions& actions);
  absl::Status OnTake(int server, int64_t step,
                      const absl::StatusOr<TakeReply>& answer);
  absl::Status OnCommit(const SyncLoop::CommitAction& commit,
                        const absl::StatusOr<int64_t>& answer);
  void Hear(int server, const TakeReply& reply);
  // Runs `handler` in the loop, if the round at hand is still that one then.
  void Post(uint64_t epoch, Handler handler);

  absl::StatusOr<int64_t> LatestStep() const override;
  absl::StatusOr<std::optional<Restored>> Restore(const StateMap& map) override;
  void OnEpoch(uint64_t epoch) override;
  void OnStartFrom(const RecoveryPlan& plan, bool first) override;

  // One that no other process has.
  uint64_t Incarnation(uint64_t time) const;

  Job& job_;
  MembershipTable members_;
  std::vector<std::unique_ptr<ChiefCalls>> calls_;
  ShardGroup group_;
  std::optional<SyncLoop> loop_;
  RetrySchedule retries_;
  RetrySchedule burials_;
  std::optional<SyncLoop::CommitAction> commit_again_;
  std::optional<CheckpointPolicy> policy_;
  StallWatch stalls_;
  std::vector<std::vector<int>> contributors_;  // by server, as Chief has it
  absl::Time replace_again_ = absl::InfinitePast();
  int64_t committed_attempt_ = 0;
  int64_t granted_until_ = 0;
  int64_t told_until_ = 0;
  StepPace pace_;
  int64_t saved_step_ = -1;
  const absl::Time started_;
  absl::Time opened_ = absl::InfiniteFuture();
  absl::Time last_tick_;
  bool server_away_ = false;
  bool has_model_ = false;
  bool has_plan_ = false;
  bool training_ = false;
  bool over_ = false;
  bool checkpoint_running_ = false;
  std::deque<std::pair<uint64_t, Handler>> events_;
  Waiting waiting_;
  std::unique_ptr<Waiting> saver_;
};

}  // namespace lockstep::simulation

#endif  // LOCKSTEP_TESTS_CONFORMANCE_SIMULATION_CHIEF_PROCESS_H_
