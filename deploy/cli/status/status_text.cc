#include "deploy/cli/status/status_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "deploy/cli/text/text_format.h"

namespace lockstep::cli {

void AppendSpeed(const JobStatus& status, std::string& line) {
  // A program without a batch size need not say how many examples it has.
  if (status.examples_per_second <= 0) return;
  absl::StrAppend(&line, ", ", FormatFigure(status.examples_per_second, 0), " ",
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
