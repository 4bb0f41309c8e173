#include "server/shard/parts/part_gradients.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/server/shard/parts/shard_fixture.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<PartGradient> OneAbsent() {
  return {GradientOf<float>({1, 2}), AbsentGradient(),
          GradientOf<float>({3, 4, 5})};
}

TEST(PartGradientsTest, AbsentOnesAreNoTermsButCountInTheDivisor) {
  const std::vector<PartGradient> present = Present(OneAbsent());
  ASSERT_THAT(present, SizeIs(2));
  const std::vector<GradientSlices> slices = SlicesOf(present);
  ASSERT_THAT(slices, SizeIs(2));
  EXPECT_EQ(TotalSize(slices[0].slices), 8u);
  EXPECT_EQ(TotalSize(slices[1].slices), 12u);
  EXPECT_EQ(DivisorOf(JobConfig(), OneAbsent()), 3);
  EXPECT_THAT(OrderOf(JobConfig(), OneAbsent()), IsEmpty());
}

TEST(PartGradientsTest, SharedStepsHaveTheDivisorAndTheTreeOfAllNumbers) {
  JobConfig job;
  job.work = Work::kShared;
  job.micro_batches_per_step = 8;
  EXPECT_EQ(DivisorOf(job, OneAbsent()), 8);
  EXPECT_THAT(OrderOf(job, OneAbsent()), ElementsAre(0, 1));
}

}  // namespace
}  // namespace lockstep::server
