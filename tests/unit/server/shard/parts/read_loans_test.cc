#include "server/shard/parts/read_loans.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReadLoansTest : public ::testing::Test {
 protected:
  std::shared_ptr<const void> Lend(int buffer) {
    return loans_->Lend(buffer, memory_);
  }

  std::vector<int> returned_;
  std::shared_ptr<int> memory_ = std::make_shared<int>(7);
  std::shared_ptr<ReadLoans> loans_ =
      ReadLoans::Create(3, [this](int buffer) { returned_.push_back(buffer); });
};

TEST_F(ReadLoansTest, FreeBufferIsClaimedAtOnce) {
  EXPECT_TRUE(loans_->Claim(1));
  EXPECT_TRUE(loans_->Claim(1));
  EXPECT_THAT(returned_, IsEmpty());
}

TEST_F(ReadLoansTest, ClaimOfALentBufferIsToldWhenTheLastReaderIsDone) {
  auto one = Lend(1);
  auto other = Lend(1);
  auto copy = other;

  EXPECT_FALSE(loans_->Claim(1));
  one.reset();
  other.reset();
  EXPECT_THAT(returned_, IsEmpty());
  copy.reset();

  EXPECT_THAT(returned_, ElementsAre(1));
  EXPECT_TRUE(loans_->Claim(1));
}

TEST_F(ReadLoansTest, UnclaimedBufferIsNotReported) {
  Lend(0).reset();
  auto loan = Lend(2);
  EXPECT_FALSE(loans_->Claim(2));
  EXPECT_TRUE(loans_->Claim(0));
  loan.reset();

  EXPECT_THAT(returned_, ElementsAre(2));
}

TEST_F(ReadLoansTest, LoanKeepsTheMemoryAlive) {
  std::weak_ptr<int> memory = memory_;
  auto loan = Lend(0);
  memory_.reset();
  loans_.reset();

  EXPECT_FALSE(memory.expired());
  EXPECT_EQ(*static_cast<const int*>(loan.get()), 7);
  loan.reset();

  EXPECT_TRUE(memory.expired());
}

TEST_F(ReadLoansTest, NothingIsReportedAfterClose) {
  auto loan = Lend(0);
  EXPECT_FALSE(loans_->Claim(0));

  loans_->Close();
  loan.reset();

  EXPECT_THAT(returned_, IsEmpty());
}

// Readers in several threads let go while a writer claims again and again: a
// refused claim is always followed by a word.
TEST(ReadLoansThreadsTest, NoReturnIsMissed) {
  std::atomic<int> told = 0;
  auto book = ReadLoans::Create(1, [&](int) { ++told; });
  auto memory = std::make_shared<int>();
  int refused = 0;

  for (int round = 0; round < 500; ++round) {
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) {
      readers.emplace_back(
          [loan = book->Lend(0, memory)]() mutable { loan.reset(); });
    }
    const int before = told;
    const bool claimed = book->Claim(0);
    for (std::thread& reader : readers) reader.join();

    EXPECT_EQ(told - before, claimed ? 0 : 1);
    refused += claimed ? 0 : 1;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace lockstep::server
