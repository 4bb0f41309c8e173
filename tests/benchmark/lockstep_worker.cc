#include "tests/benchmark/lockstep_worker.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/chief_client.h"
#include "common/clock.h"
#include "common/status_macros.h"
#include "tests/benchmark/benchmark_model.h"
#include "tests/benchmark/step_samples.h"
#include "tests/benchmark/timed_step_client.h"
#include "worker/parameter_client.h"
#include "worker/parameter_memory.h"
#include "worker/progress_meter.h"
#include "worker/training_loop.h"

namespace lockstep::benchmark {
namespace {

// IdleGradientSource computes nothing: the gradients are in memory from the
// start. It looks at both ends of every variable.
class IdleGradientSource final : public GradientSource {
 public:
  IdleGradientSource(const Plan& plan, int worker, int workers,
                     const ParameterMemory& memory)
      : num_variables_(plan.variables.size()),
        memory_(memory),
        oracle_(workers) {
    for (size_t i = 0; i < num_variables_; ++i) {
      const absl::Span<std::byte> gradient = memory_.gradient(i);
      std::fill_n(reinterpret_cast<float*>(gradient.data()),
                  gradient.size() / sizeof(float), GradientOf(worker));
    }
  }

  absl::StatusOr<GradientResult> Compute(int64_t index,
                                         const PassHooks&) override {
    oracle_.AdvanceTo(index);
    for (size_t i = 0; i < num_variables_; ++i) {
      const absl::Span<std::byte> value = memory_.value(i);
      LOCKSTEP_RETURN_IF_ERROR(CheckAt(value.data()));
      LOCKSTEP_RETURN_IF_ERROR(
          CheckAt(value.data() + value.size() - sizeof(float)));
    }
    return GradientResult{0, 1};
  }

 private:
  absl::Status CheckAt(const std::byte* element) const {
    float value;
    std::memcpy(&value, element, sizeof(value));
    return oracle_.Check(value);
  }

  const size_t num_variables_;
  const ParameterMemory& memory_;
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

absl::StatusOr<ChiefClient::Options> ChiefOptions(const Cluster& cluster,
                                                  const ProgressMeter& meter) {
  ChiefClient::Options options;
  LOCKSTEP_ASSIGN_OR_RETURN(options.address, cluster.Address(cluster.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(options.own_address,
                            cluster.Address(cluster.self()));
  options.task = cluster.self();
  options.chief_timeout = absl::Minutes(1);
  options.progress = [&meter] { return meter.Get(); };
  return options;
}

// The loop of one worker between registration and the end of training.
absl::Status Train(const Cluster& cluster, const RoleOptions& options,
                   const ChiefClient::Membership& membership,
                   ChiefClient& chief, ProgressMeter& meter) {
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
  ParameterMemory memory(plan.variables);
  IdleGradientSource source(plan, worker, membership.num_workers, memory);
  ParameterClient client(
      {servers,
       {membership.job_id, cluster.self(), membership.incarnation},
       job.max_part_bytes,
       job.gradient_wire_type},
      plan, memory);
  TimedStepClient timed(client);
  chief.set_on_end([&client] { client.Cancel(); });
  absl::Status status = TrainingLoop({job.mode, job.replicas_to_aggregate,
                                      job.total_num_replicas, worker, step},
                                     timed, source, meter)
                            .Run();
  chief.set_on_end(nullptr);
  // The job may end before the last token is there.
  if (absl::IsCancelled(status)) status = absl::OkStatus();
  if (!status.ok() || worker != 0) return status;
  std::vector<StepSample> samples = timed.samples();
  const auto warmup = static_cast<size_t>(options.warmup);
  samples.erase(samples.begin(),
                samples.begin() + std::min(warmup, samples.size()));
  if (samples.size() > static_cast<size_t>(options.steps)) {
    samples.resize(options.steps);
  }
  return WriteSamples(options.samples, samples);
}

}  // namespace

absl::Status RunLockstepWorker(const Cluster& cluster,
                               const RoleOptions& options) {
  ProgressMeter meter(Clock::Real());
  LOCKSTEP_ASSIGN_OR_RETURN(ChiefClient::Options chief_options,
                            ChiefOptions(cluster, meter));
  ChiefClient chief(std::move(chief_options));
  LOCKSTEP_ASSIGN_OR_RETURN(ChiefClient::Membership membership,
                            chief.Register());
  absl::Status status = Train(cluster, options, membership, chief, meter);
  if (status.ok() && chief.WaitForEnd(absl::Minutes(1))) status = chief.end();
  chief.Leave(status.ok() ? "done" : std::string(status.message()));
  return status;
}

}  // namespace lockstep::benchmark
