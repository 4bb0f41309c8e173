#include "deploy/cli/status/job_status.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {

absl::string_view JobStateName(JobState state) {
  switch (state) {
    case JobState::kStarting:
      return "starting";
    case JobState::kTraining:
      return "training";
    case JobState::kFinishing:
      return "finishing";
    case JobState::kDone:
      return "done";
    case JobState::kFailed:
      return "failed";
    case JobState::kStopped:
      return "stopped";
    case JobState::kUnknown:
      break;
  }
  return "unknown";
}

bool IsFinal(JobState state) {
  return state == JobState::kDone || state == JobState::kFailed ||
         state == JobState::kStopped;
}

absl::string_view ShownState(const JobStatus& status) {
  const bool paused =
      status.settings.paused && status.state == JobState::kTraining;
  return paused ? "paused" : JobStateName(status.state);
}

std::vector<MemberStatus> WorkersOf(const JobStatus& status) {
  std::vector<MemberStatus> workers;
  for (const MemberStatus& member : status.members) {
    if (absl::StartsWith(member.task, "worker")) workers.push_back(member);
  }
  return workers;
}

std::string SpeedText(const JobStatus& status) {
  return absl::StrCat(FormatFigure(status.examples_per_second, 0), " ",
                      Printable(status.example_unit), "/s");
}

std::string ScoreText(const Evaluation& evaluation) {
  if (!evaluation.figures.empty()) {
    std::string figures;
    for (const auto& [name, value] : evaluation.figures) {
      absl::StrAppend(&figures, figures.empty() ? "" : ", ", Printable(name),
                      " ", FormatFigure(value, 4));
    }
    return figures;
  }
  std::string text =
      absl::StrCat("test accuracy ", FormatFigure(evaluation.accuracy, 4));
  if (evaluation.auc.has_value()) {
    absl::StrAppend(&text, ", AUC ", FormatFigure(*evaluation.auc, 4));
  }
  return text;
}

std::optional<WaitStatus> LongestWait(const JobStatus& status) {
  const auto longest =
      std::max_element(status.waits.begin(), status.waits.end(),
                       [](const WaitStatus& a, const WaitStatus& b) {
                         return a.since < b.since;
                       });
  if (longest == status.waits.end()) return std::nullopt;
  return *longest;
}

std::string WaitText(const WaitStatus& wait) {
  return absl::StrCat(Printable(wait.owner), " waits for ",
                      Printable(wait.waits_for), " (", FormatAge(wait.since),
                      ")");
}

}  // namespace lockstep::cli
