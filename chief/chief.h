#ifndef LOCKSTEP_CHIEF_CHIEF_H_
#define LOCKSTEP_CHIEF_CHIEF_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/checkpoint/given_values.h"
#include "chief/checkpoint/job_checkpoints.h"
#include "chief/events/job_actions.h"
#include "chief/events/job_events.h"
#include "chief/job/job_driver.h"
#include "chief/job_recovery.h"
#include "chief/members/membership_table.h"
#include "chief/operators/chief_metrics.h"
#include "chief/operators/coordinator_service.h"
#include "chief/operators/settings_table.h"
#include "chief/operators/status_table.h"
#include "chief/page/recorder.h"
#include "chief/shard_group_client.h"
#include "chief/summary/summary_thread.h"
#include "chief/traces/trace_service.h"
#include "chief/traces/trace_table.h"
#include "common/base/clock.h"
#include "common/base/event_queue.h"
#include "common/cluster/cluster.h"
#include "common/job/beginning.h"
#include "common/job/job_config.h"
#include "common/job/learning_rate.h"
#include "common/metrics/metric_families.h"
#include "common/observe/status_server.h"
#include "common/trace/span_recorder.h"

namespace lockstep::chief {

// Chief runs one job from its first member to its last checkpoint. It is a
// library: the chief program runs it, or worker 0 if the cluster has no chief
// task.
//
// JobDriver makes the decisions. Chief delivers events to JobDriver and carries
// out the actions that it returns, in the thread of Run(). The events come
// through a queue from gRPC's threads, the thread that writes a checkpoint, and
// operators. Only two operations block the thread of Run(): a recovery round,
// during which the job stands still, and the reading of a checkpoint from disk.
//
// Threads: services(), Metrics() and RequestStop() may be used from any thread.
class Chief final : private ActionCarrier {
 public:
  // Checks that the job fits the cluster, and fills in the replicas.
  //
  //   kInvalidArgument  no ps or no worker in the cluster; replicas that the
  //                     cluster cannot supply; a beginning without checkpoints
  //   kFailedPrecondition  another running job writes its checkpoints to the
  //                        same directory
  static absl::StatusOr<std::unique_ptr<Chief>> Make(const Cluster& cluster,
                                                     JobConfig job,
                                                     uint64_t incarnation,
                                                     const Clock& clock,
                                                     Beginning beginning = {});
  ~Chief() override;

  // The services that one server must serve while Run() runs.
  std::vector<grpc::Service*> services() {
    return {service_.get(), &trace_service_};
  }

  // The metrics of ChiefMetrics(), as of now.
  MetricFamilies Metrics() const {
    const SummarySample now = Sample();
    return ChiefMetrics({now.now, now.job, now.members, now.learning_rate,
                         job_.train_steps, !job_.checkpoint.directory.empty()});
  }

  // Begins to record the job for its page, and returns the pages for a
  // StatusServer, which must not serve them longer than this object lives. Must
  // be called at most once, before Run().
  std::vector<StatusPage> RecordForPage();

  // Ends the job after the current step, with a checkpoint. With `hold`, its
  // processes end with an exit code that asks for no restart.
  void RequestStop(const std::string& reason, bool hold = false);

  // Runs the job to its end, and until all members have left.
  //
  //   kOk         the job is done
  //   kCancelled  it was stopped, as StoppedStatus() says; a checkpoint holds
  //               its last step
  //   others      it failed, and every member has learned the reason
  //
  // A checkpoint on a volume that hangs, or of a chief that was replaced, may
  // still be under way then; the destructor waits for it.
  absl::Status Run();

 private:
  Chief(const Cluster& cluster, JobConfig job, const Sender& self,
        std::vector<std::string> servers, const Clock& clock,
        Beginning beginning);

  void Deliver(const JobEvent& event);
  // Delivers news since the last call: operators' wishes, scores, the model.
  void DeliverWishes();

  void Carry(const JobActions& actions) override;
  void Do(const Take& action);
  void Do(const Commit& action);
  void Do(const TellCommit& action);
  void Do(const Expire& action);
  void Do(const Replace& action);
  void Do(const CloseTokens& action);
  void Do(const BeginSnapshot& action);
  void Do(const CheckSaved& action);
  void Do(const LookForEnd& action);
  void Do(const Recover& action);
  void Do(const OpenSettings& action);
  void Do(const CloseSettings& action);
  void Do(const TakeOut& out) { settings_table_.Leave(out.worker, out.why); }
  void Do(const Tuned& action);
  void Do(const Say& action);
  void Do(const SumUp& action);
  void Do(const JobReport& action);
  void Do(const Finish& action);

  // Runs in the thread that writes a checkpoint.
  void WriteCheckpoint(const BeginSnapshot& action, Manifest manifest);
  void JoinCheckpoint();
  Manifest MakeManifest(int64_t step) const;

  // The job as it is now. May be called from any thread.
  SummarySample Sample() const;

  // Notifies operators, in the log and in the status.
  void Notify(const std::string& text);

  const JobConfig job_;
  const Sender self_;
  const Beginning beginning_;
  const bool evaluator_in_cluster_;
  const bool has_evaluator_;  // and can score
  const Clock& clock_;
  MembershipTable members_;
  StatusTable status_table_;
  SettingsTable settings_table_;
  GivenValues given_values_;
  SpanRecorder& spans_ = SpanRecorder::Of(SpanRecorder::Role::kChief);
  TraceTable traces_;
  TraceService trace_service_;
  std::unique_ptr<CoordinatorService> service_;
  EventQueue<JobEvent> events_;
  ShardGroupClient servers_;  // its calls report to events_ until it ends

  // Only the thread that runs Run() uses these members, and while a checkpoint
  // is written the thread that writes it.
  JobCheckpoints checkpoints_;
  std::thread checkpoint_thread_;

  // Only the thread that runs Run() uses these members.
  JobDriver driver_;
  JobRecovery recovery_{{job_, clock_, servers_, members_, status_table_,
                         given_values_, checkpoints_, driver_},
                        *this};
  bool told_model_ = false;
  int64_t told_score_ = -1;
  std::optional<Finish> finished_;

  std::unique_ptr<Recorder> recorder_;  // last: it samples the members above
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHIEF_H_
