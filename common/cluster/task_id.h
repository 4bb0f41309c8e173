#ifndef LOCKSTEP_COMMON_CLUSTER_TASK_ID_H_
#define LOCKSTEP_COMMON_CLUSTER_TASK_ID_H_

#include <compare>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The role of a task in the job.
enum class TaskType : int {
  kChief = 0,      // drives the steps, writes the checkpoints
  kWorker = 1,     // computes gradients
  kPs = 2,         // holds variables
  kEvaluator = 3,  // scores checkpoints, never trains
};

// TensorFlow's name: "chief", "worker", "ps", "evaluator".
absl::string_view TaskTypeName(TaskType type);

// Parses TaskTypeName(), and the old name "master" for the chief.
//
//   kInvalidArgument  any other text; case matters
absl::StatusOr<TaskType> ParseTaskType(absl::string_view name);

// Returns "; did you mean worker?" for a name near one of them, such as
// "Worker" or "workers"; else empty. To be appended to a message.
std::string TaskTypeHint(absl::string_view name);

// TaskId names one process of the cluster, as `task` in TF_CONFIG does.
struct TaskId {
  TaskType type = TaskType::kWorker;
  int index = 0;  // >= 0

  std::string ToString() const;  // "worker 1", for people
  std::string ToKey() const;     // "worker:1", for labels and file names

  // Parses ToString(); nullopt for any other text.
  static std::optional<TaskId> FromString(absl::string_view text);

  // Orders by type, in the order of the enumeration, then by index.
  friend auto operator<=>(const TaskId&, const TaskId&) = default;

  template <typename H>
  friend H AbslHashValue(H state, const TaskId& id) {
    return H::combine(std::move(state), static_cast<int>(id.type), id.index);
  }
};

std::ostream& operator<<(std::ostream& out, const TaskId& id);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_TASK_ID_H_
