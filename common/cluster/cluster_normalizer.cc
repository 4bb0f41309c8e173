#include "common/cluster/cluster_normalizer.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/host_port.h"
#include "common/text/excerpt.h"
#include "common/text/mistakes.h"

namespace lockstep {
namespace {

// Normalizer holds the intermediate results of NormalizeCluster.
class Normalizer {
 public:
  Normalizer(const TfConfig& config, TaskId self, bool allow_port_zero)
      : config_(config), self_(self), allow_port_zero_(allow_port_zero) {}

  absl::StatusOr<NormalizedCluster> Run() {
    mistakes_.Add(CheckMaster());
    for (const auto& [job, tasks] : config_.cluster.jobs()) AddJob(job, tasks);
    mistakes_.Add(CheckAtMostOne(TaskType::kChief));
    mistakes_.Add(CheckAtMostOne(TaskType::kEvaluator));
    LOCKSTEP_RETURN_IF_ERROR(mistakes_.status());
    MoveLonePsToItsIndex();
    LOCKSTEP_ASSIGN_OR_RETURN(result_.spec,
                              ClusterSpec::FromJobs(std::move(jobs_)));
    return std::move(result_);
  }

 private:
  absl::Status CheckMaster() const {
    const ClusterSpec& cluster = config_.cluster;
    if (cluster.NumTasks("master") == 0) return absl::OkStatus();
    if (cluster.NumTasks("chief") > 0) {
      return Error(
          "cluster has both chief and master; remove master, its old "
          "name");
    }
    // A cluster with "master" is of the time when the master itself evaluated;
    // TensorFlow refuses both together too.
    if (cluster.NumTasks("evaluator") > 0 ||
        self_.type == TaskType::kEvaluator) {
      return Error(
          "cluster has master, which excludes an evaluator; call it "
          "chief");
    }
    return absl::OkStatus();
  }

  void AddJob(const std::string& job, const ClusterSpec::Tasks& tasks) {
    const absl::StatusOr<TaskType> type = ParseTaskType(job);
    // Not a mistake: platforms list jobs of their own.
    if (!type.ok()) {
      Warn(absl::StrCat("cluster has the job ", Excerpt(job),
                        ", which is none of chief, worker, ps, evaluator; "
                        "ignored",
                        TaskTypeHint(job)));
      return;
    }
    if (job != TaskTypeName(*type) && !tasks.empty()) {
      Warn(absl::StrCat("cluster.", job, " is taken for cluster.",
                        TaskTypeName(*type)));
    }
    ClusterSpec::Tasks& known = jobs_[std::string(TaskTypeName(*type))];
    for (const auto& [index, address] : tasks) {
      const std::string path = absl::StrCat("cluster.", job, "[", index, "]");
      absl::StatusOr<std::string> checked = CheckAddress(path, address);
      // The task stays in the list with an empty address, so that later checks
      // do not report it as missing.
      mistakes_.Add(checked.status());
      known[index] = std::move(checked).value_or("");
    }
  }

  absl::StatusOr<std::string> CheckAddress(const std::string& path,
                                           const std::string& address) {
    const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
    if (!parsed.ok()) {
      return Error(absl::StrCat(path, " is ", Excerpt(address), ": ",
                                parsed.status().message()));
    }
    if (absl::StrContains(address, "://")) {
      Warn(absl::StrCat(path, " is ", Excerpt(address),
                        "; the scheme is ignored"));
    }
    // Port 0 makes the kernel choose a port, so several tasks may share the
    // address.
    if (parsed->port == 0) {
      if (allow_port_zero_) return parsed->ToString();
      return Error(absl::StrCat(path, " is ", Excerpt(address),
                                ": port 0 is for `lockstep run`, which chooses "
                                "ports; write 1 to 65535"));
    }
    LOCKSTEP_RETURN_IF_ERROR(CheckUnique(path, *parsed));
    return parsed->ToString();
  }

  absl::Status CheckUnique(const std::string& path, const HostPort& address) {
    // Canonical: "localhost" and "127.0.0.1" are the same listener.
    const auto [first, inserted] = paths_.emplace(address.Canonical(), path);
    if (inserted) return absl::OkStatus();
    return Error(absl::StrCat(first->second, " and ", path, " are both ",
                              Excerpt(first->first),
                              "; give each task a port of its own"));
  }

  absl::Status CheckAtMostOne(TaskType type) {
    const std::string job(TaskTypeName(type));
    const auto found = jobs_.find(job);
    if (found == jobs_.end() || found->second.size() <= 1) {
      return absl::OkStatus();
    }
    return Error(absl::StrCat("cluster.", job, " has ", found->second.size(),
                              " tasks, but may have one; remove the others"));
  }

  // An operator with dynamic workers gives a parameter server a list with its
  // own address only, at place 0, for any index.
  void MoveLonePsToItsIndex() {
    if (self_.type != TaskType::kPs || self_.index == 0) return;
    ClusterSpec::Tasks& ps = jobs_["ps"];
    if (ps.size() != 1 || !ps.contains(0) || SeesOthers()) return;
    Warn(absl::StrCat("cluster.ps holds one address; taken for that of ",
                      self_.ToString()));
    ClusterSpec::Tasks own;
    own.emplace(self_.index, std::move(ps.begin()->second));
    ps = std::move(own);
  }

  bool SeesOthers() const {
    return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
      return job.first != "ps" && !job.second.empty();
    });
  }

  absl::Status Error(absl::string_view text) const {
    return absl::InvalidArgumentError(absl::StrCat(config_.source, ": ", text));
  }

  void Warn(absl::string_view text) {
    result_.warnings.push_back(absl::StrCat(config_.source, ": ", text));
  }

  const TfConfig& config_;
  const TaskId self_;
  const bool allow_port_zero_;

  Mistakes mistakes_;
  NormalizedCluster result_;
  ClusterSpec::Jobs jobs_;
  absl::flat_hash_map<std::string, std::string> paths_;  // by address
};

}  // namespace

absl::StatusOr<NormalizedCluster> NormalizeCluster(const TfConfig& config,
                                                   TaskId self,
                                                   bool allow_port_zero) {
  return Normalizer(config, self, allow_port_zero).Run();
}

}  // namespace lockstep
