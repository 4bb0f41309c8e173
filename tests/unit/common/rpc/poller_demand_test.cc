#include "common/rpc/poller_demand.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

constexpr absl::Time kBegin = absl::UnixEpoch();
constexpr size_t kLittle = PollerDemand::kMuch - 1;

class PollerDemandTest : public ::testing::Test {
 protected:
  // Counts `count` small calls, `apart` from each other.
  void CountShort(int count, absl::Duration apart = absl::Microseconds(100)) {
    for (int i = 0; i < count; ++i) {
      now_ += apart;
      demand_.Count(kLittle, now_);
    }
  }

  absl::Time now_ = kBegin;
  PollerDemand demand_;
};

TEST_F(PollerDemandTest, AllAreNeededUntilManyShortCallsHaveCome) {
  EXPECT_FALSE(demand_.one_is_enough());

  CountShort(PollerDemand::kMany - 1);
  EXPECT_FALSE(demand_.one_is_enough());

  CountShort(1);
  EXPECT_TRUE(demand_.one_is_enough());
}

TEST_F(PollerDemandTest, OneIsEnoughAsLongAsShortCallsComeQuickly) {
  CountShort(PollerDemand::kMany);

  for (int i = 0; i < 1000; ++i) {
    CountShort(1);
    ASSERT_TRUE(demand_.one_is_enough()) << i;
  }
}

TEST_F(PollerDemandTest, ALargeCallHasAllNeededAtOnceAndForAPeriod) {
  CountShort(PollerDemand::kMany);

  demand_.Count(PollerDemand::kMuch, now_);
  EXPECT_FALSE(demand_.one_is_enough());

  const absl::Time large = now_;
  while (now_ - large < PollerDemand::kPeriod) {
    CountShort(1);
    ASSERT_FALSE(demand_.one_is_enough()) << now_ - large;
  }
  CountShort(2 * PollerDemand::kMany);
  EXPECT_TRUE(demand_.one_is_enough());
}

TEST_F(PollerDemandTest, AllAreNeededWhereShortCallsComeSlowly) {
  CountShort(10 * PollerDemand::kMany,
             2 * PollerDemand::kPeriod / PollerDemand::kMany);

  EXPECT_FALSE(demand_.one_is_enough());
}

TEST_F(PollerDemandTest, AllAreNeededAPeriodAfterTheLastCalls) {
  CountShort(PollerDemand::kMany);

  demand_.PassTime(now_ + PollerDemand::kPeriod);
  EXPECT_TRUE(demand_.one_is_enough());

  demand_.PassTime(now_ + PollerDemand::kPeriod + absl::Nanoseconds(1));
  EXPECT_FALSE(demand_.one_is_enough());
}

TEST_F(PollerDemandTest, AClockThatIsSetBackDoesNotKeepItAtOne) {
  CountShort(PollerDemand::kMany);

  demand_.PassTime(now_ - absl::Hours(1));

  EXPECT_FALSE(demand_.one_is_enough());
}

TEST_F(PollerDemandTest, AFewCallsInAPeriodDoNotKeepItAtOne) {
  CountShort(PollerDemand::kMany);

  CountShort(3, PollerDemand::kPeriod / 2);

  EXPECT_FALSE(demand_.one_is_enough());
}

}  // namespace
}  // namespace lockstep
