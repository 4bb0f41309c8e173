#include "common/program/main_support.h"

#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/fault_points.h"
#include "common/base/input_file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/base/stop_status.h"
#include "common/cluster/host_port.h"
#include "common/cluster/tf_config_loader.h"
#include "common/flags/flag_parser.h"
#include "common/job/codec/job_config_codec.h"
#include "common/job/codec/job_text_codec.h"
#include "common/job/job_warnings.h"
#include "common/memory/spare_memory.h"
#include "common/metrics/durations.h"
#include "common/observe/process_metrics.h"
#include "common/process/listen_address.h"
#include "common/process/process_limits.h"
#include "common/program/security_metrics.h"
#include "common/rpc/own_server.h"
#include "common/rpc/security/transport/transport_security.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

// The time that gRPC has at the end to release its servers and channels.
constexpr absl::Duration kEndGrace = absl::Seconds(30);
// Longer than a probe waits by default, shorter than those of the manifests.
constexpr absl::Duration kHealthTime = absl::Seconds(2);
// About the number of threads of gRPC and Lockstep before the first step,
// without the computing threads.
constexpr int kThreads = 16;
// About the number of descriptors of a process that are no connections to other
// tasks.
constexpr int kFiles = 24;

// Labels of this process, for its metrics.
MetricLabels OwnLabels() {
  const LogSubject subject = CurrentLogSubject();
  // The subject's task is "worker 1".
  const std::pair<std::string, std::string> task =
      absl::StrSplit(subject.task, absl::MaxSplits(' ', 1));
  return {{"job", subject.job}, {"task", task.first}, {"index", task.second}};
}

std::map<std::string, TaskId> PeersOf(const Cluster& cluster) {
  std::map<std::string, TaskId> peers;
  for (const auto& [job, tasks] : cluster.spec().jobs()) {
    const absl::StatusOr<TaskType> type = ParseTaskType(job);
    // Other jobs of the cluster run none of Lockstep's programs.
    if (!type.ok()) continue;
    for (const auto& [index, address] : tasks) {
      peers[address] = TaskId{*type, index};
    }
  }
  // Where a worker hosts the chief, callers of its address mean the chief.
  const absl::StatusOr<std::string> chief = cluster.Address(cluster.chief());
  if (chief.ok()) peers[*chief] = TaskId{TaskType::kChief, 0};
  return peers;
}

// The tasks with which this process has connections: those that register with
// the chief or call a server, or the servers that a worker calls.
int CountPeers(const Cluster& cluster) {
  const TaskType own = cluster.self().type;
  const bool calls_only =
      own == TaskType::kWorker || own == TaskType::kEvaluator;
  if (calls_only && !cluster.IsChief() && !cluster.hosts_mirrors()) {
    return cluster.num_ps();
  }
  return static_cast<int>(PeersOf(cluster).size());
}

// The names by which others may ask this process for its status.
std::vector<std::string> HostNames(const CommonFlags& flags,
                                   const Cluster& cluster) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& address) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
    if (parsed.ok()) names.push_back(absl::AsciiStrToLower(parsed->host));
  };
  add(flags.status_address);
  for (const auto& [job, tasks] : cluster.spec().jobs()) {
    for (const auto& [index, address] : tasks) add(address);
  }
  // One byte more than is passed below: gethostname() need not end a cut name
  // with 0.
  char own[HOST_NAME_MAX + 1] = {};
  if (gethostname(own, HOST_NAME_MAX) == 0) {
    names.push_back(absl::AsciiStrToLower(own));
  }
  return names;
}

// Checks that the certificate of this process is that of `task`.
absl::Status CheckOwnCertificate(const TransportSecurity& security,
                                 const std::string& directory,
                                 const TaskId& task, const TaskId& self) {
  const Caller shown = security.ToCaller(security.own().names);
  if (shown.CheckSpeaksFor(task).ok()) return absl::OkStatus();
  const std::string member =
      absl::StrCat(TaskTypeName(self.type), "-", self.index);
  return absl::InvalidArgumentError(absl::StrCat(
      "--tls_dir: the certificate in ", directory, " is that of ",
      shown.ToString(), ", and this process is ", self.ToString(),
      task == self ? "" : ", which hosts the chief",
      "; it needs a certificate with the name lockstep://", security.job(), "/",
      TaskTypeName(task.type), "/", task.index, ": name the directory of ",
      member, ", or make it with `lockstep certs make --only ", member, "`"));
}

// Reads the certificates, or checks that the task can do without.
absl::Status Secure(const CommonFlags& flags, const Cluster& cluster) {
  if (flags.tls_dir.empty()) {
    if (!flags.identity_map.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--identity_map is ", flags.identity_map,
          ", but there is no --tls_dir: without certificates nobody has a "
          "role; name their directory with --tls_dir, or leave the map out"));
    }
    const absl::StatusOr<std::string> own = cluster.Address(cluster.self());
    return own.ok() ? CheckExposure(flags, *own) : absl::OkStatus();
  }
  TransportSecurity::Options options;
  options.directory = TlsDirOf(flags.tls_dir, cluster.self());
  options.identity_map = flags.identity_map;
  options.peers = PeersOf(cluster);
  options.tasks = {cluster.self()};
  // Callers of a hosted chief expect a certificate of the chief.
  if (cluster.IsChief()) options.tasks.push_back({TaskType::kChief, 0});
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<TransportSecurity> security,
                            TransportSecurity::Load(options));
  for (const TaskId& task : options.tasks) {
    LOCKSTEP_RETURN_IF_ERROR(CheckOwnCertificate(*security, options.directory,
                                                 task, cluster.self()));
  }
  SetOwnSecurity(std::move(security));
  return absl::OkStatus();
}

void LogEnd(const absl::Status& status) {
  if (status.ok()) {
    spdlog::info("done");
  } else if (absl::IsCancelled(status)) {
    spdlog::warn("stopped: {}", std::string(status.message()));
  } else {
    spdlog::error("{}", std::string(status.message()));
  }
}

}  // namespace

void AddCommonFlags(FlagParser& parser, CommonFlags& flags) {
  parser.app().add_option(
      "--tf_config", flags.tf_config,
      "JSON file with this process's task and the addresses of all others; "
      "without it, the environment variable TF_CONFIG is read.");
  parser.app()
      .add_option("--log_level", flags.log_level,
                  "Least severe lines to log: trace, debug, info, warning or "
                  "error.")
      ->capture_default_str();
  parser.app().add_option(
      "--status_address", flags.status_address,
      "HOST:PORT at which to serve HTTP: metrics for Prometheus at /metrics "
      "and, in the process that runs the chief, the page of the job at /. "
      "Port 0 takes a free port, which the log names.");
  parser.app().add_option(
      "--tls_dir", flags.tls_dir,
      "Directory with tls.crt, tls.key and ca.crt: all connections use mutual "
      "TLS 1.3, and each call needs a certificate whose role may make it. "
      "{role} and {index} stand for those of this task. The files may be "
      "renewed at any time. `lockstep certs make` makes them.");
  parser.app().add_option(
      "--identity_map", flags.identity_map,
      "File that gives roles to certificates with other names than Lockstep's, "
      "in lines such as spiffe://DOMAIN/PATH = worker/*.");
  parser.app().add_flag(
      "--insecure", flags.insecure,
      "Listen beyond loopback without certificates: every host that reaches "
      "the address can then stop the job, and read or change the model.");
  parser.app().add_flag("--exit_with_parent", flags.exit_with_parent,
                        "End when the process that started this one ends.");
  parser.app().add_flag(
      "--stopped_is_done", flags.stopped_is_done,
      "Exit with 0 instead of 3 if an operator has stopped the job for good, "
      "or removed this worker: for platforms that restart each process whose "
      "exit code is not 0, as Kubernetes with restartPolicy OnFailure.");
}

std::string OptionOfProgram(const std::string& given, const char* variable) {
  const char* const set = std::getenv(variable);
  return given.empty() && set != nullptr ? set : given;
}

std::string LogLevelOfProgram(const std::string& given) {
  const std::string level = OptionOfProgram(given, "LOCKSTEP_LOG_LEVEL");
  return level.empty() ? "warning" : level;
}

void AddJobFlags(FlagParser& parser, JobFlags& flags) {
  parser.app().add_option(
      "--job", flags.file,
      "Job file, protobuf text format; only the process that runs the chief "
      "reads one.");
  parser.app().add_option(
      "--set", flags.overrides,
      "Set one field of the job, as in --set train_steps=500, "
      "model.hidden_units=64,32 for a list or checkpoint.every=60s for a "
      "time; may be repeated. `lockstep explain` describes all fields.");
  CLI::Option* fresh = parser.app().add_flag_callback(
      "--fresh", [&flags] { flags.beginning.step = Beginning::kFresh; },
      "Begin at step 0 and ignore existing state: servers discard their "
      "state, checkpoints are renamed to set-aside-step-... A unit or a pod "
      "must not have this flag: the job would begin anew at each of its "
      "starts.");
  parser.app()
      .add_option_function<int64_t>(
          "--from", [&flags](int64_t step) { flags.beginning.step = step; },
          "Go on from the checkpoint of this step: servers discard their "
          "state, newer checkpoints are renamed to set-aside-step-... A "
          "unit or a pod must not have this flag either.")
      ->check(AtLeast(0))
      ->type_name("STEP")
      ->excludes(fresh);
}

absl::StatusOr<JobFlags> JobOfProgram(JobFlags given) {
  given.file = OptionOfProgram(given.file, "LOCKSTEP_JOB");
  std::vector<std::string> overrides = absl::StrSplit(
      OptionOfProgram("", "LOCKSTEP_SET"), '\n', absl::SkipEmpty());
  // Those of the program are the last word.
  overrides.insert(overrides.end(), given.overrides.begin(),
                   given.overrides.end());
  given.overrides = std::move(overrides);
  const std::string begin = OptionOfProgram("", "LOCKSTEP_BEGIN");
  if (begin == "fresh") {
    given.beginning.step = Beginning::kFresh;
  } else if (!begin.empty() &&
             (!absl::SimpleAtoi(begin, &given.beginning.step) ||
              given.beginning.step < 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("LOCKSTEP_BEGIN is ", Excerpt(begin),
                     ", but must be \"fresh\" or a step of a checkpoint"));
  }
  return given;
}

void AddTransferFlags(FlagParser& parser, TransferFlags& flags) {
  parser.app()
      .add_option_function<std::string>(
          "--shared_memory",
          [&flags](const std::string& value) {
            flags.shared_memory = value == "auto";
          },
          "auto: move tensors through memory between workers and servers of "
          "one host and user, if possible; off: always over the wire.")
      ->check(CLI::IsMember({"auto", "off"}))
      ->default_str("auto");
  parser.app()
      .add_option(
          "--pollers", flags.pollers,
          "Number of gRPC's threads that serve the network. gRPC has half "
          "as many as there are processors, at least 2 and at most 16. 0: "
          "all of them; if there are 2, only one on a worker, and only one "
          "on a server while many small calls arrive.")
      ->check(CLI::Range(0, 16))
      ->capture_default_str();
  parser.app()
      .add_option("--numa_node", flags.numa_node,
                  "Run on the processors of this NUMA node alone, and so "
                  "use its memory. The best node is that of the network "
                  "card or the GPU. Default: all nodes.")
      ->check(CLI::Range(0, 1023));
  parser.app()
      .add_option_function<int64_t>(
          "--chief_wait",
          [&flags](int64_t seconds) {
            flags.chief_wait =
                seconds > 0 ? absl::Seconds(seconds) : absl::InfiniteDuration();
          },
          "Seconds to wait for a chief that has never answered; then this "
          "process ends with exit code 129, which asks for a restart. For a "
          "chief that has answered, the job's max_wait is the limit. 0: "
          "without limit.")
      ->check(AtLeast(0))
      ->default_str("600");
}

absl::StatusOr<JobConfig> LoadJob(const JobFlags& flags) {
  if (flags.file.empty()) {
    return absl::NotFoundError(
        "--job, or for a program of yours LOCKSTEP_JOB, in Python also job=, "
        "is missing; this process runs the chief and needs the job file");
  }
  // One byte more than ParseJobText() takes: the file may have no end.
  const absl::StatusOr<std::string> text =
      ReadInputFile(flags.file, kMaxJobTextBytes + 1);
  if (!text.ok()) {
    return absl::NotFoundError(absl::StrCat(
        "the job file ", flags.file, " cannot be read: ",
        text.status().message(), "; check the name and its rights"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(JobConfig job,
                            ParseJobText(*text, flags.file, flags.overrides));
  LOCKSTEP_RETURN_IF_ERROR(ValidateJobConfig(job));
  // Before the chief fills in fields: see JobWarnings().
  for (const std::string& warning : JobWarnings(job)) {
    spdlog::warn("{}", warning);
  }
  return job;
}

absl::StatusOr<Cluster> StartProcess(const CommonFlags& flags,
                                     const std::vector<TaskType>& allowed,
                                     const std::string& program) {
  // First: the parent may end at any moment.
  if (flags.exit_with_parent) LOCKSTEP_RETURN_IF_ERROR(ExitWithParent());
  LOCKSTEP_ASSIGN_OR_RETURN(TfConfig config, LoadTfConfig(flags.tf_config));
  LOCKSTEP_ASSIGN_OR_RETURN(Cluster cluster, Cluster::Make(config));
  // Returns its error: the programs need a cluster.
  if (cluster.IsLocal()) return cluster.ValidateForParameterServers();
  if (cluster.HasMirrors()) {
    LOCKSTEP_ASSIGN_OR_RETURN(cluster, cluster.WithMirrors());
  }
  LOCKSTEP_RETURN_IF_ERROR(RequireTaskType(cluster, allowed, program));
  // Not earlier: each line of the log names the task.
  LOCKSTEP_RETURN_IF_ERROR(InitLog(cluster.self().ToString(), flags.log_level));
  LOCKSTEP_RETURN_IF_ERROR(ArmFaultFromEnvironment());
  LOCKSTEP_RETURN_IF_ERROR(CheckThreads(kThreads));
  LOCKSTEP_RETURN_IF_ERROR(CheckFiles(kFiles + CountPeers(cluster)));
  LOCKSTEP_RETURN_IF_ERROR(Secure(flags, cluster));
  ReturnFreeMemoryEveryMinute();
  for (const std::string& warning : cluster.warnings()) {
    spdlog::warn("{}", warning);
  }
  return cluster;
}

absl::Status CheckExposure(const CommonFlags& flags,
                           const std::string& address) {
  if (flags.insecure || !flags.tls_dir.empty() || IsLoopback(address)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      address,
      " is no loopback address, and there are no certificates: every host that "
      "reaches it could stop the job, or read the model. Make certificates "
      "with `lockstep certs make` and name them with --tls_dir, or allow it "
      "with --insecure; in a program of yours with tls_dir or "
      "LOCKSTEP_TLS_DIR=DIR, and LOCKSTEP_INSECURE=1"));
}

absl::StatusOr<std::unique_ptr<StatusServer>> ServeStatus(
    const CommonFlags& flags, const Cluster& cluster,
    std::function<MetricFamilies()> source,
    const std::function<std::vector<StatusPage>()>& pages) {
  if (flags.status_address.empty()) return nullptr;
  const absl::Status exposed = CheckExposure(flags, flags.status_address);
  // StatusServer::Start() reports an address that cannot be parsed.
  if (!exposed.ok() && ParseHostPort(flags.status_address).ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--status_address: ", exposed.message()));
  }
  StatusServer::Options options;
  if (pages != nullptr) options.pages = pages();
  options.pages.push_back({.path = "/metrics",
                           .type = "text/plain; version=0.0.4; charset=utf-8",
                           .body = [source = std::move(source)] {
                             MetricFamilies metrics = source();
                             metrics.Add(DurationMetrics());
                             metrics.Add(ProcessMetrics());
                             metrics.Add(SecurityMetrics());
                             // Last, so that all samples get them; the job's
                             // name is known only after the registration, hence
                             // at each request.
                             metrics.AddLabels(OwnLabels());
                             return metrics.ToText();
                           }});
  const std::string own_server =
      cluster.Address(cluster.self()).value_or(std::string());
  if (!own_server.empty()) {
    options.health = [own_server] {
      return CheckOwnServer(own_server, kHealthTime);
    };
  }
  options.host_names = HostNames(flags, cluster);
  options.guard = !flags.tls_dir.empty();
  absl::StatusOr<std::unique_ptr<StatusServer>> server = StartListening(
      [&] { return StatusServer::Start(flags.status_address, options); });
  if (!server.ok()) {
    return absl::Status(
        server.status().code(),
        absl::StrCat("--status_address: ", server.status().message()));
  }
  spdlog::info("status on port {}", (*server)->port());
  return server;
}

void LogRetry(const std::string& why) {
  spdlog::warn("{}; trying again for {}", why,
               absl::FormatDuration(kPortPatience));
}

int Refuse(const absl::Status& status) {
  std::cerr << status.message() << std::endl;
  const bool passing = absl::IsAborted(status) || absl::IsUnavailable(status);
  return passing ? kExitLost : kExitUsage;
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kExitDone;
  if (absl::IsCancelled(status)) {
    // Held: a restart would only be refused again.
    return IsHeld(status) ? kExitHeld : kExitStopped;
  }
  // Another program, or another version, is at an address of the cluster.
  if (absl::IsUnimplemented(status)) return kExitUsage;
  // An unavailable peer may come back, so this process asks for a restart.
  return absl::IsUnavailable(status) ? kExitLost : kExitFailed;
}

int EndProcess(const CommonFlags& flags, const absl::Status& status) {
  LogEnd(status);
  const int code = ExitCodeOf(status);
  const bool done = code == kExitHeld && flags.stopped_is_done;
  return EndWithin(kEndGrace, done ? kExitDone : code);
}

void EndProcessNow(const absl::Status& status) {
  LogEnd(status);
  spdlog::default_logger()->flush();
  _exit(ExitCodeOf(status));
}

SignalGate::SignalGate(absl::Duration same)
    : same_(same), watcher_([this](int signal) { OnSignal(signal); }) {}

void SignalGate::SetHandler(
    std::function<void(const std::string& reason)> handler) {
  MutexLock lock(mutex_);
  handler_ = std::move(handler);
  if (!handler_ || !pending_.has_value()) return;
  handler_(*pending_);
  pending_.reset();
}

void SignalGate::OnSignal(int signal) {
  MutexLock lock(mutex_);
  if (first_.has_value()) {
    if (Clock::Real().Now() - *first_ < same_) return;
    // _exit() and not exit(): destructors could wait for a step that never
    // ends.
    _exit(128 + signal);
  }
  first_ = Clock::Real().Now();
  // Kept for a handler that is set later.
  pending_ = absl::StrCat("SIG", sigabbrev_np(signal));
  if (!handler_) return;
  handler_(*pending_);
  pending_.reset();
}

}  // namespace lockstep
