#include "common/cluster/cluster_spec.h"

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

bool IsDenseTasks(const ClusterSpec::Tasks& tasks) {
  // Keys of a map are unique, so first 0 and last size - 1 leave no gap.
  return !tasks.empty() && tasks.begin()->first == 0 &&
         static_cast<size_t>(tasks.rbegin()->first) + 1 == tasks.size();
}

absl::Status NoSuchJob(absl::string_view job) {
  return absl::InvalidArgumentError(
      absl::StrCat("the cluster has no job ", Excerpt(job)));
}

}  // namespace

absl::StatusOr<ClusterSpec> ClusterSpec::FromJobs(Jobs jobs) {
  for (const auto& [job, tasks] : jobs) {
    if (tasks.empty()) continue;
    // The map is sorted by index: the ends bound all others.
    for (int index : {tasks.begin()->first, tasks.rbegin()->first}) {
      if (index >= 0 && index <= kMaxTaskIndex) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("task index ", index, " of job ", Excerpt(job),
                       " is outside 0 to ", kMaxTaskIndex));
    }
  }
  return ClusterSpec(std::move(jobs));
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

}  // namespace lockstep
