#ifndef LOCKSTEP_CHIEF_JOB_RECOVERY_H_
#define LOCKSTEP_CHIEF_JOB_RECOVERY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/checkpoint/given_values.h"
#include "chief/checkpoint/job_checkpoints.h"
#include "chief/events/job_actions.h"
#include "chief/job/job_driver.h"
#include "chief/members/membership_table.h"
#include "chief/operators/status_table.h"
#include "chief/recovery/recovery_round.h"
#include "chief/shard_group_client.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/job/job_config.h"

namespace lockstep::chief {

// ActionCarrier carries out the actions of a job's driver.
class ActionCarrier {
 public:
  virtual ~ActionCarrier() = default;
  virtual void Carry(const JobActions& actions) = 0;
};

// JobRecovery runs the rounds that bring the servers of a job to one step. It
// places the model's parts, and is the rounds' source: it gives servers the
// values of a checkpoint, of a worker or of the job's file, and asks the driver
// for decisions.
//
// Threads: belongs to the chief's loop, except RequestStop(); map() may be read
// while no round runs.
// Borrows: what Parts names, and the carrier of the driver's actions.
class JobRecovery final : private RecoverySource {
 public:
  struct Parts {
    const JobConfig& job;
    const Clock& clock;
    ShardGroupClient& servers;
    MembershipTable& members;
    StatusTable& status;
    GivenValues& given_values;
    JobCheckpoints& checkpoints;
    JobDriver& driver;
  };
  JobRecovery(const Parts& parts, ActionCarrier& carrier)
      : parts_(parts),
        carrier_(carrier),
        round_(parts.job, parts.servers, parts.members, *this, parts.clock) {}

  // Runs one round. Errors are those of RecoveryRound::Run(), and
  //
  //   kInvalidArgument     the job's types, settings or partitioner do not fit
  //                        the variables
  //   kResourceExhausted, kDataLoss, kInvalidArgument  the values cannot be
  //                        given to the servers, as JobCheckpoints says
  absl::StatusOr<RoundOutcome> Run(const Recover& recover);

  // Ends the wait of a round under way with `stop`, and those of later rounds.
  // May be called from any thread.
  void RequestStop(const absl::Status& stop) ABSL_LOCKS_EXCLUDED(stop_mutex_);

  // Where each part is since the last round that succeeded.
  const StateMap& map() const { return map_; }

 private:
  absl::StatusOr<int64_t> LatestStep() const override {
    return parts_.checkpoints.LatestStep();
  }
  absl::StatusOr<int64_t> WholeStep() override {
    return parts_.checkpoints.FindNewest();
  }
  bool BeginsAnew() const override { return parts_.driver.BeginsAnew(); }
  absl::StatusOr<std::optional<Restored>> Restore(const StateMap& map) override;
  void OnFound(absl::Span<const ServerReport> reports) override {
    parts_.driver.OnFound(reports);
  }
  std::vector<int> EndedInput() const override {
    return parts_.driver.EndedInput();
  }
  std::vector<int> Servers() const override { return parts_.driver.Servers(); }
  void OnStateElsewhere() override { parts_.driver.OnStateElsewhere(); }
  void OnLeftOut(int server, const absl::Status& why) override {
    parts_.driver.deaths().LeaveOut(server, why);
  }
  bool OnResume(absl::Span<const ServerReport> reports, bool first) override {
    return parts_.driver.OnResume(reports, first);
  }
  RunSettings settings() const override { return parts_.driver.settings(); }
  absl::Status OnWorking(const std::string& what) override
      ABSL_LOCKS_EXCLUDED(stop_mutex_);
  void OnEpoch(uint64_t epoch) override { parts_.status.SetEpoch(epoch); }
  absl::Status OnStartFrom(const RecoveryPlan& plan, bool first) override;

  // Places the model's parts on all servers of the cluster.
  absl::Status MakePlanOfAll();
  // Writes the values of `checkpoint` to the servers.
  absl::StatusOr<Restored> RestoreFrom(const CheckpointReader& checkpoint,
                                       const StateMap& map);
  // Writes the initial values that a worker gives, or those of the job's file,
  // to servers that begin at step 0. Blocks until the worker has sent them, for
  // a limited time.
  absl::Status WriteInitialValues(const StateMap& map);
  absl::StatusOr<std::shared_ptr<SafetensorsReader>> AwaitGivenValues(
      const StateMap& map);
  // Calls OnWorking() with `what` and the progress of a transfer that begins.
  OnTransferred Watch(std::string what);
  // Tells operators good news, in the log and in the status.
  void Tell(const std::string& text);

  const Parts parts_;
  ActionCarrier& carrier_;
  Plan plan_;  // over all servers of the cluster
  StateMap map_;
  RecoveryRound round_;
  bool went_back_ = false;  // the servers discard existing state

  Mutex stop_mutex_;
  std::optional<absl::Status> stop_ ABSL_GUARDED_BY(stop_mutex_);
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_JOB_RECOVERY_H_
