#include "chief/page/story.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/text/count_text.h"
#include "common/text/figure_text.h"
#include "common/text/plain_text.h"

namespace lockstep::chief {
namespace {

using Kind = StoryEvent::Kind;

constexpr std::array<std::pair<Kind, const char*>, 6> kKinds = {
    {{Kind::kState, "state"},
     {Kind::kDeath, "death"},
     {Kind::kReturn, "return"},
     {Kind::kNotice, "notice"},
     {Kind::kCheckpoint, "checkpoint"},
     {Kind::kSettings, "settings"}}};

// Deaths of an earlier chief come back with their ages, which were measured by
// another clock: deaths of one task this close together are the same one.
constexpr double kSameDeath = 3;  // seconds

double ToUnix(absl::Time time) {
  return absl::ToDoubleSeconds(time - absl::UnixEpoch());
}

std::string StateText(const StatusTable::View& job, bool again) {
  const std::string step = absl::StrCat(" at step ", job.global_step);
  switch (job.state) {
    case JobState::kStarting:
      return "the chief starts: it gathers servers and workers";
    case JobState::kTraining:
      return absl::StrCat("training ", again ? "goes on" : "begins", step);
    case JobState::kFinishing:
      return absl::StrCat("training has ended", step,
                          "; the last checkpoint is written");
    case JobState::kDone:
      return absl::StrCat("the job is done", step);
    case JobState::kFailed:
      return absl::StrCat("the job has failed", step, ": ", job.reason);
    case JobState::kStopped:
      return absl::StrCat("the job is stopped", step, ": ", job.reason);
    case JobState::kUnknown:
      break;  // only of another chief's job
  }
  return "";
}

std::string DeathText(const StatusTable::Death& death) {
  return absl::StrCat(
      death.task, " died (", death.reason, "); it held ", death.held,
      death.redone.empty() ? "" : absl::StrCat("; redone: ", death.redone));
}

}  // namespace

std::string StoryKindName(Kind kind) {
  for (const auto& [known, name] : kKinds) {
    if (known == kind) return name;
  }
  return "";
}

std::optional<Kind> ParseStoryKind(const std::string& name) {
  for (const auto& [kind, known] : kKinds) {
    if (known == name) return kind;
  }
  return std::nullopt;
}

Story::Story(std::vector<StoryEvent> events)
    : events_(std::make_move_iterator(events.begin()),
              std::make_move_iterator(events.end())) {
  for (const StoryEvent& event : events_) {
    earlier_until_ = std::max(earlier_until_, event.unix_seconds);
  }
  while (events_.size() > kMostEvents) events_.pop_front();
}

void Story::Tell(absl::Time at, Kind kind, const std::string& text) {
  // A checkpoint replaces the one before: otherwise checkpoints would push all
  // other events out.
  if (kind == Kind::kCheckpoint && !events_.empty() &&
      events_.back().kind == kind) {
    events_.pop_back();
  }
  events_.push_back({ToUnix(at), kind, OneLine(text, kMaxPeerText)});
  while (events_.size() > kMostEvents) events_.pop_front();
}

void Story::Add(const SummarySample& sample) {
  // In this order: the causes of a change of state come before it.
  TellNotices(sample);
  TellDeaths(sample);
  TellReturns(sample);
  TellState(sample);
  TellSettings(sample);
  TellCheckpoint(sample);
}

void Story::TellState(const SummarySample& sample) {
  const StatusTable::View& job = sample.job;
  if (state_ != job.state) {
    const bool again = state_ == JobState::kFinishing;
    state_ = job.state;
    Tell(sample.now, Kind::kState, StateText(job, again));
  }
}

void Story::TellSettings(const SummarySample& sample) {
  // A chief that starts does not know yet the settings of servers or of a
  // checkpoint.
  if (sample.job.state == JobState::kStarting) return;
  const RunSettings& now = sample.job.settings;
  const std::optional<RunSettings> before = std::exchange(settings_, now);
  // The settings that a chief finds are of an earlier one.
  if (!before.has_value()) return;
  const std::string step = absl::StrCat(" at step ", sample.job.global_step);
  if (before->paused != now.paused) {
    Tell(sample.now, Kind::kSettings,
         absl::StrCat(now.paused ? "an operator pauses training"
                                 : "training goes on after a pause",
                      step));
  }
  std::vector<std::string> changes;
  // With AUTO the notices already report each change.
  std::string replicas;
  if (!sample.tunes_backups &&
      before->replicas_to_aggregate != now.replicas_to_aggregate) {
    replicas =
        absl::StrCat("replicas_to_aggregate ", before->replicas_to_aggregate,
                     " to ", now.replicas_to_aggregate);
  }
  // Workers join and leave by themselves, and the number of gradients follows.
  if (before->workers != now.workers) {
    Tell(sample.now, Kind::kSettings,
         absl::StrCat(
             "the workers of the job change: ",
             CountText(static_cast<int64_t>(before->workers.size()), "worker"),
             " to ", now.workers.size(), replicas.empty() ? "" : ", ", replicas,
             step));
  } else if (!replicas.empty()) {
    changes.push_back(replicas);
  }
  if (before->learning_rate_scale != now.learning_rate_scale) {
    changes.push_back(
        absl::StrCat("the learning rate times ",
                     now.learning_rate_scale / before->learning_rate_scale,
                     ", now ", sample.learning_rate));
  }
  if (changes.empty()) return;
  Tell(
      sample.now, Kind::kSettings,
      absl::StrCat("an operator changes ", absl::StrJoin(changes, ", "), step));
}

bool Story::HasToldBefore(const StatusTable::Death& death) const {
  return std::any_of(
      events_.begin(), events_.end(), [&](const StoryEvent& event) {
        // A task may die again soon under one chief.
        return event.kind == Kind::kDeath &&
               event.unix_seconds <= earlier_until_ &&
               std::abs(event.unix_seconds - ToUnix(death.at)) < kSameDeath &&
               event.text.rfind(death.task + " died", 0) == 0;
      });
}

bool Story::HasToldBefore(absl::Time saved_at, const std::string& text) const {
  if (ToUnix(saved_at) > earlier_until_) return false;
  return std::any_of(
      events_.begin(), events_.end(), [&](const StoryEvent& event) {
        return event.kind == Kind::kCheckpoint &&
               event.unix_seconds <= earlier_until_ && event.text == text;
      });
}

void Story::TellDeaths(const SummarySample& sample) {
  for (const StatusTable::Death& death : sample.job.deaths) {
    if (death.at < told_death_) continue;
    if (death.at > told_death_) told_tasks_.clear();
    told_death_ = death.at;
    // The chief may find several tasks dead at one moment.
    if (!told_tasks_.insert(death.task).second) continue;
    if (HasToldBefore(death)) continue;
    Tell(death.at, Kind::kDeath, DeathText(death));
    away_[death.task] = death.at;
  }
}

void Story::TellReturns(const SummarySample& sample) {
  if (away_.empty()) return;
  for (const MembershipTable::Member& member : sample.members) {
    const auto away = away_.find(member.task.ToString());
    if (away == away_.end() || member.since <= away->second ||
        member.state != MembershipTable::State::kAlive) {
      continue;
    }
    Tell(member.since, Kind::kReturn,
         absl::StrCat(away->first, " is back, ",
                      FormatSeconds(member.since - away->second),
                      " after its death was found"));
    away_.erase(away);
  }
}

void Story::TellNotices(const SummarySample& sample) {
  for (const StatusTable::Notice& notice : sample.job.notices) {
    if (notice.number <= notice_) continue;
    notice_ = notice.number;
    // The number of a notice is its time in microseconds.
    Tell(absl::FromUnixMicros(notice.number), Kind::kNotice, notice.text);
  }
}

void Story::TellCheckpoint(const SummarySample& sample) {
  const StatusTable::View& job = sample.job;
  if (job.last_checkpoint_step == checkpoint_) return;
  checkpoint_ = job.last_checkpoint_step;
  if (checkpoint_ < 0) return;
  const std::string text = absl::StrCat("checkpoint of step ", checkpoint_);
  if (HasToldBefore(job.last_checkpoint_at, text)) return;
  Tell(job.last_checkpoint_at, Kind::kCheckpoint, text);
}

}  // namespace lockstep::chief
