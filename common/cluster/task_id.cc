#include "common/cluster/task_id.h"

#include <cstddef>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/flags/nearest_match.h"
#include "common/text/excerpt.h"

namespace lockstep {

absl::string_view TaskTypeName(TaskType type) {
  switch (type) {
    case TaskType::kChief:
      return "chief";
    case TaskType::kWorker:
      return "worker";
    case TaskType::kPs:
      return "ps";
    case TaskType::kEvaluator:
      return "evaluator";
  }
  return "invalid";
}

absl::StatusOr<TaskType> ParseTaskType(absl::string_view name) {
  // The old name of the chief in TensorFlow.
  if (name == "master") return TaskType::kChief;
  for (TaskType type : {TaskType::kChief, TaskType::kWorker, TaskType::kPs,
                        TaskType::kEvaluator}) {
    if (name == TaskTypeName(type)) return type;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "task type ", Excerpt(name),
      " is not one of chief, worker, ps, evaluator", TaskTypeHint(name)));
}

std::string TaskTypeHint(absl::string_view name) {
  return DidYouMean(std::string(name), {"chief", "worker", "ps", "evaluator"});
}

std::string TaskId::ToString() const {
  return absl::StrCat(TaskTypeName(type), " ", index);
}

std::optional<TaskId> TaskId::FromString(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> words =
      absl::StrSplit(text, absl::MaxSplits(' ', 1));
  const absl::StatusOr<TaskType> type = ParseTaskType(words.first);
  int index = 0;
  if (!type.ok() || !absl::SimpleAtoi(words.second, &index) || index < 0) {
    return std::nullopt;
  }
  const TaskId task{*type, index};
  // Another spelling, as "master 0" or "worker 01", would be a second name.
  if (task.ToString() != text) return std::nullopt;
  return task;
}

std::string TaskId::ToKey() const {
  return absl::StrCat(TaskTypeName(type), ":", index);
}

std::ostream& operator<<(std::ostream& out, const TaskId& id) {
  return out << id.ToString();
}

}  // namespace lockstep
