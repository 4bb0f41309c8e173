#include "common/cluster/cluster_spec.h"

#include <cstddef>
#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

bool IsDenseTasks(const ClusterSpec::Tasks& tasks) {
  return !tasks.empty() && tasks.begin()->first == 0 &&
         static_cast<size_t>(tasks.rbegin()->first) + 1 == tasks.size();
}

absl::Status NoSuchJob(absl::string_view job) {
  return absl::InvalidArgumentError(
      absl::StrCat("the cluster has no job ", Excerpt(job)));
}

std::set<std::string> JobsThatKeepIndices(absl::Span<const ClusterSpec> specs) {
  std::set<std::string> jobs;
  for (const ClusterSpec& spec : specs) {
    for (const auto& [job, tasks] : spec.jobs()) {
      if (!IsDenseTasks(tasks)) jobs.insert(job);
    }
  }
  return jobs;
}

void Append(const ClusterSpec::Tasks& from, ClusterSpec::Tasks& to) {
  for (const auto& [index, address] : from) {
    to.emplace(static_cast<int>(to.size()), address);
  }
}

absl::Status Merge(absl::string_view job, const ClusterSpec::Tasks& from,
                   ClusterSpec::Tasks& to) {
  for (const auto& [index, address] : from) {
    if (!to.emplace(index, address).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two of the clusters to join give task ", index,
                       " of job ", Excerpt(job), "; leave one out"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

ClusterSpec ClusterSpec::FromLists(const Lists& lists) {
  Jobs jobs;
  for (const auto& [job, addresses] : lists) {
    Tasks& tasks = jobs[job];
    for (const std::string& address : addresses) {
      tasks.emplace(static_cast<int>(tasks.size()), address);
    }
  }
  return ClusterSpec(std::move(jobs));
}

absl::StatusOr<ClusterSpec> ClusterSpec::FromJobs(Jobs jobs) {
  for (const auto& [job, tasks] : jobs) {
    if (tasks.empty()) continue;
    for (int index : {tasks.begin()->first, tasks.rbegin()->first}) {
      if (index >= 0 && index <= kMaxTaskIndex) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("task index ", index, " of job ", Excerpt(job),
                       " is outside 0 to ", kMaxTaskIndex));
    }
  }
  return ClusterSpec(std::move(jobs));
}

absl::StatusOr<ClusterSpec> ClusterSpec::Union(
    absl::Span<const ClusterSpec> specs) {
  const std::set<std::string> keep_indices = JobsThatKeepIndices(specs);
  Jobs joined;
  for (const ClusterSpec& spec : specs) {
    for (const auto& [job, tasks] : spec.jobs()) {
      if (!keep_indices.contains(job)) {
        Append(tasks, joined[job]);
        continue;
      }
      LOCKSTEP_RETURN_IF_ERROR(Merge(job, tasks, joined[job]));
    }
  }
  return FromJobs(std::move(joined));
}

bool ClusterSpec::IsDense(absl::string_view job) const {
  const auto found = jobs_.find(job);
  return found != jobs_.end() && IsDenseTasks(found->second);
}

int ClusterSpec::NumTasks(absl::string_view job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? 0 : static_cast<int>(found->second.size());
}

std::vector<int> ClusterSpec::TaskIndices(absl::string_view job) const {
  std::vector<int> indices;
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return indices;
  for (const auto& [index, address] : found->second) indices.push_back(index);
  return indices;
}

absl::StatusOr<std::string> ClusterSpec::TaskAddress(absl::string_view job,
                                                     int index) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return NoSuchJob(job);
  const auto task = found->second.find(index);
  if (task == found->second.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("job ", Excerpt(job), " has no task ", index));
  }
  return task->second;
}

absl::StatusOr<std::vector<std::string>> ClusterSpec::JobTasks(
    absl::string_view job) const {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return NoSuchJob(job);
  std::vector<std::string> addresses;
  for (const auto& [index, address] : found->second) {
    addresses.resize(static_cast<size_t>(index) + 1);
    addresses.back() = address;
  }
  return addresses;
}

}  // namespace lockstep
