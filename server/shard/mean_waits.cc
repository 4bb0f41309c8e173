#include "server/shard/mean_waits.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::server {
namespace {

// Nullopt: the call waits on.
using MaybeMeans = std::optional<absl::StatusOr<std::vector<PartGradient>>>;

// Takes the answers to the waits for which `answer` returns one.
template <typename AnswerTo>
std::vector<MeanWaits::Answer> TakeIf(std::list<MeanWaits::Wait>& waits,
                                      AnswerTo answer) {
  std::vector<MeanWaits::Answer> answers;
  for (auto wait = waits.begin(); wait != waits.end();) {
    MaybeMeans means = answer(*wait);
    if (!means.has_value()) {
      ++wait;
      continue;
    }
    answers.push_back({wait->ticket, *std::move(means), wait->first_part,
                       std::move(wait->shard)});
    wait = waits.erase(wait);
  }
  return answers;
}

}  // namespace

void MeanWaits::Add(Wait wait) { waits_.push_back(std::move(wait)); }

std::vector<MeanWaits::Answer> MeanWaits::TakeReady(const Shard* current) {
  return TakeIf(waits_, [current](const Wait& wait) -> MaybeMeans {
    // No gradient reaches that shard, and the call would keep its memory in
    // use.
    if (wait.shard.get() != current) {
      return absl::UnavailableError("the server opens its state again");
    }
    auto means = wait.shard->engine().Means(wait.of.step, wait.of.attempt,
                                            wait.first_part, wait.num_parts);
    if (!means.ok()) return means.status();
    if (!means->has_value()) return std::nullopt;
    return **std::move(means);
  });
}

std::vector<MeanWaits::Answer> MeanWaits::TakeOld(absl::Time now) {
  return TakeIf(waits_, [now](const Wait& wait) -> MaybeMeans {
    if (now - wait.since < kLongestWait) return std::nullopt;
    // Not kUnavailable, which the caller takes for a server that is gone.
    return absl::DeadlineExceededError(
        absl::StrCat("the means of step ", wait.of.step + 1,
                     " are not computed yet: this server waits for ",
                     wait.shard->engine().WaitsFor()));
  });
}

std::vector<MeanWaits::Answer> MeanWaits::TakeAll(const absl::Status& why) {
  return TakeIf(waits_, [&why](const Wait&) -> MaybeMeans { return why; });
}

}  // namespace lockstep::server
