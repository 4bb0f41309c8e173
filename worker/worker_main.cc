#include <unistd.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/observe/progress_metrics.h"
#include "common/program/main_support.h"
#include "common/rpc/server.h"
#include "common/rpc/service_manager.h"
#include "worker/evaluator.h"
#include "worker/hosted_chief.h"
#include "worker/hosted_mirror.h"
#include "worker/worker.h"

namespace lockstep::worker {
namespace {

struct Flags {
  CommonFlags common;
  JobFlags job;
  TransferFlags transfer;
  Worker::Options worker;
  server::PsServer::Options mirror;
  bool evaluate = false;
};

// The roles that this worker's process hosts besides the worker. The mirror is
// declared after the chief, so it ends first: it serves the chief's calls.
struct Hosted {
  std::unique_ptr<HostedChief> chief;
  std::unique_ptr<HostedMirror> mirror;
  // Only for the health of a process that hosts nothing else.
  std::unique_ptr<GrpcServer> server;

  MetricFamilies Metrics() const {
    MetricFamilies metrics;
    if (chief != nullptr) metrics.Add(chief->Metrics());
    if (mirror != nullptr) metrics.Add(mirror->Metrics());
    return metrics;
  }
  std::vector<StatusPage> Pages() const {
    return chief == nullptr ? std::vector<StatusPage>() : chief->Pages();
  }
  // Returns how the job ended for the hosted parts.
  absl::Status Wait() const {
    // The chief's result is that of the job, so it replaces the mirror's.
    absl::Status status = mirror == nullptr ? absl::OkStatus() : mirror->Wait();
    if (chief != nullptr) status = chief->Wait();
    return status;
  }
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

// Starts the chief and the mirror, where this process hosts them, and listens
// on its address.
absl::StatusOr<Hosted> Host(const Cluster& cluster, const Flags& flags) {
  Hosted hosted;
  if (cluster.IsChief()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const JobConfig job, LoadJob(flags.job));
    LOCKSTEP_ASSIGN_OR_RETURN(
        hosted.chief,
        HostedChief::Start(cluster, job, Clock::Real(), flags.job.beginning,
                           !flags.common.status_address.empty()));
  }
  if (cluster.hosts_mirrors()) {
    server::PsServer::Options options = flags.mirror;
    if (hosted.chief != nullptr) {
      // One server at one address answers for both.
      options.more_services = hosted.chief->services();
    }
    LOCKSTEP_ASSIGN_OR_RETURN(hosted.mirror, StartListening([&] {
                                return HostedMirror::Start(cluster, options,
                                                           Clock::Real());
                              }));
  } else if (hosted.chief != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string address,
                              cluster.Address(cluster.self()));
    LOCKSTEP_RETURN_IF_ERROR(StartListening([&]() -> absl::StatusOr<bool> {
                               LOCKSTEP_RETURN_IF_ERROR(
                                   hosted.chief->Serve(address));
                               return true;
                             }).status());
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(hosted.server, ServeHealth(cluster));
  }
  return hosted;
}

int Train(const Cluster& cluster, const Flags& flags, SignalGate& signals) {
  absl::StatusOr<Hosted> hosted = Host(cluster, flags);
  if (!hosted.ok()) return Refuse(hosted.status());
  absl::StatusOr<std::unique_ptr<Worker>> worker =
      Worker::Make(cluster, flags.worker, Clock::Real());
  if (!worker.ok()) return Refuse(worker.status());
  absl::StatusOr<std::unique_ptr<StatusServer>> status_server = ServeStatus(
      flags.common, cluster,
      [&] {
        MetricFamilies metrics =
            ProgressMetrics(kOwnProgress, {{{}, (*worker)->progress()}});
        metrics.Add(hosted->Metrics());
        return metrics;
      },
      [&] { return hosted->Pages(); });
  if (!status_server.ok()) return Refuse(status_server.status());
  const ServiceManagerClient service_manager(
      cluster.Address(cluster.self()).value_or(""));
  if (hosted->mirror != nullptr) {
    hosted->mirror->SetOnStopped(
        [&](const std::string& why) { (*worker)->RequestStop(why); });
  }
  signals.SetHandler([&](const std::string& reason) {
    // The chief's stop reaches this worker as it does all others. A mirror asks
    // the chief for it: the job cannot go on without.
    if (hosted->chief != nullptr) {
      hosted->chief->RequestStop(reason);
    } else if (hosted->mirror != nullptr) {
      hosted->mirror->RequestStop(reason);
    } else {
      (*worker)->RequestStop(reason);
    }
  });
  const absl::Status status = (*worker)->Run();
  // A worker that can take no part is no reason for its mirror to stay.
  if (!status.ok() && hosted->mirror != nullptr && hosted->chief == nullptr) {
    hosted->mirror->RequestStop(std::string(status.message()));
  }
  const absl::Status job = hosted->Wait();
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
  const std::string own_directory =
      absl::StrCat("/dev/shm/lockstep-", geteuid());
  flags.mirror.state_dir = own_directory;
  parser.app()
      .add_option("--state_dir", flags.mirror.state_dir,
                  "Where the cluster has no ps: directory on a memory file "
                  "system for the file that holds this worker's copy of the "
                  "variables, as of ps_server.")
      ->default_str("/dev/shm/lockstep-UID");
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
  // Only the default directory is removed at the end; one that the user names
  // stays.
  flags.mirror.own_state_dir = flags.mirror.state_dir == own_directory;
  flags.mirror.expected_job = flags.worker.expected_job;
  flags.mirror.shared_memory = flags.transfer.shared_memory;
  flags.mirror.chief_wait = flags.transfer.chief_wait;
  return lockstep::worker::Main(flags);
}
