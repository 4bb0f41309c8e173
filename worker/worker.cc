#include "worker/worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/log.h"
#include "common/status_macros.h"
#include "worker/clipped_gradient_source.h"
#include "worker/compute/registry.h"
#include "worker/data/batch_loader.h"
#include "worker/data/batch_schedule.h"
#include "worker/model_gradient_source.h"
#include "worker/models/registry.h"
#include "worker/training_loop.h"

namespace lockstep {
namespace {}  // namespace

absl::StatusOr<std::unique_ptr<Worker>> Worker::Make(const Cluster& cluster,
                                                     const Options& options,
                                                     const Clock& clock) {
  LOCKSTEP_RETURN_IF_ERROR(cluster.ValidateForParameterServers());
  std::vector<std::string> servers;
  for (const TaskId& task : cluster.Tasks(TaskType::kPs)) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string address, cluster.Address(task));
    servers.push_back(std::move(address));
  }
  ChiefClient::Options chief;
  LOCKSTEP_ASSIGN_OR_RETURN(chief.address, cluster.Address(cluster.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(chief.own_address, cluster.Address(cluster.self()));
  chief.task = cluster.self();
  chief.expected_job = options.expected_job;
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<ComputeBackend> backend,
      MakeBackend(options.device, {options.compute_threads}));
  return std::unique_ptr<Worker>(
      new Worker(cluster, std::move(servers), std::move(chief),
                 std::move(backend), options.shared_memory, clock));
}

Worker::Worker(const Cluster& cluster, std::vector<std::string> servers,
               ChiefClient::Options chief,
               std::unique_ptr<ComputeBackend> backend, bool shared_memory,
               const Clock& clock)
    : task_(cluster.self()),
      servers_(std::move(servers)),
      backend_(std::move(backend)),
      shared_memory_(shared_memory),
      meter_(clock),
      chief_([&] {
        chief.progress = [this] { return meter_.Get(); };
        return std::move(chief);
      }()) {
  spdlog::info("computes on {}", backend_->name());
}

void Worker::SetClient(ParameterClient* client) {
  MutexLock lock(mutex_);
  client_ = client;
  if (client_ != nullptr && stop_reason_.has_value()) client_->Cancel();
}

void Worker::RequestStop(const std::string& reason) {
  chief_.Stop();
  MutexLock lock(mutex_);
  stop_reason_ = reason;
  if (client_ != nullptr) client_->Cancel();
}

absl::Status Worker::LoadData(const JobConfig& job) {
  if (data_.has_value()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(
      data_, LoadImageDataset(job.data.train_images, job.data.train_labels));
  spdlog::info("{} training examples of {}x{}, {} classes", data_->num_examples,
               data_->height, data_->width, data_->classes);
  return absl::OkStatus();
}

absl::Status Worker::Run() {
  while (true) {
    const absl::Status status = RunOnce();
    if (!chief_.lease_lost() && !refused_) return status;
    spdlog::warn("taken for dead ({}); joining again",
                 std::string(status.message()));
  }
}

absl::Status Worker::RunOnce() {
  LOCKSTEP_ASSIGN_OR_RETURN(ChiefClient::Membership membership,
                            chief_.Register());
  max_wait_ = membership.job.max_wait;
  refused_ = false;
  const absl::Status status = Judge(Train(membership), membership.job.lease);
  if (!chief_.lease_lost() && !refused_) {
    std::string reason = absl::StrCat(kFailedPrefix, status.message());
    if (status.ok()) reason = "done";
    if (absl::IsCancelled(status)) reason = std::string(status.message());
    if (absl::IsOutOfRange(status)) reason = kEndOfInput;
    meter_.Begin("leaves", false);
    chief_.Leave(reason);
  }
  return absl::IsOutOfRange(status) ? absl::OkStatus() : status;
}

absl::Status Worker::Train(const ChiefClient::Membership& membership) {
  const JobConfig& job = membership.job;
  LOCKSTEP_RETURN_IF_ERROR(LoadData(job));
  const ModelInput input{data_->height, data_->width, data_->channels,
                         data_->classes};
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<Model> model,
                            MakeModel(job.model, input));
  LOCKSTEP_ASSIGN_OR_RETURN(
      BatchSchedule schedule,
      BatchSchedule::Create({data_->num_examples, job.batch_size,
                             membership.num_workers, task_.index, job.seed,
                             job.data.epochs}));
  LOCKSTEP_RETURN_IF_ERROR(chief_.DescribeModel(model->variables()));
  meter_.Begin("waits for the variables", true);
  int64_t step = 0;
  LOCKSTEP_ASSIGN_OR_RETURN(
      Plan plan, chief_.WaitForPlan(static_cast<int>(servers_.size()), step));
  ParameterMemory memory(plan.variables,
                         shared_memory_ ? ParameterMemory::Gradients::kShared
                                        : ParameterMemory::Gradients::kPrivate);
  ParameterClient client({servers_,
                          {membership.job_id, task_, membership.incarnation},
                          job.max_part_bytes,
                          job.gradient_wire_type},
                         plan, memory);
  ModelGradientSource source(*model, input, *backend_,
                             MakeBatchSource(std::move(schedule), *data_),
                             memory);
  std::vector<absl::Span<std::byte>> gradients;
  for (size_t v = 0; v < plan.variables.size(); ++v) {
    gradients.push_back(memory.gradient(v));
  }
  // A model's variables are of one type.
  ClippedGradientSource clipped(job.clipping, plan.variables.at(0).dtype,
                                std::move(gradients), source);
  chief_.set_on_end([&client] { client.Cancel(); });
  SetClient(&client);
  const absl::Status status =
      TrainingLoop({job.mode, job.replicas_to_aggregate, job.total_num_replicas,
                    task_.index, step},
                   client, clipped, meter_)
          .Run();
  SetClient(nullptr);
  chief_.set_on_end(nullptr);
  return status;
}

absl::Status Worker::Judge(const absl::Status& loop, absl::Duration lease) {
  {
    MutexLock lock(mutex_);
    if (stop_reason_.has_value()) return absl::CancelledError(*stop_reason_);
  }
  if (absl::IsOutOfRange(loop)) return loop;
  if (loop.ok() || absl::IsCancelled(loop) ||
      absl::IsFailedPrecondition(loop)) {
    // Whether that was the job's end, only the chief knows. When training is
    // over the verdict comes with the last checkpoint and its score.
    meter_.Begin("waits for the end of the job", true);
    const absl::Duration grace =
        absl::IsCancelled(loop) ? max_wait_ : 2 * lease;
    do {
      if (chief_.WaitForEnd(grace)) return chief_.end();
      MutexLock lock(mutex_);
      if (stop_reason_.has_value()) return absl::CancelledError(*stop_reason_);
    } while (loop.ok() && !chief_.job_is_training());
    // Others train, though a server has refused this incarnation, or has told
    // it that training is over: the job has gone back.
    refused_ = !absl::IsCancelled(loop) && MayJoinAgain();
  }
  return loop;
}

bool Worker::MayJoinAgain() {
  const absl::Time now = absl::Now();
  const int64_t passes = meter_.Get().passes;
  if (passes != refused_at_pass_) refused_since_ = now;
  refused_at_pass_ = passes;
  return now - refused_since_ < max_wait_;
}

}  // namespace lockstep
