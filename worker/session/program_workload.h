#ifndef LOCKSTEP_WORKER_SESSION_PROGRAM_WORKLOAD_H_
#define LOCKSTEP_WORKER_SESSION_PROGRAM_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/mutex.h"
#include "common/membership/chief_client.h"
#include "common/plan/variable_spec.h"
#include "worker/data/batch_schedule.h"
#include "worker/memory/parameter_memory.h"
#include "worker/session/handover.h"
#include "worker/session/workload.h"

namespace lockstep::worker {

// ProgramWorkload is the workload of a user's program: its variables, and
// passes that a Handover offers to the program's thread.
//
// Threads: Examples() may be called in any thread; the rest as Workload.
// Borrows: the memory of initial values, until the first pass is offered.
class ProgramWorkload final : public Workload {
 public:
  // `initial` has one span per variable: its elements, row-major, or nothing if
  // the servers draw the values. `early`: passes may be offered before their
  // values are in memory, unless there are tables or several turns().
  ProgramWorkload(std::vector<VariableSpec> variables,
                  std::vector<absl::Span<const std::byte>> initial,
                  bool early = false);

  //   kInvalidArgument  the job trains a built-in model, or its workers have
  //                     several replicas and the program has tables
  absl::Status Begin(const ChiefClient::Registration& membership) override;
  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  absl::StatusOr<absl::Span<const std::byte>> initial_value(
      size_t variable) override;
  absl::StatusOr<std::unique_ptr<GradientSource>> MakeSource(
      std::shared_ptr<ParameterMemory> memory) override;
  int turns() const override ABSL_LOCKS_EXCLUDED(mutex_);
  bool wants_last_values() const override { return true; }
  void HasLastValues(const TrainingLoop::LastValues& last) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  void Cancel() override { handover_.Cancel(); }

  // The memory of values that training or the input has ended with; null: they
  // are not known.
  struct LastValues {
    std::shared_ptr<const ProgramMembership> membership = nullptr;
    TrainingLoop::LastValues of = {};
  };
  LastValues last_values() const ABSL_LOCKS_EXCLUDED(mutex_);

  Handover& handover() { return handover_; }

  // Returns the indices, below `num_examples`, of this worker's examples in
  // batch `batch`, which counts the batches of all its replicas: see turns().
  // They depend on the job's seed, the worker's data shard and the arguments
  // alone.
  //
  //   kInvalidArgument  the job has no batch_size; or as
  //                     BatchSchedule::Create()
  //   kOutOfRange       the job's epochs are over; only for the `num_examples`
  //                     of the first call that succeeded. Other sets begin anew
  //                     without end.
  absl::StatusOr<std::vector<int64_t>> Examples(int64_t num_examples,
                                                int64_t batch)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Source;

  // The most sets, by number of examples, whose schedules are kept.
  static constexpr size_t kMostSets = 4;

  // Returns kOutOfRange if the job's epochs are over before `batch`. Returns OK
  // before the first Examples().
  absl::Status CheckInput(int64_t batch) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the schedules for `num_examples`, by replica. Errors as Examples().
  absl::StatusOr<std::vector<BatchSchedule>*> Schedule(int64_t num_examples)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The place of batch `batch` of this worker's replicas. Errors as Examples().
  struct Place {
    BatchSchedule& schedule;  // of the replica
    int64_t index;            // in it
  };
  absl::StatusOr<Place> PlaceOf(int64_t num_examples, int64_t batch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int Replicas() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<VariableSpec> variables_;
  std::vector<absl::Span<const std::byte>> initial_;
  const bool has_tables_;
  const bool early_;
  Handover handover_;

  mutable Mutex mutex_;
  ChiefClient::Registration membership_ ABSL_GUARDED_BY(mutex_);
  // That of the last source.
  std::shared_ptr<const ProgramMembership> of_source_ ABSL_GUARDED_BY(mutex_);
  LastValues last_values_ ABSL_GUARDED_BY(mutex_);
  // The schedules of a set of examples, one for each replica.
  struct Set {
    std::vector<BatchSchedule> schedules;
    uint64_t used = 0;  // value of uses_ at its last use
  };
  // By number of examples: programs may draw from several sets in a step.
  std::map<int64_t, Set> schedules_ ABSL_GUARDED_BY(mutex_);
  uint64_t uses_ ABSL_GUARDED_BY(mutex_) = 0;
  // The number of examples of the first Examples(), by which the job's epochs
  // are counted; 0: none yet.
  int64_t main_set_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_PROGRAM_WORKLOAD_H_
