#include "deploy/cli/run/run_setup.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/cluster/host_port.h"
#include "common/cluster/tf_config.h"
#include "common/job/cluster_fit.h"
#include "common/job/job_config.h"
#include "common/job/job_warnings.h"
#include "common/job/strategy_checks.h"
#include "common/process/process_limits.h"
#include "deploy/cli/certs/certificate_set.h"
#include "deploy/cli/tasks/job_checks.h"
#include "deploy/cli/tasks/job_file.h"
#include "deploy/cli/tasks/job_needs.h"
#include "deploy/cli/tasks/local_hosts.h"
#include "deploy/cli/tasks/log_files.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {
namespace {

// A run that lasts longer renews them with a restart.
constexpr absl::Duration kCertificatesLast = absl::Hours(24 * 365);
// About the number of threads that gRPC and the launcher make.
constexpr int kThreads = 16;
// About the number of descriptors that both open.
constexpr int kFiles = 16;

std::string TemporaryDirectory() {
  const char* directory = getenv("TMPDIR");
  return directory == nullptr || *directory == '\0' ? "/tmp" : directory;
}

// An empty path stays empty.
std::string Absolute(const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// The name in messages of the cluster of a request.
std::string ClusterSource(const RunRequest& request) {
  return request.cluster_file.empty() ? "--ps and --workers"
                                      : request.cluster_file;
}

absl::StatusOr<std::string> ClusterText(const RunRequest& request) {
  if (!request.cluster_file.empty()) {
    return ReadFlagFile("--cluster", request.cluster_file);
  }
  TaskCounts counts = request.counts;
  counts.evaluator = !request.evaluator_command.empty();
  return CountedClusterJson(counts);
}

bool HasEvaluator(const LocalCluster& cluster) {
  return std::any_of(cluster.tasks.begin(), cluster.tasks.end(),
                     [](TaskId t) { return t.type == TaskType::kEvaluator; });
}

absl::StatusOr<LocalCluster> ReadCluster(const RunRequest& request,
                                         std::vector<PortReservation>& ports) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string json, ClusterText(request));
  const auto choose_port = [&ports]() -> absl::StatusOr<int> {
    LOCKSTEP_ASSIGN_OR_RETURN(PortReservation port, PortReservation::Create());
    ports.push_back(std::move(port));
    return ports.back().port();
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      LocalCluster cluster,
      MakeLocalCluster(json, ClusterSource(request),
                       LocalHosts::OfThisMachine(), choose_port));
  // A job with other addresses is another job.
  if (!request.state_dir.empty() && !ports.empty()) {
    cluster.warnings.push_back(
        "--state_dir: the next run will not go on from this state, as a port "
        "of 0 is another one in each run; give --cluster FILE with all ports, "
        "as `lockstep config make --port 2222` writes it");
  }
  return cluster;
}

absl::Status CheckCommands(const RunRequest& request,
                           const LocalCluster& cluster) {
  if (!request.evaluator_command.empty() && !HasEvaluator(cluster)) {
    return absl::InvalidArgumentError(absl::StrCat(
        ClusterSource(request),
        ": --evaluator is given, but the cluster has no evaluator; add "
        "\"evaluator\": [\"localhost:0\"]"));
  }
  return absl::OkStatus();
}

// Adds the ports of one server to those of the others. Reservations do not
// exclude each other, but servers do.
absl::Status KeepPorts(std::vector<PortReservation> taken, RunSetup& setup) {
  for (const PortReservation& port : taken) {
    for (const PortReservation& other : setup.ports) {
      if (!port.Collides(other)) continue;
      return absl::InvalidArgumentError(
          "a task of this run has the port; give another port, or 0 to have a "
          "free one chosen");
    }
  }
  for (PortReservation& port : taken) setup.ports.push_back(std::move(port));
  return absl::OkStatus();
}

// Takes a given port, to keep it.
absl::Status TakePort(const HostPort& address, RunSetup& setup) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<PortReservation> taken,
                            PortReservation::Take(address.host, address.port));
  return KeepPorts(std::move(taken), setup);
}

// The cluster file's ports must be free, and stay reserved until the run is
// over.
absl::Status TakePorts(const RunRequest& request, RunSetup& setup) {
  std::set<int> chosen;
  for (const PortReservation& port : setup.ports) chosen.insert(port.port());
  for (const TaskId& task : setup.cluster.tasks) {
    const absl::string_view job = TaskTypeName(task.type);
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string address,
                              setup.cluster.spec.TaskAddress(job, task.index));
    LOCKSTEP_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
    // Ports chosen for 0 are reserved already.
    if (chosen.contains(parsed.port)) continue;
    const absl::Status taken = TakePort(parsed, setup);
    if (!taken.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(ClusterSource(request), ": cluster.", job, "[",
                       task.index, "] is ", address, ": ", taken.message()));
    }
  }
  return absl::OkStatus();
}

// Reserves the port of the job's page, as those of tasks.
absl::Status TakeStatusPort(const RunRequest& request, RunSetup& setup) {
  if (request.status_address.empty()) return absl::OkStatus();
  absl::StatusOr<HostPort> address = ParseHostPort(request.status_address);
  if (!address.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--status_address ", request.status_address, ": ",
                     address.status().message(), "; give 127.0.0.1:PORT"));
  }
  // A server can listen there, though LocalHosts does not know them, since no
  // process can connect to them.
  const bool any = address->host == "0.0.0.0" || address->host == "::";
  if (!any && !LocalHosts::OfThisMachine().Contains(address->host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--status_address ", request.status_address, ": ", address->host,
        " is no address of this machine; give 127.0.0.1:PORT, or "
        "leave the flag out"));
  }
  if (address->port == 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(PortReservation port, PortReservation::Create());
    address->port = port.port();
    setup.ports.push_back(std::move(port));
  } else {
    const absl::Status taken = TakePort(*address, setup);
    if (!taken.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--status_address ", request.status_address, ": ", taken.message()));
    }
  }
  setup.status_address = address->ToString();
  return absl::OkStatus();
}

// The chief's flags.
std::vector<std::string> FlagsOf(const Beginning& beginning) {
  if (!beginning.anew()) return {};
  if (beginning.step == Beginning::kFresh) return {"--fresh"};
  return {"--from", absl::StrCat(beginning.step)};
}

absl::Status CheckJob(const RunRequest& request, const JobConfig& job,
                      const LocalCluster& cluster) {
  LOCKSTEP_RETURN_IF_ERROR(FitToCluster(job, cluster.num_workers).status());
  const auto num_ps = static_cast<int>(
      std::count_if(cluster.tasks.begin(), cluster.tasks.end(),
                    [](const TaskId& t) { return t.type == TaskType::kPs; }));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckStrategyServers(job, cluster.num_workers, num_ps));
  LOCKSTEP_RETURN_IF_ERROR(CheckModelAndData(
      job, {.own_workers = !request.command.empty(),
            .has_evaluator = HasEvaluator(cluster),
            .own_evaluator = !request.evaluator_command.empty()}));
  LOCKSTEP_RETURN_IF_ERROR(CheckBatch(job, cluster.num_workers));
  LOCKSTEP_RETURN_IF_ERROR(CheckSummaries(job));
  return CheckCheckpoints(job, request.beginning);
}

// The text of the job file, and its name in messages.
struct JobText {
  std::string text;
  std::string source;
};

absl::StatusOr<JobText> ReadJobText(const RunRequest& request) {
  if (!request.job_file.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(std::string text,
                              ReadFlagFile("--job", request.job_file));
    return JobText{std::move(text), request.job_file};
  }
  if (!request.settings.empty()) return JobText{"", "--set"};
  return absl::InvalidArgumentError(
      "there is no job; give --job FILE, or its fields, as in --set "
      "train_steps=1000");
}

// The settings of the request, and those that its other flags imply.
absl::StatusOr<std::vector<std::string>> AllSettings(const RunRequest& request,
                                                     const JobText& job) {
  std::vector<std::string> settings = request.settings;
  if (!request.command.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        settings, SettingsForOwnProgram(job.text, job.source, settings));
  }
  return WithBackups(request.counts, std::move(settings));
}

// Under a strategy of one worker the counts need not be given. A worker under
// MULTI_WORKER_MIRRORED has a server beside it.
absl::StatusOr<RunRequest> WithCounts(RunRequest request) {
  const bool counted = request.counts.workers > 0 || request.counts.backups > 0;
  const absl::StatusOr<JobText> file = ReadJobText(request);
  // The cluster says which tasks there are, and errors of the job file are
  // found later, by ReadJob().
  if (!request.cluster_file.empty()) return request;
  if (!file.ok()) {
    // A file that cannot be read might have said that no workers are needed.
    if (!request.job_file.empty()) return file.status();
    return request;
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> settings,
                            AllSettings(request, *file));
  LOCKSTEP_ASSIGN_OR_RETURN(const JobConfig job,
                            DecodeJobFile(file->text, file->source, settings));
  if (job.strategy.kind == StrategyKind::kMultiWorkerMirrored) {
    // CountedClusterJson() says that there are no workers.
    if (request.counts.ps_given && request.counts.workers > 0 &&
        request.counts.ps != request.counts.workers) {
      return absl::InvalidArgumentError(
          absl::StrCat("--ps is ", request.counts.ps,
                       ", but under MULTI_WORKER_MIRRORED "
                       "each of the ",
                       request.counts.workers,
                       " workers has a server of its own; leave --ps out"));
    }
    request.counts.ps = request.counts.workers;
  } else if (!counted && job.strategy.kind != StrategyKind::kParameterServer) {
    request.counts.workers = 1;
  }
  return request;
}

absl::Status ReadJob(const RunRequest& request, const JobText& file,
                     RunSetup& setup) {
  LOCKSTEP_ASSIGN_OR_RETURN(setup.settings, AllSettings(request, file));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const JobConfig job,
      DecodeJobFile(file.text, file.source, setup.settings));
  if (!request.evaluator_command.empty() && job.checkpoint.directory.empty()) {
    return absl::InvalidArgumentError(
        "--evaluator is given, but the job has no checkpoint.directory, so "
        "there is nothing to evaluate; add --set checkpoint.directory=DIR");
  }
  const absl::Status fits = CheckJob(request, job, setup.cluster);
  if (!fits.ok()) {
    // The code stays: kFailedPrecondition is another job in the same directory.
    return absl::Status(fits.code(),
                        absl::StrCat(file.source, ": ", fits.message()));
  }
  setup.job_name = job.name;
  setup.checkpoints = Absolute(job.checkpoint.directory);
  setup.needed_workers = NeededWorkers(job, setup.cluster.num_workers);
  setup.need_follows_settings = !OneWorkerSuffices(job);
  const bool programs = job.model.kind == kExternalModel;
  setup.programs = programs && !job.elastic_workers;
  setup.elastic_programs = programs && job.elastic_workers;
  // A chief task that computes runs the user's command, too.
  setup.chief_in_program = !request.command.empty() &&
                           (setup.cluster.hosts_mirrors ||
                            setup.cluster.chief.type == TaskType::kWorker);
  setup.input_ends = job.data.epochs > 0;
  setup.ps_are_mirrors =
      job.strategy.kind == StrategyKind::kMultiWorkerMirrored;
  for (std::string& warning : JobWarnings(job)) {
    setup.cluster.warnings.push_back(std::move(warning));
  }
  return absl::OkStatus();
}

absl::Status CheckPrograms(const std::vector<TaskLaunch>& launches) {
  for (const TaskLaunch& launch : launches) {
    if (access(launch.program.c_str(), X_OK) == 0) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        launch.program, ": ", launch.task.ToString(),
        " needs this program, which is not there; install all programs of "
        "Lockstep in one directory"));
  }
  return absl::OkStatus();
}

int ComputeThreads(const RunRequest& request, int num_workers) {
  if (request.compute_threads > 0) return request.compute_threads;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, cores / std::max(1, num_workers));
}

// Returns the cluster with its final ports, without a task.
std::string ClusterJson(const LocalCluster& cluster) {
  // ToJson() names a task, too, and the file is for all.
  const nlohmann::json document = nlohmann::json::parse(
      ToJson(cluster.spec, cluster.chief), nullptr, false);
  return nlohmann::json(
             {{"cluster", document.value("cluster", nlohmann::json())}})
             .dump(2) +
         "\n";
}

absl::StatusOr<std::vector<std::string>> Gpus(const RunRequest& request) {
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  return ChooseGpus(request.gpus, visible == nullptr ? "" : visible);
}

absl::Status MakeState(const RunRequest& request, RunSetup& setup) {
  if (request.state_dir.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        setup.state, StateDirectory::CreateIn(StateDirectory::DefaultParent()));
    return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(setup.state,
                            StateDirectory::Adopt(request.state_dir));
  setup.kept_state = Absolute(request.state_dir);
  return absl::OkStatus();
}

// Removes the result of an earlier run, which is no longer valid.
absl::Status MakeLogs(const RunRequest& request, RunSetup& setup) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      setup.logs, LogDirectory::Open(request.log_dir, TemporaryDirectory(),
                                     setup.job_name));
  setup.log_dir = Absolute(setup.logs->path());
  const std::string tls = absl::StrCat(setup.log_dir, "/", kOperatorTlsDir);
  // Mostly there are none, so that errors say nothing.
  unlink(absl::StrCat(setup.log_dir, "/", kResultFile).c_str());
  unlink(tls.c_str());
  if (!request.insecure &&
      symlink(setup.operator_tls_dir.c_str(), tls.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make " + tls);
  }
  LOCKSTEP_RETURN_IF_ERROR(
      WriteTextFile(absl::StrCat(setup.log_dir, "/", kChiefAddressFile),
                    setup.cluster.chief_address + "\n"));
  return WriteTextFile(absl::StrCat(setup.log_dir, "/", kClusterFile),
                       ClusterJson(setup.cluster));
}

// Makes certificates that only this run uses, in a private directory that does
// not outlast it. The authority's key is removed: nothing else is ever signed.
// Returns the --tls_dir of the tasks.
absl::StatusOr<std::string> MakeCertificates(const RunRequest& request,
                                             RunSetup& setup) {
  if (!request.state_dir.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        setup.secrets,
        StateDirectory::CreateIn(StateDirectory::DefaultParent()));
  }
  const StateDirectory& parent =
      setup.secrets == nullptr ? *setup.state : *setup.secrets;
  const absl::Time now = absl::Now();
  CertificateSet set;
  set.job = setup.job_name;
  set.chief = setup.cluster.chief;
  for (const TaskId& task : setup.cluster.tasks) {
    set.tasks.push_back(
        {task,
         setup.cluster.spec.TaskAddress(TaskTypeName(task.type), task.index)
             .value_or("")});
  }
  set.directory = absl::StrCat(parent.path(), "/tls");
  set.validity = {now - absl::Hours(1), now + kCertificatesLast};
  set.authority_valid = set.validity;
  set.made = now;
  LOCKSTEP_RETURN_IF_ERROR(WriteCertificateSet(set).status());
  unlink(
      absl::StrCat(set.directory, "/", CertificateSet::kAuthorityKey).c_str());
  setup.operator_tls_dir = set.directory + "/operator-steer";
  return set.directory + "/{role}-{index}";
}

absl::Status SetCommands(const RunRequest& request, LaunchOptions& options) {
  const char* set = getenv("PATH");
  const std::string path = set == nullptr ? "" : set;
  if (!request.command.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.worker_command,
                              ResolveCommand(request.command, path));
  }
  if (!request.evaluator_command.empty()) {
    const absl::Status there =
        CheckShellCommand(request.evaluator_command, path);
    if (!there.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--evaluator: ", there.message()));
    }
    options.evaluator_command = ShellCommand(request.evaluator_command);
  }
  return absl::OkStatus();
}

// Writes the job file of the chief: a copy, because a chief that is started
// again must find the same job, whatever a person has made of the file
// meanwhile. Returns its path.
absl::StatusOr<std::string> WriteJob(const RunRequest& request,
                                     const JobText& job,
                                     const RunSetup& setup) {
  const std::string path = absl::StrCat(setup.log_dir, "/", kJobFile);
  LOCKSTEP_RETURN_IF_ERROR(WriteTextFile(
      path, request.job_file.empty()
                ? "# `lockstep run` had no job file; the job is all --set.\n"
                : job.text));
  return path;
}

absl::Status MakeTaskDirectories(const RunSetup& setup) {
  for (const TaskLaunch& launch : setup.launches) {
    if (launch.state_dir.empty()) continue;
    LOCKSTEP_RETURN_IF_ERROR(setup.state->MakeChild(launch.state_dir));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunSetup> SetUpRun(const RunRequest& asked) {
  LOCKSTEP_RETURN_IF_ERROR(CheckIsNoSetting(asked.command));
  LOCKSTEP_ASSIGN_OR_RETURN(const RunRequest request, WithCounts(asked));
  RunSetup setup;
  LOCKSTEP_ASSIGN_OR_RETURN(setup.cluster, ReadCluster(request, setup.ports));
  LOCKSTEP_RETURN_IF_ERROR(CheckCommands(request, setup.cluster));
  LOCKSTEP_ASSIGN_OR_RETURN(const JobText job, ReadJobText(request));
  LOCKSTEP_RETURN_IF_ERROR(ReadJob(request, job, setup));
  LOCKSTEP_RETURN_IF_ERROR(CheckGpus(request.gpus));
  LOCKSTEP_RETURN_IF_ERROR(CheckThreads(kThreads));
  LOCKSTEP_RETURN_IF_ERROR(CheckFiles(kFiles));
  LOCKSTEP_RETURN_IF_ERROR(TakePorts(request, setup));
  LOCKSTEP_RETURN_IF_ERROR(TakeStatusPort(request, setup));
  LaunchOptions options = {
      .program_dir = request.program_dir,
      .settings = setup.settings,
      .log_level = request.log_level,
      .own_log_level = request.own_log_level,
      .insecure = request.insecure,
      .status_address = setup.status_address,
      .compute_threads = ComputeThreads(request, setup.cluster.num_workers),
      .beginning = FlagsOf(request.beginning)};
  LOCKSTEP_RETURN_IF_ERROR(SetCommands(request, options));
  if (request.gpus > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.gpus, Gpus(request));
  }
  // Planned twice: the programs are checked before any directory is created,
  // and the final plan needs the directories' paths.
  LOCKSTEP_RETURN_IF_ERROR(CheckPrograms(PlanLaunches(setup.cluster, options)));
  LOCKSTEP_RETURN_IF_ERROR(MakeState(request, setup));
  options.state_dir = setup.state->path();
  if (!request.insecure) {
    LOCKSTEP_ASSIGN_OR_RETURN(options.tls_dir,
                              MakeCertificates(request, setup));
  }
  // Last: a new directory for logs takes the place of the oldest one, and a
  // given one loses its result, which a run that is refused must not do.
  LOCKSTEP_RETURN_IF_ERROR(MakeLogs(request, setup));
  options.log_dir = setup.log_dir;
  LOCKSTEP_ASSIGN_OR_RETURN(options.job_file, WriteJob(request, job, setup));
  setup.launches = PlanLaunches(setup.cluster, options);
  LOCKSTEP_RETURN_IF_ERROR(MakeTaskDirectories(setup));
  return setup;
}

}  // namespace lockstep::cli
