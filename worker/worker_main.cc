#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/observe/progress_metrics.h"
#include "common/program/main_support.h"
#include "common/rpc/server.h"
#include "common/rpc/service_manager.h"
#include "worker/evaluator.h"
#include "worker/hosted_chief.h"
#include "worker/worker.h"

namespace lockstep::worker {
namespace {

struct Flags {
  CommonFlags common;
  JobFlags job;
  TransferFlags transfer;
  Worker::Options worker;
  bool evaluate = false;
};

// A process's health, at its own address. Null for a task that TF_CONFIG gives
// none, as an evaluator outside of the cluster.
absl::StatusOr<std::unique_ptr<GrpcServer>> ServeHealth(
    const Cluster& cluster) {
  const absl::StatusOr<std::string> address = cluster.Address(cluster.self());
  if (!address.ok()) return nullptr;
  return StartListening([&] { return GrpcServer::Start(*address, {}); });
}

int Evaluate(const Cluster& cluster, const Flags& flags, SignalGate& signals) {
  absl::StatusOr<std::unique_ptr<Evaluator>> evaluator = Evaluator::Make(
      cluster, {flags.worker.device, flags.worker.compute_threads,
                flags.worker.expected_job, flags.worker.chief_wait,
                flags.worker.data_roots});
  if (!evaluator.ok()) return Refuse(evaluator.status());
  absl::StatusOr<std::unique_ptr<MetricsServer>> metrics =
      ServeMetrics(flags.common, cluster.Address(cluster.self()).value_or(""),
                   [] { return std::vector<Metric>(); });
  if (!metrics.ok()) return Refuse(metrics.status());
  const absl::StatusOr<std::unique_ptr<GrpcServer>> server =
      ServeHealth(cluster);
  if (!server.ok()) return Refuse(server.status());
  const ServiceManagerClient service_manager(
      cluster.Address(cluster.self()).value_or(""));
  signals.SetHandler(
      [&](const std::string& reason) { (*evaluator)->RequestStop(reason); });
  const absl::Status status = (*evaluator)->Run();
  signals.SetHandler(nullptr);
  return EndProcess(flags.common, status);
}

int Train(const Cluster& cluster, const Flags& flags, SignalGate& signals) {
  std::unique_ptr<HostedChief> chief;
  std::unique_ptr<GrpcServer> server;
  if (cluster.IsChief()) {
    absl::StatusOr<JobConfig> job = LoadJob(flags.job);
    if (!job.ok()) return Refuse(job.status());
    absl::StatusOr<std::unique_ptr<HostedChief>> hosted = StartListening([&] {
      return HostedChief::Start(cluster, *job, Clock::Real(),
                                flags.job.beginning);
    });
    if (!hosted.ok()) return Refuse(hosted.status());
    chief = *std::move(hosted);
  } else {
    absl::StatusOr<std::unique_ptr<GrpcServer>> started = ServeHealth(cluster);
    if (!started.ok()) return Refuse(started.status());
    server = *std::move(started);
  }
  absl::StatusOr<std::unique_ptr<Worker>> worker =
      Worker::Make(cluster, flags.worker, Clock::Real());
  if (!worker.ok()) return Refuse(worker.status());
  absl::StatusOr<std::unique_ptr<MetricsServer>> metrics = ServeMetrics(
      flags.common, cluster.Address(cluster.self()).value_or(""), [&] {
        std::vector<Metric> metrics =
            ProgressMetrics(kOwnProgress, {{{}, (*worker)->progress()}});
        if (chief == nullptr) return metrics;
        for (Metric& metric : chief->Metrics()) {
          metrics.push_back(std::move(metric));
        }
        return metrics;
      });
  if (!metrics.ok()) return Refuse(metrics.status());
  const ServiceManagerClient service_manager(
      cluster.Address(cluster.self()).value_or(""));
  signals.SetHandler([&](const std::string& reason) {
    // The chief's stop reaches this worker as it does all others.
    if (chief != nullptr) {
      chief->RequestStop(reason);
    } else {
      (*worker)->RequestStop(reason);
    }
  });
  const absl::Status status = (*worker)->Run();
  const absl::Status job = chief == nullptr ? status : chief->Wait();
  signals.SetHandler(nullptr);
  return EndProcess(flags.common, status.ok() ? job : status);
}

int Main(const Flags& flags) {
  SignalGate signals;
  const TaskType type =
      flags.evaluate ? TaskType::kEvaluator : TaskType::kWorker;
  absl::StatusOr<Cluster> cluster = StartProcess(
      flags.common, {type}, flags.evaluate ? "worker --evaluate" : "worker");
  if (!cluster.ok()) return Refuse(cluster.status());
  const absl::Status placed = StayOnNumaNode(flags.transfer.numa_node);
  if (!placed.ok()) return Refuse(placed);
  return flags.evaluate ? Evaluate(*cluster, flags, signals)
                        : Train(*cluster, flags, signals);
}

}  // namespace
}  // namespace lockstep::worker

int main(int argc, char** argv) {
  lockstep::TuneProcess();
  lockstep::worker::Flags flags;
  lockstep::FlagParser parser(
      "worker",
      "Computes gradients of a model on its share of the data. Worker 0 also "
      "runs the chief where the cluster has no chief task.");
  lockstep::AddCommonFlags(parser, flags.common);
  lockstep::AddJobFlags(parser, flags.job);
  parser.app().add_flag("--evaluate", flags.evaluate,
                        "Be the evaluator: score each checkpoint.");
  parser.app()
      .add_option("--device", flags.worker.device,
                  "Where to compute: cpu, cuda, or auto for a GPU where there "
                  "is one. With cuda, no other device is taken instead.")
      ->capture_default_str();
  parser.app()
      .add_option("--compute_threads", flags.worker.compute_threads,
                  "Threads of each large operation on the CPU; 0 for one per "
                  "core.")
      ->capture_default_str();
  parser.app()
      .add_option("--connections", flags.worker.connections,
                  "TCP connections to each server for large tensors, each of "
                  "which one thread serves at a time. 0: 2 to a server that is "
                  "alone, else 1.")
      ->check(CLI::Range(0, 16))
      ->capture_default_str();
  parser.app().add_option(
      "--data_root", flags.worker.data_roots,
      "Refuse jobs that name files outside of this directory: data, and an "
      "evaluator's checkpoints; may be repeated. By default a job may name any "
      "file.");
  parser.app().add_option("--job_name", flags.worker.expected_job,
                          "Refuse a chief that runs a job of another name.");
  lockstep::AddTransferFlags(parser, flags.transfer);
  if (auto code = parser.Parse(argc, argv, std::cout, std::cerr)) return *code;
  flags.worker.shared_memory = flags.transfer.shared_memory;
  flags.worker.pollers = flags.transfer.pollers;
  flags.worker.chief_wait = flags.transfer.chief_wait;
  return lockstep::worker::Main(flags);
}
