#include "strategy/meeting.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace lockstep::strategy {
namespace {

// Marks errors that are only the consequence of another member's, so that
// Outcome() can return the cause.
constexpr char kToldByMeeting[] = "lockstep.strategy.Meeting";

absl::Status Told(absl::Status status) {
  status.SetPayload(kToldByMeeting, absl::Cord("1"));
  return status;
}

bool IsTold(const absl::Status& status) {
  return status.GetPayload(kToldByMeeting).has_value();
}

}  // namespace

Meeting::Meeting(size_t members) : seats_(members) {}

absl::Status Meeting::Hopeless() const {
  for (size_t m = 0; m < seats_.size(); ++m) {
    const auto& end = seats_[m].end;
    if (!end.has_value()) continue;
    if (!end->ok()) {
      return Told(absl::AbortedError(absl::StrCat(
          "local replica ", m,
          " has failed and will not come: ", std::string(end->message()))));
    }
    // Not marked with Told(): a replica that has returned has no error of its
    // own, so this one is the cause.
    return absl::FailedPreconditionError(
        absl::StrCat("local replica ", m,
                     " has returned without coming to this call; all replicas "
                     "must make the same calls"));
  }
  return absl::OkStatus();
}

absl::Status Meeting::CheckPurposes() const {
  for (size_t m = 1; m < seats_.size(); ++m) {
    // The type of the values to which `brought` points: Merge() casts the
    // pointers of all members to its own type.
    if (*seats_[m].purpose == *seats_[0].purpose) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("local replicas 0 and ", m,
                     " wait in different calls; all replicas must make the "
                     "same calls in the same order"));
  }
  return absl::OkStatus();
}

void Meeting::Release(const absl::Status& answer) {
  for (Seat& seat : seats_) {
    if (std::exchange(seat.come, false)) seat.answer = answer;
  }
  come_ = 0;
  ++round_;
  changed_.SignalAll();
}

absl::Status Meeting::Come(size_t member, const std::type_info& purpose,
                           void* brought, Act act) {
  MutexLock lock(mutex_);
  if (absl::Status hopeless = Hopeless(); !hopeless.ok()) return hopeless;
  Seat& seat = seats_[member];
  seat.come = true;
  seat.purpose = &purpose;
  seat.brought = brought;
  seat.act = &act;
  const size_t round = round_;
  if (++come_ < seats_.size()) {
    // Not come_: a fast member may come to the next round before this thread
    // wakes.
    while (round_ == round) changed_.Wait(mutex_);
    return seat.answer;
  }
  absl::Status answer = CheckPurposes();
  if (answer.ok()) {
    std::vector<void*> all;
    for (const Seat& each : seats_) all.push_back(each.brought);
    // That of member 0, and not of the last to come: which function runs must
    // not depend on a race.
    const Act first = *seats_[0].act;
    // Without the lock: `first` runs code of the program. The seats do not
    // change meanwhile, since all other members wait for this round.
    mutex_.Unlock();
    first(all);
    mutex_.Lock();
  }
  Release(answer);
  return answer;
}

void Meeting::End(size_t member, const absl::Status& end) {
  MutexLock lock(mutex_);
  seats_[member].end = end;
  // Members that wait in this round would wait for this one for ever.
  if (come_ > 0) Release(Hopeless());
}

absl::Status Meeting::Outcome() const {
  MutexLock lock(mutex_);
  absl::Status told;
  for (const Seat& seat : seats_) {
    if (!seat.end.has_value() || seat.end->ok()) continue;
    if (!IsTold(*seat.end)) return *seat.end;
    told.Update(*seat.end);
  }
  return told;
}

}  // namespace lockstep::strategy
