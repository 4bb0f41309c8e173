#include <unistd.h>

#include <atomic>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/flags/flag_parser.h"
#include "common/observe/progress_metrics.h"
#include "common/program/main_support.h"
#include "common/rpc/server.h"
#include "common/rpc/service_manager.h"
#include "worker/evaluator.h"
#include "worker/hosted/hosted_roles.h"
#include "worker/worker.h"

namespace lockstep::worker {
namespace {

struct Flags {
  CommonFlags common;
  TransferFlags transfer;
  Worker::Options worker;
  HostedRoles::Options hosted;
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
  absl::StatusOr<std::unique_ptr<StatusServer>> status_server =
      ServeStatus(flags.common, cluster, [] { return MetricFamilies(); });
  if (!status_server.ok()) return Refuse(status_server.status());
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
  HostedRoles::Options options = flags.hosted;
  options.recorded = !flags.common.status_address.empty();
  absl::StatusOr<std::unique_ptr<HostedRoles>> hosted =
      HostedRoles::Start(cluster, options, Clock::Real());
  if (!hosted.ok()) return Refuse(hosted.status());
  HostedRoles* const roles = hosted->get();
  absl::StatusOr<std::unique_ptr<GrpcServer>> server = nullptr;
  if (roles == nullptr) server = ServeHealth(cluster);
  if (!server.ok()) return Refuse(server.status());
  absl::StatusOr<std::unique_ptr<Worker>> worker =
      Worker::Make(cluster, flags.worker, Clock::Real());
  if (!worker.ok()) return Refuse(worker.status());
  absl::StatusOr<std::unique_ptr<StatusServer>> status_server = ServeStatus(
      flags.common, cluster,
      [&] {
        MetricFamilies metrics =
            ProgressMetrics(kOwnProgress, {{{}, (*worker)->progress()}});
        if (roles != nullptr) metrics.Add(roles->Metrics());
        return metrics;
      },
      [&] {
        return roles == nullptr ? std::vector<StatusPage>() : roles->Pages();
      });
  if (!status_server.ok()) return Refuse(status_server.status());
  const ServiceManagerClient service_manager(
      cluster.Address(cluster.self()).value_or(""));
  if (roles != nullptr) {
    roles->SetOnStopped(
        [&](const absl::Status& why) { (*worker)->OnMirrorEnded(why); });
  }
  std::atomic<bool> trains = true;
  signals.SetHandler([&](const std::string& reason) {
    // The worker leaves first where it can, and its mirror follows.
    if (roles != nullptr && (roles->carries_job() || !trains)) {
      roles->RequestStop(reason);
    } else {
      (*worker)->RequestStop(reason);
    }
  });
  const absl::Status status = (*worker)->Run();
  trains = false;
  // The job waits for the roles of this process to come back with the worker:
  // nothing here may stop the job, or wait for its end.
  if (roles != nullptr && (*worker)->stays_member()) EndProcessNow(status);
  if (!status.ok() && roles != nullptr) roles->OnWorkerEnded(status);
  const absl::Status job = roles == nullptr ? absl::OkStatus() : roles->Wait();
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
  // Before most threads start, since they inherit the processors.
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
  lockstep::AddJobFlags(parser, flags.hosted.job);
  parser.app().add_flag("--evaluate", flags.evaluate,
                        "Run as the evaluator: score each checkpoint.");
  parser.app()
      .add_option("--device", flags.worker.device,
                  "Device to compute on: cpu, cuda, or auto for a GPU if "
                  "there is one, else the CPU. With cuda, the worker ends "
                  "if there is no GPU.")
      ->capture_default_str();
  parser.app()
      .add_option("--compute_threads", flags.worker.compute_threads,
                  "Threads of each large operation on the CPU; 0 for one per "
                  "core.")
      ->capture_default_str();
  parser.app()
      .add_option("--state_dir", flags.hosted.state_dir,
                  "In a cluster without ps: directory on a memory file "
                  "system for the file that holds this worker's copy of the "
                  "variables, as --state_dir of ps_server.")
      ->default_str("/dev/shm/lockstep-UID");
  parser.app()
      .add_option("--connections", flags.worker.connections,
                  "TCP connections to each server for large tensors; one "
                  "thread at a time serves a connection. 0: 2 if the job "
                  "has a single server, else 1.")
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
  flags.hosted.expected_job = flags.worker.expected_job;
  flags.hosted.shared_memory = flags.transfer.shared_memory;
  flags.hosted.chief_wait = flags.transfer.chief_wait;
  return lockstep::worker::Main(flags);
}
