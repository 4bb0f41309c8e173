#ifndef LOCKSTEP_COMMON_CLUSTER_CLUSTER_SPEC_H_
#define LOCKSTEP_COMMON_CLUSTER_CLUSTER_SPEC_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// ClusterSpec is TensorFlow's map from job name and task index to address. A
// job is dense if its indices are 0 to n-1, and sparse otherwise: a sparse job
// leaves out tasks that its reader need not know.
//
// It does not check job names or addresses: Cluster checks both. Two specs are
// equal if their contents are, however they were made.
//
// Threads: immutable.
class ClusterSpec {
 public:
  using Tasks = std::map<int, std::string>;  // index -> "host:port"
  using Jobs = std::map<std::string, Tasks, std::less<>>;

  // No job has a task above it.
  static constexpr int kMaxTaskIndex = 999'999;

  ClusterSpec() = default;

  //   kInvalidArgument  an index outside [0, kMaxTaskIndex]
  static absl::StatusOr<ClusterSpec> FromJobs(Jobs jobs);

  // True without any job; a job without tasks counts as one.
  bool empty() const { return jobs_.empty(); }

  // Sorted by name, tasks by index.
  const Jobs& jobs() const { return jobs_; }

  // False for a job that has no task.
  bool IsDense(absl::string_view job) const;

  // 0 for an unknown job.
  int NumTasks(absl::string_view job) const;

  // Returns the indices, ascending; none for an unknown job.
  std::vector<int> TaskIndices(absl::string_view job) const;

  //   kInvalidArgument  no such job, or no such index in it
  absl::StatusOr<std::string> TaskAddress(absl::string_view job,
                                          int index) const;

  bool operator==(const ClusterSpec&) const = default;

 private:
  explicit ClusterSpec(Jobs jobs) : jobs_(std::move(jobs)) {}

  Jobs jobs_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_CLUSTER_SPEC_H_
