#include "server/state/tables/row_log.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RowLogTest : public ::testing::Test {
 protected:
  RowLogTest() : memory_(RowLog::Size(4) / sizeof(int64_t)) {}
  RowLog Log() {
    return RowLog({reinterpret_cast<std::byte*>(memory_.data()),
                   memory_.size() * sizeof(int64_t)});
  }
  std::vector<int64_t> memory_;
};

TEST_F(RowLogTest, ANewFileHasNoLog) { EXPECT_EQ(Log().step(), RowLog::kNone); }

TEST_F(RowLogTest, AFinishedLogIsFoundAgain) {
  Log().Begin({1, 3});
  Log().Finish(7);

  EXPECT_EQ(Log().step(), 7);
  EXPECT_THAT(Log().rows(), ElementsAre(1, 3));
}

TEST_F(RowLogTest, ALogThatWasBegunLeadsToNoStep) {
  Log().Begin({0, 1, 2, 3});
  Log().Finish(7);

  Log().Begin({2});
  EXPECT_EQ(Log().step(), RowLog::kNone);

  Log().Clear();
  Log().Finish(8);
  EXPECT_THAT(Log().rows(), IsEmpty());
}

TEST_F(RowLogTest, ADamagedCountNamesNoRowBeyondTheLog) {
  Log().Begin({0});
  for (const int64_t count : {int64_t{-1}, int64_t{1} << 60}) {
    memory_[1] = count;
    EXPECT_LE(Log().rows().size(), 4u);
  }
}

}  // namespace
}  // namespace lockstep::server
