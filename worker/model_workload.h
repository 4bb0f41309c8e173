#ifndef LOCKSTEP_WORKER_MODEL_WORKLOAD_H_
#define LOCKSTEP_WORKER_MODEL_WORKLOAD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "common/job/job_config.h"
#include "worker/compute/backend/compute_backend.h"
#include "worker/data/batch_schedule.h"
#include "worker/data/examples.h"
#include "worker/data/files/file_reading.h"
#include "worker/models/model.h"
#include "worker/replicas/replica_backends.h"
#include "worker/session/workload.h"
#include "worker/tables/table_workload.h"

namespace lockstep::worker {

// ModelWorkload is the workload of the `worker` program: a model of models/zoo
// or tables, on data that the job names.
//
// Threads: as Workload.
// Borrows: the clock.
class ModelWorkload final : public Workload {
 public:
  // `worker` is the index of the task. `data_roots` as CheckWorkerFiles() has
  // it. `threads` is the number of CPU threads, which replicas share equally,
  // at least one each.
  ModelWorkload(int worker, std::unique_ptr<ComputeBackend> backend,
                std::vector<std::string> data_roots, int threads = 1,
                const Clock& clock = Clock::Real());

  // Errors: as reading the data; kInvalidArgument if the files do not fit or
  // the model is unknown. The message names the field.
  absl::Status Begin(const ChiefClient::Registration& membership) override;
  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  std::optional<ExampleShape> examples() const override;
  int64_t num_examples() const override {
    return tables_ != nullptr ? tables_->num_examples() : data_->count;
  }
  absl::StatusOr<std::unique_ptr<GradientSource>> MakeSource(
      std::shared_ptr<ParameterMemory> memory) override;
  // Replicas clip their gradients before the mean, and local steps clip each
  // step's: the loop must not clip again.
  bool clips() const override {
    return replicas() > 1 || job_.has_local_steps();
  }

  std::string Beginning() const override { return reading_.Text(); }

  // GPUs that this worker may compute on; 0: it computes on the CPU.
  int gpus() const { return backends_.gpus(); }

 private:
  absl::Status LoadData(const JobConfig& job);
  int replicas() const { return static_cast<int>(backends_.size()); }
  // Returns the source that computes the gradients of one batch in `memory`.
  absl::StatusOr<std::unique_ptr<GradientSource>> BatchSourceOf(
      const ParameterMemory& memory);
  std::unique_ptr<GradientSource> SourceOf(size_t replica,
                                           const ParameterMemory& memory);
  // The worker for which random numbers are drawn. With shared work they are
  // the same on all workers, as any worker may compute a micro-batch.
  int drawing_worker() const { return job_.shares_work() ? 0 : worker_; }

  const int worker_;
  const std::vector<std::string> data_roots_;
  FileReading reading_;
  ReplicaBackends backends_;
  std::optional<Examples> data_;
  std::unique_ptr<TableWorkload> tables_;  // of a model with tables
  // These belong to the current membership.
  JobConfig job_;
  std::vector<std::unique_ptr<Model>> models_;  // none for tables
  std::vector<VariableSpec> variables_;
  std::vector<BatchSchedule> schedules_;  // by replica
  std::shared_ptr<ParameterMemory> memory_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_MODEL_WORKLOAD_H_
