#include "chief/members/servers_in_use.h"

#include <algorithm>
#include <cstddef>

namespace lockstep::chief {

ServersInUse::ServersInUse(const JobConfig& job, const MembershipTable& members,
                           bool anew)
    : members_(members),
      lease_(job.lease),
      is_elastic_(job.has_elastic_mirrors()),
      is_mirrored_(job.strategy.kind == StrategyKind::kMultiWorkerMirrored),
      may_change_(is_elastic_),
      anew_(anew),
      has_found_(anew) {
  for (int i = 0; i < job.total_num_replicas; ++i) workers_.insert(i);
}

std::vector<int> ServersInUse::All() const {
  std::vector<int> servers;
  for (const MembershipTable::Member& member : members_.Members()) {
    if (member.task.type == TaskType::kPs) {
      servers.push_back(member.task.index);
    }
  }
  return servers;
}

bool ServersInUse::IsAlive(int server) const {
  return members_.Get({TaskType::kPs, server}).state ==
         MembershipTable::State::kAlive;
}

std::vector<int> ServersInUse::Alive() const {
  std::vector<int> servers = All();
  std::erase_if(servers, [this](int server) { return !IsAlive(server); });
  return servers;
}

bool ServersInUse::TakesPart(int server) const {
  if (!may_change_ || server == 0) return true;
  return workers_.count(server) > 0 && given_up_.count(server) == 0;
}

std::vector<int> ServersInUse::Needed() const {
  std::vector<int> servers = All();
  std::erase_if(servers, [this](int server) { return !TakesPart(server); });
  return servers;
}

std::vector<int> ServersInUse::ForRound() const {
  // A first round takes what is there: a mirror that the job does not need may
  // know more than the others.
  return may_change_ && !opened_ ? Alive() : Needed();
}

std::vector<TaskId> ServersInUse::Away() const {
  std::vector<TaskId> away = members_.NotAlive(TaskType::kPs);
  if (!may_change_) return away;
  // Until a round has found mirror 0's state, other mirrors that come may know
  // other workers. Or a round has opened the servers, and its end was not
  // heard.
  const bool looks_again = !opened_ && !anew_ && found_ != Found::kOfFirst &&
                           (!has_found_ || Alive() != found_with_);
  std::erase_if(away, [&](const TaskId& task) {
    return looks_again ? task.index != 0 : !TakesPart(task.index);
  });
  return away;
}

std::vector<TaskId> ServersInUse::AwayAtFirst(absl::Time began,
                                              absl::Time now) const {
  std::vector<TaskId> away = members_.NotAlive(TaskType::kPs);
  // A job that starts needs all.
  if (!may_change_ || has_found_ || !IsAlive(0)) return away;
  const absl::Time came = members_.Get({TaskType::kPs, 0}).since;
  if (now - std::max(came, began) >= lease_) away.clear();
  return away;
}

void ServersInUse::SetWorkers(const std::vector<int>& workers) {
  workers_ = {workers.begin(), workers.end()};
  std::erase_if(given_up_,
                [this](int server) { return workers_.count(server) == 0; });
}

bool ServersInUse::OnFound(absl::Span<const ServerReport> reports) {
  if (!may_change_) return false;
  has_found_ = true;
  found_ = Found::kNone;
  found_with_.clear();
  for (size_t i = 0; i < reports.size(); ++i) {
    if (!reports[i].takes_part) continue;
    found_with_.push_back(static_cast<int>(i));
    if (reports[i].committed_step < 0 || found_ != Found::kNone) continue;
    found_ = i == 0 ? Found::kOfFirst : Found::kOfOthers;
  }
  return found_ != Found::kNone;
}

bool ServersInUse::AwaitsAll() const {
  return may_change_ && !opened_ && has_found_ && found_ == Found::kNone &&
         !members_.NotAlive(TaskType::kPs).empty();
}

void ServersInUse::OnOpened() {
  opened_ = true;
  without_state_.reset();
}

void ServersInUse::EndSteps() {
  // Before, state may be elsewhere: see OnFound().
  may_change_ = is_elastic_ || (is_mirrored_ && opened_);
}

void ServersInUse::BeginStepsAgain() {
  may_change_ = is_elastic_;
  if (!is_elastic_) given_up_.clear();
}

bool ServersInUse::MayGiveUp() const {
  // Without mirror 0 there is no round, and it may come back without the state,
  // which the mirrors that are away have.
  const bool may =
      may_change_ && IsAlive(0) && (opened_ || found_ == Found::kOfFirst);
  if (!may || !without_state_.has_value()) return may;
  // The next round tells whether a mirror that has come since has it.
  const std::vector<int> alive = Alive();
  return !std::includes(without_state_->begin(), without_state_->end(),
                        alive.begin(), alive.end());
}

absl::Time ServersInUse::GivenUpAt(int server, absl::Time since) const {
  const MembershipTable::Member member = members_.Get({TaskType::kPs, server});
  const absl::Time away = std::max(member.since, since);
  const bool left = member.state == MembershipTable::State::kLeft;
  return left ? away : away + lease_;
}

std::vector<int> ServersInUse::GiveUp(absl::Time since, absl::Time now,
                                      bool at_once) {
  std::vector<int> gone;
  if (!MayGiveUp()) return gone;
  for (const int server : Needed()) {
    if (IsAlive(server)) continue;
    if (at_once || now >= GivenUpAt(server, since)) gone.push_back(server);
  }
  given_up_.insert(gone.begin(), gone.end());
  return gone;
}

absl::Time ServersInUse::AllGivenUpAt(absl::Time since) const {
  if (!MayGiveUp()) return absl::InfiniteFuture();
  absl::Time all = absl::InfinitePast();
  for (const int server : Needed()) {
    if (!IsAlive(server)) all = std::max(all, GivenUpAt(server, since));
  }
  return all;
}

bool ServersInUse::HasGivenUpOneOf(const std::vector<int>& servers) const {
  return std::any_of(servers.begin(), servers.end(), [this](int server) {
    return given_up_.count(server) > 0;
  });
}

bool ServersInUse::IsOneBack() const {
  return std::any_of(given_up_.begin(), given_up_.end(),
                     [this](int server) { return IsAlive(server); });
}

std::vector<int> ServersInUse::TakeBack() {
  std::vector<int> back(given_up_.begin(), given_up_.end());
  std::erase_if(back, [this](int server) { return !IsAlive(server); });
  for (const int server : back) given_up_.erase(server);
  return back;
}

void ServersInUse::OnStateElsewhere() {
  given_up_.clear();
  without_state_ = Alive();
}

}  // namespace lockstep::chief
