#include "server/step/strict/pending_pushes.h"

#include <algorithm>

namespace lockstep::server {
namespace {

// Pushes that may wait for one worker's gradient of a part: the first one, and
// one that repeats it because its answer was lost.
constexpr size_t kWaiters = 2;

bool Counted(PushOutcome outcome) {
  return outcome == PushOutcome::kAccepted ||
         outcome == PushOutcome::kDuplicate;
}

}  // namespace

std::shared_ptr<PendingPush> MakePending(uint64_t ticket, const Push& push,
                                         bool may_return) {
  auto pending = std::make_shared<PendingPush>();
  pending->ticket = ticket;
  pending->first_part = push.first_part;
  // Workers read single rows of tables and never need the whole value.
  pending->return_values =
      push.return_values && may_return &&
      std::none_of(push.gradients.begin(), push.gradients.end(),
                   [](const PartGradient& g) { return g.rows.has_value(); });
  // The engine overwrites this for every part that has not counted before.
  pending->outcomes.resize(push.gradients.size(), PushOutcome::kDuplicate);
  return pending;
}

void CountWorkers(const std::map<Contributor, Contribution>& collected,
                  std::map<int, int>& counts) {
  int last = -1;
  for (const auto& [who, contribution] : collected) {
    // The map is ordered by worker, so the shares of one worker are neighbours.
    if (who.first != last) ++counts[who.first];
    last = who.first;
  }
}

void PendingPushes::Await(Contribution& contribution,
                          const std::shared_ptr<PendingPush>& pending, int i,
                          int64_t step, ShardAnswers& answers) const {
  auto& waiters = contribution.waiters;
  // The worker has given up the call before the one that it repeated last.
  if (waiters.size() >= kWaiters) {
    const std::shared_ptr<PendingPush> oldest =
        std::move(waiters.front().first);
    waiters.erase(waiters.begin());
    oldest->status.Update(
        absl::AbortedError("the same gradients have been pushed again"));
    if (--oldest->undecided == 0) Answer(*oldest, step, answers);
  }
  waiters.emplace_back(pending, i);
  ++pending->undecided;
}

void PendingPushes::Decide(Contribution& contribution, PushOutcome outcome,
                           const absl::Status& status, int64_t step,
                           ShardAnswers& answers) const {
  bool first = true;
  for (auto& [pending, index] : contribution.waiters) {
    // Only one of the calls for a gradient is answered that it was added.
    const bool repeated = outcome == PushOutcome::kAccepted && !first;
    pending->outcomes[index] = repeated ? PushOutcome::kDuplicate : outcome;
    first = false;
    pending->status.Update(status);
    if (--pending->undecided == 0) Answer(*pending, step, answers);
  }
  contribution.waiters.clear();
}

void PendingPushes::Answer(PendingPush& pending, int64_t step,
                           ShardAnswers& answers) const {
  PushAnswer answer{pending.ticket, pending.outcomes, step, pending.status, {}};
  const bool counted =
      std::all_of(pending.outcomes.begin(), pending.outcomes.end(), Counted);
  // A push of which only some parts counted gets no values: a newer attempt may
  // change those of the other parts.
  if (pending.return_values && counted && pending.status.ok()) {
    for (size_t i = 0; i < pending.outcomes.size(); ++i) {
      answer.values.push_back(
          updater_.LendNext(pending.first_part + static_cast<int>(i)));
    }
  }
  answers.pushes.push_back(std::move(answer));
}

void PendingPushes::DecideAll(std::map<Contributor, Contribution>& collected,
                              PushOutcome outcome, const absl::Status& status,
                              int64_t step, ShardAnswers& answers) const {
  for (auto& [who, contribution] : collected) {
    Decide(contribution, outcome, status, step, answers);
  }
  collected.clear();
}

void PendingPushes::Refuse(std::map<Contributor, Contribution>& collected,
                           const std::map<Contributor, absl::Status>& refused,
                           int64_t step, ShardAnswers& answers) const {
  for (const auto& [who, why] : refused) {
    auto contribution = collected.extract(who);
    if (contribution.empty()) continue;
    Decide(contribution.mapped(), PushOutcome::kSuperseded, why, step, answers);
  }
}

}  // namespace lockstep::server
