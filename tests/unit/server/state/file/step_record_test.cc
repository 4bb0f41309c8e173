#include "server/state/file/step_record.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AnyOf;

constexpr size_t kSlotSize = StepRecordSlots::kSize / 2;

StepRecord RecordAt(int64_t step) {
  StepRecord record;
  record.epoch = 3;
  record.incarnation = 0x1234567890abcdef;
  record.committed_step = step;
  record.prepared_step = step + 1;
  record.attempt = 2;
  record.replicas_to_aggregate = 5;
  record.learning_rate_scale = 0.5;
  record.powers[0][0] = {0.9f, 0.999f};
  record.powers[1][7] = {0.81f, 0.998f};
  record.current_buffer = step % 2;
  return record;
}

class StepRecordTest : public ::testing::Test {
 protected:
  alignas(8) std::array<std::byte, StepRecordSlots::kSize> memory_ = {};
  StepRecordSlots slots_{memory_.data()};
};

TEST_F(StepRecordTest, ZerosHoldNoRecord) {
  EXPECT_THAT(slots_.Read(), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(StepRecordTest, LastWriteIsRead) {
  for (int64_t step = 0; step < 5; ++step) {
    slots_.Write(RecordAt(step));
    EXPECT_THAT(slots_.Read(), IsOkAndHolds(RecordAt(step)));
  }
}

TEST_F(StepRecordTest, WritesTakeTurns) {
  slots_.Write(RecordAt(0));
  const auto after_one = memory_;
  slots_.Write(RecordAt(1));

  EXPECT_EQ(std::memcmp(memory_.data(), after_one.data(), kSlotSize), 0);
  EXPECT_NE(memory_, after_one);
}

TEST_F(StepRecordTest, AnotherProcessGoesOnWhereTheFirstEnded) {
  slots_.Write(RecordAt(0));
  slots_.Write(RecordAt(1));
  StepRecordSlots reopened(memory_.data());

  reopened.Write(RecordAt(2));

  EXPECT_THAT(reopened.Read(), IsOkAndHolds(RecordAt(2)));
}

TEST_F(StepRecordTest, DamagedNewestFallsBackToTheOneBefore) {
  // The sequence number, the record and the checksum.
  constexpr size_t kUsed =
      sizeof(uint64_t) + sizeof(StepRecord) + sizeof(uint32_t);
  for (const int newest : {0, 1}) {
    for (size_t byte = 0; byte < kUsed; ++byte) {
      memory_ = {};
      for (int64_t step = 0; step < 3 + newest; ++step) {
        slots_.Write(RecordAt(step));
      }
      memory_[newest * kSlotSize + byte] ^= std::byte{0x10};

      EXPECT_THAT(slots_.Read(), IsOkAndHolds(RecordAt(1 + newest))) << byte;
    }
  }
}

TEST_F(StepRecordTest, DamagedOlderOneIsNotMissed) {
  slots_.Write(RecordAt(0));
  slots_.Write(RecordAt(1));
  memory_[40] ^= std::byte{1};

  EXPECT_THAT(slots_.Read(), IsOkAndHolds(RecordAt(1)));
}

TEST_F(StepRecordTest, DamagedBothIsDataLoss) {
  slots_.Write(RecordAt(0));
  slots_.Write(RecordAt(1));
  memory_[40] ^= std::byte{1};
  memory_[kSlotSize + 40] ^= std::byte{1};

  EXPECT_THAT(slots_.Read(), StatusIs(absl::StatusCode::kDataLoss));
}

// With any bytes of a write in the file when the process is killed, written in
// any order, a whole record is read.
TEST_F(StepRecordTest, TornWriteLeavesTheRecordBeforeOrAfter) {
  for (int64_t step = 1; step < 4; ++step) {
    memory_ = {};
    for (int64_t i = 0; i < step; ++i) slots_.Write(RecordAt(i));
    const auto before = memory_;
    slots_.Write(RecordAt(step));
    const auto after = memory_;
    for (size_t cut = 0; cut <= memory_.size(); ++cut) {
      for (const bool from_the_end : {false, true}) {
        memory_ = from_the_end ? after : before;
        const auto& head = from_the_end ? before : after;
        std::memcpy(memory_.data(), head.data(), cut);

        EXPECT_THAT(slots_.Read(),
                    IsOkAndHolds(AnyOf(RecordAt(step - 1), RecordAt(step))))
            << "step " << step << ", cut " << cut;
      }
    }
  }
}

TEST_F(StepRecordTest, WriteAfterATornOneIsRead) {
  slots_.Write(RecordAt(0));
  slots_.Write(RecordAt(1));
  memory_[kSlotSize + 20] ^= std::byte{1};

  slots_.Write(RecordAt(7));

  EXPECT_THAT(slots_.Read(), IsOkAndHolds(RecordAt(7)));
}

TEST_F(StepRecordTest, RecordThatCannotBeIsNotBelieved) {
  const auto expect_refused = [this](auto change) {
    memory_ = {};
    StepRecord record = RecordAt(4);
    change(record);
    slots_.Write(record);
    EXPECT_THAT(slots_.Read(), StatusIs(absl::StatusCode::kDataLoss));
  };
  expect_refused([](StepRecord& r) { r.current_buffer = 2; });
  expect_refused([](StepRecord& r) { r.committed_step = -2; });
  expect_refused([](StepRecord& r) { r.prepared_step = 6; });
  expect_refused([](StepRecord& r) { r.prepared_step = 4; });
  expect_refused([](StepRecord& r) {
    r.committed_step = -1;
    r.prepared_step = 0;
  });
  expect_refused([](StepRecord& r) {
    r.prepared_step = std::numeric_limits<int64_t>::min();
  });
  expect_refused([](StepRecord& r) { r.attempt = -1; });
  expect_refused([](StepRecord& r) { r.opened_step = 5; });
  expect_refused([](StepRecord& r) { r.paused = 2; });
  expect_refused([](StepRecord& r) { r.settings_revision = -1; });
  expect_refused([](StepRecord& r) { r.replicas_to_aggregate = -1; });
  expect_refused([](StepRecord& r) {
    r.learning_rate_scale = std::numeric_limits<double>::quiet_NaN();
  });
}

}  // namespace
}  // namespace lockstep::server
