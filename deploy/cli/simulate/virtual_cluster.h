#ifndef LOCKSTEP_DEPLOY_CLI_SIMULATE_VIRTUAL_CLUSTER_H_
#define LOCKSTEP_DEPLOY_CLI_SIMULATE_VIRTUAL_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/backups/backup_tuner.h"
#include "chief/events/job_actions.h"
#include "chief/steps/stall_replacement.h"
#include "chief/steps/stall_watch.h"
#include "chief/steps/step_driver.h"
#include "common/plan/progress.h"
#include "common/plan/step_vocabulary.h"
#include "deploy/cli/simulate/virtual_job.h"
#include "server/step/strict/attempt_gate.h"

namespace lockstep::cli {

// VirtualCluster makes the steps of a job under a virtual clock. The product's
// classes decide: StrictGate which gradients count and when passes begin, or
// SharedGate where work is shared; StepDriver and StallReplacement the takes,
// commits and replaced members, BackupTuner the gradients of a step where the
// job says AUTO. Workers draw the times of their passes, die and come back;
// nothing else takes time but the durations of VirtualJob.
//
//   pass begins -> ends: announced -> a member's gradient arrives at once
//                                 `-> not needed: waits, or is dropped
//   the last gradient of the set -> `overhead` later: commit, tokens
//
// A shared step has the work of a gradient of each worker, divided among its
// micro-batches.
//
// The n-th pass of a worker takes the same time in each simulation with the
// same seed, so that numbers of backups are compared on the same passes.
//
// Threads: not thread-safe.
class VirtualCluster {
 public:
  // The job must have at least one worker.
  explicit VirtualCluster(const VirtualJob& job);
  VirtualCluster(const VirtualCluster&) = delete;
  VirtualCluster& operator=(const VirtualCluster&) = delete;

  // Makes all steps. Must be called once.
  //
  //   kDeadlineExceeded  a step waited longer than the job's max_wait
  absl::StatusOr<SimulatedRun> Run();

  // One line for each change of the gradients of a step: when, and why.
  const std::vector<std::string>& changes() const { return changes_; }

 private:
  enum class Kind {
    kPassEnds,
    kPrepared,
    kDies,
    kIsFound,
    kIsBack,
    kBeat,
    kTick
  };
  struct Event {
    absl::Time at;
    uint64_t order = 0;
    Kind kind = Kind::kTick;
    int worker = 0;
    int64_t version = 0;  // of the worker or the attempt; others are void
    // std::priority_queue takes the largest first, so the earliest is that.
    // Events of one time keep their order.
    bool operator<(const Event& other) const {
      return std::pair(at, order) > std::pair(other.at, other.order);
    }
  };
  struct Worker {
    std::mt19937_64 random;
    std::mt19937_64 fate;  // of its deaths
    bool alive = true;     // the process
    bool member = true;    // as the chief sees it
    int64_t version = 0;   // grows when events of it become void
    Pass pass;
    absl::Time began;
    bool computing = false;
    absl::Duration computed;       // of the pass at hand, once it has ended
    bool measured = false;         // it ended, or died, in a measured step
    int64_t selected_attempt = 0;  // by its token
    uint64_t ticket = 0;           // of its wait
    Progress progress;
  };

  void After(absl::Duration delay, Kind kind, int worker = 0,
             int64_t version = 0);
  void Handle(const Event& event);
  int n() const { return static_cast<int>(workers_.size()); }
  bool shares() const { return job_.job.shares_work(); }
  // What a step has the work of, in gradients.
  int StepGradients() const { return shares() ? n() : replicas_; }
  bool MayReplace() const { return !shares() && n() > replicas_; }

  // Workers.
  void BeginPass(int index, const server::Gate::Answer& token);
  void OnPassEnd(int index);
  void DropPass(Worker& worker);
  void EndPass(Worker& worker, absl::Duration computed, bool dropped);
  void Waste(Worker& worker);
  void Wait(int index, int64_t attempt);
  void OnAnswers(const std::vector<server::Gate::Answer>& answers);
  void OnAnswer(int index, const server::Gate::Answer& answer);
  void OnDeath(int index);
  void OnFound(int index);
  void OnBack(int index);
  void ScheduleDeath(int index);

  // The servers and the chief.
  void BeginStep();
  // The gradient of the worker's pass is on the servers, if they still take it.
  void Arrived(int index, int64_t attempt);
  void OnPrepared();
  void BeginAttempt(int64_t attempt);
  void OnBoundary();
  void Change(const chief::BackupTuner::Change& change);
  void OnTick();
  void Replace(const chief::StallWatch::Found& stalled);
  void OnBeat();
  chief::TakeResult Takes(bool prepared) const;
  void Carry();

  const VirtualJob job_;
  std::vector<int> indices_;
  const std::unique_ptr<server::AttemptGate> gate_;
  chief::StepDriver driver_;
  chief::StallReplacement replacement_;
  chief::BackupTuner tuner_;
  chief::JobActions out_;

  absl::Time now_;
  uint64_t order_ = 0;
  std::priority_queue<Event> events_;
  std::vector<Worker> workers_;
  std::vector<int> by_ticket_ = {-1};  // worker, of the newest wait of it

  int replicas_;
  int64_t step_ = 0;      // committed
  int64_t attempt_ = 1;   // of the step at hand
  int64_t attempts_ = 0;  // grows with each attempt of any step
  // The gradients of the attempt that are in, by worker or by number.
  std::set<int> arrived_;
  bool prepared_ = false;
  absl::Time not_before_;  // the servers are open again
  absl::Status failure_;
  SimulatedRun run_;
  absl::Time measured_from_;
  std::vector<std::string> changes_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_SIMULATE_VIRTUAL_CLUSTER_H_
