#include "chief/backups/tuned_workers.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::chief {
namespace {

// A pass that has lasted this many times as long as its worker's passes do
// hangs.
constexpr double kManyTimes = 4;

std::string Milliseconds(double seconds) {
  return absl::StrFormat("%.3g ms", seconds * 1e3);
}

// The mean of the passes that were seen to their end.
double MeanSeconds(const PassDistribution& distribution) {
  double sum = 0;
  double mass = 0;
  for (const PassMass& one : distribution) {
    sum += one.mass * SecondsOf(one.bin);
    mass += one.mass;
  }
  return mass > 0 ? sum / mass : 0;
}

}  // namespace

bool TunedWorkers::Hear(const WorkerNews& news) {
  Known& known = workers_[news.worker];
  known.alive = news.alive;
  known.at_hand = news.at_hand;
  const bool replaced =
      known.incarnation != 0 && news.incarnation != known.incarnation;
  // The counts of a new incarnation begin at 0.
  if (news.incarnation != known.incarnation) {
    known.incarnation = news.incarnation;
    known.passes = 0;
  }
  // A report has only the newest passes; others since the last one are not
  // known.
  const int64_t unheard = std::clamp<int64_t>(
      news.passes - known.passes, 0, static_cast<int64_t>(news.newest.size()));
  known.passes = std::max(known.passes, news.passes);
  for (const PassTime& pass : news.newest.last(static_cast<size_t>(unheard))) {
    known.times.Add(pass);
  }
  CountLoss(known, news, replaced);
  return unheard > 0;
}

void TunedWorkers::CountLoss(Known& known, const WorkerNews& news,
                             bool replaced) {
  // A worker that never came was not lost.
  const bool was_there = known.times.count() > 0;
  const bool away = IsAway(news.worker);
  const bool gone = (replaced || away) && !news.sent_back;
  if (was_there && !known.lost && gone) ++losses_;
  known.lost = away;
}

void TunedWorkers::Keep(const std::vector<int>& workers) {
  std::erase_if(workers_, [&](const auto& entry) {
    return !std::binary_search(workers.begin(), workers.end(), entry.first);
  });
}

double TunedWorkers::MeanOf(const Known& known) const {
  return MeanSeconds(known.times.Distribution());
}

bool TunedWorkers::IsAway(int worker) const {
  const auto found = workers_.find(worker);
  if (found == workers_.end() || !found->second.alive) return true;
  const Known& known = found->second;
  return known.at_hand > patience_ &&
         absl::ToDoubleSeconds(known.at_hand) > kManyTimes * MeanOf(known);
}

std::vector<int> TunedWorkers::Present(const std::vector<int>& workers) const {
  std::vector<int> present;
  for (const int worker : workers) {
    if (!IsAway(worker)) present.push_back(worker);
  }
  return present;
}

bool TunedWorkers::AreKnown(const std::vector<int>& workers) const {
  return std::all_of(workers.begin(), workers.end(), [this](int worker) {
    return workers_.at(worker).times.count() >= kFewPasses;
  });
}

std::vector<PassDistribution> TunedWorkers::Distributions(
    const std::vector<int>& workers, PassTimes::Memory memory) const {
  std::vector<PassDistribution> distributions;
  for (const int worker : workers) {
    const Known& known = workers_.at(worker);
    std::optional<absl::Duration> at_hand;
    if (known.at_hand > absl::ZeroDuration()) at_hand = known.at_hand;
    distributions.push_back(known.times.Distribution(memory, at_hand));
  }
  return distributions;
}

std::string TunedWorkers::Describe(const std::vector<int>& workers) const {
  double sum = 0;
  double slowest = -1;
  int which = 0;
  for (const int worker : workers) {
    const double mean = MeanOf(workers_.at(worker));
    sum += mean;
    if (mean <= slowest) continue;
    slowest = mean;
    which = worker;
  }
  if (workers.empty()) return "no worker takes part";
  return absl::StrCat("a pass takes ",
                      Milliseconds(sum / static_cast<double>(workers.size())),
                      ", one of worker ", which, " ", Milliseconds(slowest));
}

}  // namespace lockstep::chief
