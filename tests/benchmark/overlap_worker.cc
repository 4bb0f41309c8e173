#include "tests/benchmark/overlap_worker.h"

#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/membership/chief_client.h"
#include "tests/benchmark/layered_source.h"
#include "worker/client/parameter_client.h"
#include "worker/loop/progress_meter.h"
#include "worker/loop/training_loop.h"

namespace lockstep::benchmark {
namespace {

std::vector<VariableSpec> Layers(const OverlapOptions& options) {
  const int64_t elements = options.bytes / options.layers / 4;
  std::vector<VariableSpec> layers;
  for (int layer = 0; layer < options.layers; ++layer) {
    layers.push_back(
        {absl::StrCat("layer", layer), {elements}, DType::kFloat32, {}});
  }
  return layers;
}

absl::StatusOr<std::vector<std::string>> Addresses(const Cluster& cluster) {
  std::vector<std::string> servers;
  for (const TaskId& task : cluster.Tasks(TaskType::kPs)) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string address, cluster.Address(task));
    servers.push_back(std::move(address));
  }
  return servers;
}

absl::Status WriteReport(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  if (file << text << std::flush) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::Status Train(const Cluster& cluster, const OverlapOptions& options,
                   const ChiefClient::Registration& membership,
                   ChiefClient& chief, worker::ProgressMeter& meter,
                   const std::string& report) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<std::string> servers,
                            Addresses(cluster));
  LOCKSTEP_RETURN_IF_ERROR(chief.DescribeModel(Layers(options)));
  int64_t step = 0;
  LOCKSTEP_ASSIGN_OR_RETURN(
      Plan plan, chief.WaitForPlan(static_cast<int>(servers.size()), step));
  const JobConfig& job = membership.job;
  const int worker = cluster.self().index;
  LOCKSTEP_ASSIGN_OR_RETURN(worker::ParameterMemory memory,
                            worker::ParameterMemory::Make(plan.variables));
  LayeredSource source(options, worker, membership.num_workers, memory);
  worker::ParameterClient client(
      {servers,
       {membership.job_id, cluster.self(), membership.incarnation},
       job.max_part_bytes},
      plan, memory);
  chief.set_on_end([&client] { client.Cancel(); });
  absl::Status status =
      worker::TrainingLoop({job.mode, job.replicas_to_aggregate,
                            job.total_num_replicas, worker, step},
                           client, source, meter)
          .Run();
  chief.set_on_end(nullptr);
  // The job may end before the last token arrives.
  if (absl::IsCancelled(status)) status = absl::OkStatus();
  if (!status.ok() || worker != 0) return status;
  return WriteReport(report, OverlapReport(options, source.samples()));
}

}  // namespace

absl::Status RunOverlapWorker(const Cluster& cluster,
                              const OverlapOptions& options,
                              const std::string& report) {
  worker::ProgressMeter meter(Clock::Real());
  ChiefClient::Options chief_options;
  LOCKSTEP_ASSIGN_OR_RETURN(chief_options.address,
                            cluster.Address(cluster.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(chief_options.own_address,
                            cluster.Address(cluster.self()));
  chief_options.task = cluster.self();
  chief_options.progress = [&meter] { return meter.Get(); };
  ChiefClient chief(std::move(chief_options));
  LOCKSTEP_ASSIGN_OR_RETURN(ChiefClient::Registration membership,
                            chief.Register());
  absl::Status status =
      Train(cluster, options, membership, chief, meter, report);
  if (status.ok() && chief.WaitForEnd(absl::Minutes(1))) status = chief.end();
  chief.Leave(status.ok() ? LeaveCause::kDone : LeaveCause::kCannotTakePart,
              status.ok() ? "done" : std::string(status.message()));
  return status;
}

}  // namespace lockstep::benchmark
