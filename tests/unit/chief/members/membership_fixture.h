#ifndef LOCKSTEP_TESTS_UNIT_CHIEF_MEMBERS_MEMBERSHIP_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_CHIEF_MEMBERS_MEMBERSHIP_FIXTURE_H_

#include "chief/members/membership_table.h"
#include "gtest/gtest.h"

namespace lockstep::chief {

inline const TaskId kPs0{TaskType::kPs, 0};
inline const TaskId kWorker0{TaskType::kWorker, 0};
inline const TaskId kWorker1{TaskType::kWorker, 1};
inline constexpr absl::Duration kLease = absl::Seconds(10);
inline constexpr absl::Duration kSilence = absl::Seconds(2);

// A table of a ps and two workers, and the time of its calls.
class MembershipFixture : public ::testing::Test {
 protected:
  absl::Status Register(const TaskId& task, uint64_t incarnation) {
    return table_.Register(task, incarnation, now_);
  }
  absl::Status Heartbeat(const TaskId& task, uint64_t incarnation) {
    return table_.Heartbeat(task, incarnation, nullptr, now_);
  }
  absl::Status TakeOver(const TaskId& task, uint64_t incarnation) {
    return table_.TakeOver(task, incarnation, now_);
  }
  MembershipTable::State StateOf(const TaskId& task) const {
    return table_.Get(task).state;
  }
  // Takes the dead out and says that they are cleaned up.
  void BuryAll() {
    for (const MembershipTable::Dead& dead : table_.TakeDead(now_)) {
      table_.Buried(dead.task, dead.incarnation);
    }
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  MembershipTable table_{{kPs0, kWorker0, kWorker1}, kLease, kSilence};
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_TESTS_UNIT_CHIEF_MEMBERS_MEMBERSHIP_FIXTURE_H_
