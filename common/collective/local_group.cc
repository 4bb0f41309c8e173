#include "common/collective/local_group.h"

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"
#include "common/base/steady_deadline.h"

namespace lockstep {
namespace {

struct Shared {
  explicit Shared(int members) : table(members) {}
  Mutex mutex;
  CondVar changed;
  ExchangeTable table ABSL_GUARDED_BY(mutex);
  // The error of the exchange that has timed out at a member. Another one may
  // have completed it, so the group cannot go on.
  absl::Status ended ABSL_GUARDED_BY(mutex);
};

class LocalMember final : public Collective {
 public:
  LocalMember(int rank, int members, absl::Duration timeout,
              std::shared_ptr<Shared> shared)
      : rank_(rank),
        members_(members),
        timeout_(timeout),
        shared_(std::move(shared)) {}

  int rank() const override { return rank_; }
  int members() const override { return members_; }

  absl::StatusOr<std::vector<Parcel>> Exchange(
      const std::string& description, std::vector<Leaf> mine) override {
    // Members must make the same calls in the same order, so equal numbers
    // belong together.
    const uint64_t sequence = next_++;
    const absl::Duration timeout = TimeoutOr(timeout_);
    const auto deadline = SteadyDeadline(timeout);
    MutexLock lock(shared_->mutex);
    LOCKSTEP_RETURN_IF_ERROR(shared_->ended);
    LOCKSTEP_RETURN_IF_ERROR(shared_->table.Add(
        rank_, sequence, description,
        std::make_shared<const std::vector<Leaf>>(std::move(mine))));
    // The last member to come wakes all others.
    shared_->changed.SignalAll();
    while (true) {
      // Before the deadline is checked: a result that is there is taken even if
      // it is late.
      auto answer = shared_->table.Take(sequence);
      if (answer.has_value()) return *std::move(answer);
      LOCKSTEP_RETURN_IF_ERROR(shared_->ended);
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= left.zero()) break;
      shared_->changed.WaitFor(shared_->mutex, left);
    }
    absl::Status late = absl::DeadlineExceededError(
        absl::StrCat(description, ": rank ",
                     absl::StrJoin(shared_->table.Missing(sequence), ", "),
                     " did not come within ", absl::FormatDuration(timeout)));
    shared_->ended = late;
    // Others that wait for the missing members.
    shared_->changed.SignalAll();
    return late;
  }

  absl::Status Ended() const override {
    MutexLock lock(shared_->mutex);
    return shared_->ended;
  }

 private:
  const int rank_;
  const int members_;
  const absl::Duration timeout_;
  const std::shared_ptr<Shared> shared_;
  uint64_t next_ = 0;
};

}  // namespace

std::vector<std::unique_ptr<Collective>> MakeLocalGroup(
    int members, absl::Duration timeout) {
  const auto shared = std::make_shared<Shared>(members);
  std::vector<std::unique_ptr<Collective>> made;
  for (int r = 0; r < members; ++r) {
    made.push_back(std::make_unique<LocalMember>(r, members, timeout, shared));
  }
  return made;
}

}  // namespace lockstep
