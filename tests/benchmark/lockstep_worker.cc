#include "tests/benchmark/lockstep_worker.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/membership/chief_client.h"
#include "common/trace/span_recorder.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/pass_times.h"
#include "tests/benchmark/step_samples.h"
#include "tests/benchmark/timed_step_client.h"
#include "worker/blocks/block_source.h"
#include "worker/client/parameter_client.h"
#include "worker/loop/gradient_clipper.h"
#include "worker/loop/progress_meter.h"
#include "worker/loop/training_loop.h"
#include "worker/memory/parameter_memory.h"

namespace lockstep::benchmark {
namespace {

// Interval at which a simulated computation checks if its pass is still needed.
constexpr absl::Duration kLayer = absl::Milliseconds(1);

// IdleGradientSource computes nothing, but can take time: the gradients are in
// memory from the start. In strict mode it checks the first and last element of
// every variable.
class IdleGradientSource final : public worker::GradientSource {
 public:
  IdleGradientSource(const Plan& plan,
                     const ChiefClient::Registration& membership, int worker,
                     const RoleOptions& options,
                     const worker::ParameterMemory& memory)
      : num_variables_(plan.variables.size()),
        checked_(membership.job.mode == SyncMode::kStrict),
        numbers_(std::max(1, membership.job.micro_batches_per_step)),
        pass_times_(options, worker),
        memory_(memory),
        gradient_(GradientOf(worker, options.backups)),
        oracle_(membership.num_workers, options.backups) {
    for (size_t i = 0; i < num_variables_; ++i) Fill(i);
  }

  absl::Status Begin(int64_t index, worker::GradientPass& /*pass*/) override {
    return checked_ ? CheckAll(index / numbers_) : absl::OkStatus();
  }

  absl::StatusOr<worker::GradientResult> Finish(
      worker::GradientPass& pass) override {
    absl::SleepFor(pass_times_.Hang(absl::Now()));
    const absl::Duration pause = pass_times_.Next();
    const absl::Time end = absl::Now() + pause;
    for (absl::Duration left = pause; left > absl::ZeroDuration();
         left = end - absl::Now()) {
      LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
      absl::SleepFor(std::min(left, kLayer));
    }
    if (numbers_ > 1) {
      // The memory may hold the sum of a block of micro-batches.
      for (size_t i = 0; i < num_variables_; ++i) {
        Fill(i);
        pass.GradientReady(i);
      }
    }
    return worker::GradientResult{0, 1};
  }

 private:
  void Fill(size_t variable) {
    const absl::Span<std::byte> gradient = memory_.gradient(variable);
    std::fill_n(reinterpret_cast<float*>(gradient.data()),
                gradient.size() / sizeof(float), gradient_);
  }

  // Checks the values after `step` steps.
  absl::Status CheckAll(int64_t step) {
    oracle_.AdvanceTo(step);
    for (size_t i = 0; i < num_variables_; ++i) {
      const absl::Span<std::byte> value = memory_.value(i);
      LOCKSTEP_RETURN_IF_ERROR(CheckAt(value.data()));
      LOCKSTEP_RETURN_IF_ERROR(
          CheckAt(value.data() + value.size() - sizeof(float)));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAt(const std::byte* element) const {
    float value;
    std::memcpy(&value, element, sizeof(value));
    return oracle_.Check(value);
  }

  const size_t num_variables_;
  const bool checked_;
  const int64_t numbers_;  // passes of a step, if work is shared
  PassTimes pass_times_;
  const worker::ParameterMemory& memory_;
  const float gradient_;
  MomentumOracle oracle_;
};

absl::StatusOr<std::vector<std::string>> Servers(const Cluster& cluster) {
  std::vector<std::string> servers;
  for (const TaskId& task : cluster.Tasks(TaskType::kPs)) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string address, cluster.Address(task));
    servers.push_back(std::move(address));
  }
  return servers;
}

absl::StatusOr<ChiefClient::Options> ChiefOptions(
    const Cluster& cluster, const worker::ProgressMeter& meter) {
  ChiefClient::Options options;
  LOCKSTEP_ASSIGN_OR_RETURN(options.address, cluster.Address(cluster.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(options.own_address,
                            cluster.Address(cluster.self()));
  options.task = cluster.self();
  options.progress = [&meter] { return meter.Get(); };
  return options;
}

absl::Status WriteOwnRecord(const RoleOptions& options, int worker,
                            RunRecorder& recorder) {
  if (options.backups) {
    return WriteRecord(absl::StrCat(options.record, ".", worker),
                       recorder.Finish());
  }
  if (worker != 0) return absl::OkStatus();
  return WriteRecord(options.record, recorder.Finish());
}

// Runs the loop of one worker between registration and the end of training.
absl::Status Train(const Cluster& cluster, const RoleOptions& options,
                   const ChiefClient::Registration& membership,
                   ChiefClient& chief, worker::ProgressMeter& meter) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::vector<VariableSpec> variables,
      MakeBenchmarkVariables(options.model, options.bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<std::string> servers, Servers(cluster));
  LOCKSTEP_RETURN_IF_ERROR(chief.DescribeModel(variables));
  int64_t step = 0;
  LOCKSTEP_ASSIGN_OR_RETURN(
      Plan plan, chief.WaitForPlan(static_cast<int>(servers.size()), step));
  const JobConfig& job = membership.job;
  const int worker = cluster.self().index;
  LOCKSTEP_ASSIGN_OR_RETURN(worker::ParameterMemory memory,
                            worker::ParameterMemory::Make(plan.variables));
  IdleGradientSource source(plan, membership, worker, options, memory);
  worker::ParameterClient::Options transfer{
      servers,
      {membership.job_id, cluster.self(), membership.incarnation},
      job.max_part_bytes,
      job.gradient_wire_type};
  if (plan.mirrored) transfer.mirror = worker;
  transfer.shares_with_mirror_alone = options.mirror_alone;
  worker::ParameterClient client(transfer, plan, memory);
  RunRecorder recorder(options.warmup, options.steps);
  TimedStepClient timed(client, recorder);
  worker::GradientClipper clipper(
      {}, DType::kFloat32, [] { return worker::GradientClipper::Gradients(); });
  worker::BlockSource blocks(source, plan.variables, job.micro_batches_per_step,
                             clipper, memory);
  const bool shared = job.shares_work();
  chief.set_on_end([&client] { client.Cancel(); });
  absl::Status status =
      worker::TrainingLoop(
          {job.mode, job.replicas_to_aggregate, job.total_num_replicas, worker,
           step,
           /*leaving=*/nullptr, /*clipper=*/nullptr,
           job.micro_batches_per_step},
          timed, shared ? static_cast<worker::GradientSource&>(blocks) : source,
          meter)
          .Run();
  chief.set_on_end(nullptr);
  // The job may end before the last token arrives.
  if (absl::IsCancelled(status)) status = absl::OkStatus();
  if (!status.ok()) return status;
  return WriteOwnRecord(options, worker, recorder);
}

}  // namespace

absl::Status RunLockstepWorker(const Cluster& cluster,
                               const RoleOptions& options) {
  SpanRecorder* const spans =
      options.status_address.empty()
          ? nullptr
          : &SpanRecorder::Of(SpanRecorder::Role::kWorker);
  worker::ProgressMeter meter(Clock::Real(), spans);
  LOCKSTEP_ASSIGN_OR_RETURN(ChiefClient::Options chief_options,
                            ChiefOptions(cluster, meter));
  chief_options.spans = spans;
  ChiefClient chief(std::move(chief_options));
  LOCKSTEP_ASSIGN_OR_RETURN(ChiefClient::Registration membership,
                            chief.Register());
  absl::Status status = Train(cluster, options, membership, chief, meter);
  if (status.ok() && chief.WaitForEnd(absl::Minutes(1))) status = chief.end();
  chief.Leave(status.ok() ? LeaveCause::kDone : LeaveCause::kCannotTakePart,
              status.ok() ? "done" : std::string(status.message()));
  return status;
}

}  // namespace lockstep::benchmark
