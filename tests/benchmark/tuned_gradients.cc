#include "tests/benchmark/tuned_gradients.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace lockstep::benchmark {

std::vector<TunedBackups> ChangesInLog(absl::string_view log) {
  std::vector<TunedBackups> changes;
  for (const absl::string_view line : absl::StrSplit(log, '\n')) {
    // "... AUTO: after step 21, 1 backup instead of 0: a pass takes ..."
    const std::vector<absl::string_view> halves =
        absl::StrSplit(line, "AUTO: after step ");
    if (halves.size() != 2) continue;
    const std::vector<absl::string_view> words =
        absl::StrSplit(halves[1], absl::ByAnyChar(", "), absl::SkipEmpty());
    TunedBackups change;
    if (words.size() > 2 && absl::SimpleAtoi(words[0], &change.after_step) &&
        absl::SimpleAtoi(words[1], &change.backups)) {
      changes.push_back(change);
    }
  }
  return changes;
}

double MeanGradients(const std::vector<TunedBackups>& changes, int workers,
                     int64_t from, int64_t to) {
  double sum = 0;
  int backups = 0;
  int64_t since = from;
  const auto count_until = [&](int64_t step) {
    step = std::clamp(step, since, to);
    sum += static_cast<double>(step - since) * (workers - backups);
    since = step;
  };
  for (const TunedBackups& change : changes) {
    count_until(change.after_step);
    backups = change.backups;
  }
  count_until(to);
  return sum / static_cast<double>(to - from);
}

}  // namespace lockstep::benchmark
