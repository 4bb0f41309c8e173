#include "common/memory/write_counters.h"

#include <limits>
#include <memory>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

class WriteCountersTest : public ::testing::Test {
 protected:
  WriteCountersTest() {
    auto counters = WriteCounters::Create(3);
    EXPECT_OK(counters);
    counters_ = *std::move(counters);
    auto seen =
        PeerMemory::Open(counters_->file(), PeerMemory::Require::kSealed);
    EXPECT_OK(seen);
    seen_ = *std::move(seen);
  }

  std::unique_ptr<WriteCounters> counters_;
  std::shared_ptr<const PeerMemory> seen_;
};

TEST_F(WriteCountersTest, CopyWithoutAWriteMeanwhileIsGood) {
  counters_->Begin(1);
  const uint64_t told = counters_->Count(1);

  EXPECT_FALSE(WrittenSince(*seen_, 1, told));
}

TEST_F(WriteCountersTest, CopyIsOfNoUseOnceWritingHasBegun) {
  const uint64_t told = counters_->Count(1);

  counters_->Begin(1);

  EXPECT_TRUE(WrittenSince(*seen_, 1, told));
}

TEST_F(WriteCountersTest, BuffersCountApart) {
  const uint64_t told = counters_->Count(1);

  counters_->Begin(0);
  counters_->Begin(2);

  EXPECT_FALSE(WrittenSince(*seen_, 1, told));
}

TEST_F(WriteCountersTest, CountersThatThereAreNotAreKnown) {
  EXPECT_TRUE(HasCounter(*seen_, 0));
  EXPECT_TRUE(HasCounter(*seen_, 2));
  EXPECT_FALSE(HasCounter(*seen_, 3));
  EXPECT_FALSE(HasCounter(*seen_, -1));
  EXPECT_FALSE(HasCounter(*seen_, std::numeric_limits<int>::max()));
}

}  // namespace
}  // namespace lockstep
