#include "deploy/cli/config/config_check_command.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_environment.h"
#include "common/cluster/host_port.h"
#include "common/cluster/tf_config_loader.h"
#include "common/flags/flag_parser.h"
#include "common/process/new_thread.h"
#include "common/rpc/security/certificate_name.h"
#include "common/rpc/security/certificates/peer_probe.h"
#include "deploy/cli/config/cluster_report.h"
#include "deploy/cli/config/connection_probe.h"
#include "deploy/cli/tasks/cluster_file.h"
#include "deploy/cli/tasks/log_files.h"

namespace lockstep::cli {
namespace {

constexpr int kMistakeExitCode = 1;
// Each probe takes a thread and a socket.
constexpr size_t kProbesAtOnce = 32;

absl::StatusOr<TfConfig> LoadEnvironmentFile(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                            ReadFlagFile("--environment_file", path));
  LOCKSTEP_ASSIGN_OR_RETURN(const Environment variables,
                            ParseEnvironmentFile(text, path));
  return TfConfigOfEnvironment(variables, path);
}

// Finds out whose certificate answers at an address, and whether it is that of
// the task.
ProbeResult ProbeCertificate(const HostPort& address, const TaskId& task,
                             const TlsFiles& own, absl::Duration timeout) {
  const absl::StatusOr<PeerShown> shown =
      ProbePeer(address.host, address.port, &own, timeout);
  if (!shown.ok()) return {false, std::string(shown.status().message())};
  const auto trusted = TrustedAuthorities::Make(own.authorities, own.revoked);
  const absl::Status checked =
      trusted.ok()
          ? (*trusted)->Check(shown->chain, TrustedAuthorities::Side::kServer,
                              absl::Now())
          : trusted.status();
  if (!checked.ok()) return {false, std::string(checked.message())};
  for (const std::string& uri : shown->facts.names.uris) {
    const absl::StatusOr<CertificateName> name = ParseCertificateName(uri);
    if (!name.ok() || !name->Covers(task)) continue;
    if (shown->refusal.empty()) return {true, name->ToString()};
    // The server's side is right; it is this side that is refused.
    return {false, absl::StrCat(name->ToString(),
                                " refuses the certificate of --tls_dir; its "
                                "log says why")};
  }
  return {false, absl::StrCat("the certificate of ", shown->facts.Owner(),
                              " answers, which is not ", task.ToString())};
}

// The fix for an address that cannot be reached, as the end of a message.
absl::string_view FixOf(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (parsed.ok() && parsed->port == 0) {
    return "; `lockstep run` chooses one for its tasks: leave --connect out, "
           "or "
           "write the port";
  }
  return "; start that task, or correct its address";
}

ProbeResult Probe(const std::string& address, const TaskId& task,
                  const TlsFiles* own, absl::Duration timeout) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return {false, "no address"};
  if (parsed->port == 0) return {false, "no port"};
  // First without TLS, which tells a wrong name or port from a wrong
  // certificate.
  ProbeResult result = ProbeConnection(*parsed, timeout);
  if (!result.reached || own == nullptr) return result;
  return ProbeCertificate(*parsed, task, *own, timeout);
}

}  // namespace

ConfigCheckCommand::ConfigCheckCommand(CLI::App& parent)
    : app_(*parent.add_subcommand(
          "check",
          "Explains a TF_CONFIG: the chief, the address of each task, ignored "
          "entries, and mistakes with their fixes.")) {
  app_.add_option("--tf_config", tf_config_,
                  "JSON file to read. Without this and the next two, the "
                  "environment variable TF_CONFIG.");
  app_.add_option("--environment_file", environment_file_,
                  "File of NAME=VALUE lines to read TF_CONFIG from, as for "
                  "systemd's EnvironmentFile= or a Kubernetes ConfigMap.");
  app_.add_option("--cluster", cluster_file_,
                  "JSON file with a cluster alone, as for `lockstep run`.");
  app_.add_flag("--connect", connect_,
                "Try the name and the port of every other task. Tasks that are "
                "not started refuse.");
  app_.add_option("--tls_dir", tls_dir_,
                  "With --connect: directory with tls.crt, tls.key and ca.crt, "
                  "to look whose certificate answers at each address.");
  app_.add_option("--timeout", timeout_seconds_,
                  "Seconds to wait for each address with --connect.")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 3600.0));
}

int ConfigCheckCommand::Run(Terminal& terminal, std::ostream& err) const {
  const int given = static_cast<int>(!tf_config_.empty()) +
                    static_cast<int>(!environment_file_.empty()) +
                    static_cast<int>(!cluster_file_.empty());
  if (given > 1) {
    err << "lockstep config check: " << given
        << " of --tf_config, --environment_file and --cluster are given; give "
           "at most one\n";
    return kUsageExitCode;
  }
  const absl::StatusOr<Cluster> cluster = Load();
  if (!cluster.ok()) {
    // One line for each mistake.
    terminal.Print(absl::StrCat("mistake: ",
                                absl::StrReplaceAll(cluster.status().message(),
                                                    {{"\n", "\nmistake: "}}),
                                "\n"));
    return kMistakeExitCode;
  }
  std::vector<std::string> mistakes = FindMistakes(*cluster);
  std::map<TaskId, std::string> reachable;
  // Connect() probes without TLS if it cannot read the files, so they are read
  // here for the error alone.
  if (connect_ && !tls_dir_.empty()) {
    const absl::StatusOr<TlsFiles> own = ReadTlsFiles(tls_dir_);
    if (!own.ok()) {
      err << "lockstep config check: " << own.status().message() << "\n";
      return kUsageExitCode;
    }
  }
  if (connect_) reachable = Connect(*cluster, mistakes);
  terminal.Print(
      FormatClusterReport(*cluster, reachable, mistakes, terminal.Columns()));
  return mistakes.empty() ? 0 : kMistakeExitCode;
}

absl::StatusOr<Cluster> ConfigCheckCommand::Load() const {
  // `lockstep run` chooses the ports that are 0 in a cluster file; a TF_CONFIG
  // must have them.
  if (!cluster_file_.empty()) return ReadClusterFile(cluster_file_);
  LOCKSTEP_ASSIGN_OR_RETURN(const TfConfig config,
                            environment_file_.empty()
                                ? LoadTfConfig(tf_config_)
                                : LoadEnvironmentFile(environment_file_));
  return Cluster::Make(config);
}

// Adds unreachable tasks to `mistakes`. Probes many at a time, because
// resolving a name may take long.
std::map<TaskId, std::string> ConfigCheckCommand::Connect(
    const Cluster& cluster, std::vector<std::string>& mistakes) const {
  std::vector<std::pair<TaskId, std::string>> peers;
  for (const TaskType type : {TaskType::kChief, TaskType::kWorker,
                              TaskType::kPs, TaskType::kEvaluator}) {
    for (const TaskId& task : cluster.Tasks(type)) {
      // This process does not listen at its own address. A cluster file has no
      // task of its own, so that all are probed.
      if (task == cluster.self() && cluster_file_.empty()) continue;
      peers.emplace_back(task, cluster.Address(task).value_or(""));
    }
  }
  std::map<TaskId, std::string> reachable;
  const absl::Duration timeout = absl::Seconds(timeout_seconds_);
  const absl::StatusOr<TlsFiles> own =
      tls_dir_.empty() ? TlsFiles() : ReadTlsFiles(tls_dir_);
  const TlsFiles* files = tls_dir_.empty() || !own.ok() ? nullptr : &*own;
  for (size_t first = 0; first < peers.size(); first += kProbesAtOnce) {
    const size_t end = std::min(peers.size(), first + kProbesAtOnce);
    std::vector<ProbeResult> results(end - first);
    CallAtOnce(static_cast<int>(results.size()), [&](int number) {
      const auto& [task, address] = peers[first + number];
      results[number] = Probe(address, task, files, timeout);
    });
    for (size_t i = first; i < end; ++i) {
      const ProbeResult& result = results[i - first];
      const auto& [task, address] = peers[i];
      reachable[task] = result.text;
      if (result.reached) continue;
      mistakes.push_back(absl::StrCat(
          cluster.source(), ": cluster.", TaskTypeName(task.type), "[",
          task.index, "] is \"", address, "\": ", result.text, FixOf(address)));
    }
  }
  return reachable;
}

}  // namespace lockstep::cli
