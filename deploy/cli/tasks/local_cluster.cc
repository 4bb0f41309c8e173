#include "deploy/cli/tasks/local_cluster.h"

#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster.h"
#include "common/cluster/host_port.h"
#include "common/text/excerpt.h"
#include "deploy/cli/tasks/cluster_file.h"

namespace lockstep::cli {
namespace {

absl::Status CheckDense(const Cluster& cluster) {
  for (const auto& [job, tasks] : cluster.spec().jobs()) {
    if (tasks.empty() || cluster.spec().IsDense(job)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        cluster.source(), ": cluster.", job,
        " leaves out indices; list all tasks from 0 on, so that each can be "
        "started"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ResolveAddress(const std::string& address,
                                           const std::string& path,
                                           const LocalHosts& hosts,
                                           const PortChooser& choose_port) {
  LOCKSTEP_ASSIGN_OR_RETURN(HostPort parsed, ParseHostPort(address));
  if (!hosts.Contains(parsed.host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is ", Excerpt(address),
        ", which is not on this machine; use localhost, or start that task "
        "there by other means"));
  }
  // Tasks would wait for one another until the job fails.
  if (!hosts.Resolves(parsed.host)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " is ", Excerpt(address),
        ", a name that does not resolve on this machine, so that no other task "
        "could reach this one; use localhost, or add the name to /etc/hosts"));
  }
  if (parsed.port == 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(parsed.port, choose_port());
  }
  return parsed.ToString();
}

// Returns the ports that the cluster gives, and 0 if it leaves any out.
std::set<int> PortsOf(const Cluster& cluster) {
  std::set<int> ports;
  for (const auto& [job, tasks] : cluster.spec().jobs()) {
    for (const auto& [index, address] : tasks) {
      const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
      if (parsed.ok()) ports.insert(parsed->port);
    }
  }
  return ports;
}

absl::StatusOr<ClusterSpec> ResolveAll(const Cluster& cluster,
                                       const LocalHosts& hosts,
                                       const PortChooser& choose_port) {
  // A port that is free now may be that of a task which has not started yet.
  const std::set<int> given = PortsOf(cluster);
  const PortChooser choose_other = [&]() -> absl::StatusOr<int> {
    while (true) {
      LOCKSTEP_ASSIGN_OR_RETURN(const int port, choose_port());
      if (!given.contains(port)) return port;
    }
  };
  ClusterSpec::Jobs jobs;
  for (const auto& [job, tasks] : cluster.spec().jobs()) {
    for (const auto& [index, address] : tasks) {
      const std::string path =
          absl::StrCat(cluster.source(), ": cluster.", job, "[", index, "]");
      LOCKSTEP_ASSIGN_OR_RETURN(
          jobs[job][index], ResolveAddress(address, path, hosts, choose_other));
    }
  }
  return ClusterSpec::FromJobs(std::move(jobs));
}

}  // namespace

absl::StatusOr<LocalCluster> MakeLocalCluster(absl::string_view json,
                                              absl::string_view source,
                                              const LocalHosts& hosts,
                                              const PortChooser& choose_port) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Cluster cluster,
                            ParseClusterFile(json, source));
  LOCKSTEP_RETURN_IF_ERROR(CheckDense(cluster));
  LOCKSTEP_RETURN_IF_ERROR(cluster.HasMirrors()
                               ? cluster.ValidateForAllReduce()
                               : cluster.ValidateForParameterServers());
  LocalCluster local;
  LOCKSTEP_ASSIGN_OR_RETURN(local.spec,
                            ResolveAll(cluster, hosts, choose_port));
  for (const TaskType type : {TaskType::kPs, TaskType::kChief,
                              TaskType::kWorker, TaskType::kEvaluator}) {
    for (const TaskId& task : cluster.Tasks(type)) local.tasks.push_back(task);
  }
  local.chief = cluster.chief();
  LOCKSTEP_ASSIGN_OR_RETURN(
      local.chief_address,
      local.spec.TaskAddress(TaskTypeName(local.chief.type),
                             local.chief.index));
  local.hosts_mirrors = cluster.HasMirrors();
  local.num_workers = cluster.num_workers();
  if (local.hosts_mirrors && cluster.has_chief()) ++local.num_workers;
  local.warnings = cluster.warnings();
  return local;
}

absl::StatusOr<std::string> ChiefAddressOf(absl::string_view json,
                                           absl::string_view source) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Cluster cluster,
                            ParseClusterFile(json, source));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string address,
                            cluster.Address(cluster.chief()));
  LOCKSTEP_ASSIGN_OR_RETURN(const HostPort parsed, ParseHostPort(address));
  if (parsed.port == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        source, ": the chief's address is ", Excerpt(address),
        ", whose port was chosen at the start; use --log_dir, or the "
        "cluster.json in that directory"));
  }
  return address;
}

}  // namespace lockstep::cli
