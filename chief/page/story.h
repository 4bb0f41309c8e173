#ifndef LOCKSTEP_CHIEF_PAGE_STORY_H_
#define LOCKSTEP_CHIEF_PAGE_STORY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chief/members/membership_table.h"
#include "chief/operators/status_table.h"
#include "chief/summary/summary_curves.h"

namespace lockstep::chief {

// An event of a job's past for operators.
struct StoryEvent {
  enum class Kind { kState, kDeath, kReturn, kNotice, kCheckpoint, kSettings };

  double unix_seconds = 0;
  Kind kind = Kind::kState;
  std::string text;  // one line

  bool operator==(const StoryEvent&) const = default;
};

// The names of kinds in the page's file: "state", "death", and so on.
std::string StoryKindName(StoryEvent::Kind kind);
std::optional<StoryEvent::Kind> ParseStoryKind(const std::string& name);

// Story keeps the newest kMostEvents events of a job's past: changes of its
// state and its settings, deaths and their cost, processes that come back,
// notices, checkpoints. It finds them by comparing each sample with the
// previous one.
//
// Threads: not thread-safe.
class Story {
 public:
  static constexpr size_t kMostEvents = 200;  // of at most 1 KiB

  Story() = default;
  // Continues after the events of an earlier chief, the oldest first.
  explicit Story(std::vector<StoryEvent> events);

  // Samples must come in the order of time.
  void Add(const SummarySample& sample);

  // The oldest first.
  std::vector<StoryEvent> Events() const {
    return {events_.begin(), events_.end()};
  }

 private:
  void Tell(absl::Time at, StoryEvent::Kind kind, const std::string& text);
  void TellState(const SummarySample& sample);
  void TellSettings(const SummarySample& sample);
  void TellDeaths(const SummarySample& sample);
  // True if the events of an earlier chief contain this death, or that chief
  // has written this checkpoint.
  bool HasToldBefore(const StatusTable::Death& death) const;
  bool HasToldBefore(absl::Time saved_at, const std::string& text) const;
  void TellReturns(const SummarySample& sample);
  void TellNotices(const SummarySample& sample);
  void TellCheckpoint(const SummarySample& sample);

  std::deque<StoryEvent> events_;
  // The newest event of an earlier chief, unix seconds.
  double earlier_until_ = -std::numeric_limits<double>::infinity();
  std::optional<JobState> state_;
  std::optional<RunSettings> settings_;  // nullopt until training begins
  int64_t notice_ = 0;
  int64_t checkpoint_ = -1;
  // The newest death so far, and the tasks that were found dead at that time.
  absl::Time told_death_ = absl::InfinitePast();
  std::set<std::string> told_tasks_;
  std::map<std::string, absl::Time> away_;  // tasks that have died
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_PAGE_STORY_H_
