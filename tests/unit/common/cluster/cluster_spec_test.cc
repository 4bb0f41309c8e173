#include "common/cluster/cluster_spec.h"

#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/dense_cluster.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::DenseCluster;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

ClusterSpec Sparse(ClusterSpec::Jobs jobs) {
  return ClusterSpec::FromJobs(std::move(jobs)).value();
}

TEST(ClusterSpecTest, ElementOfAListIsTheTaskOfItsPlace) {
  const ClusterSpec spec = DenseCluster({{"ps", {"a:1", "b:1"}}});

  EXPECT_EQ(spec.NumTasks("ps"), 2);
  EXPECT_THAT(spec.TaskIndices("ps"), ElementsAre(0, 1));
  EXPECT_THAT(spec.TaskAddress("ps", 1), IsOkAndHolds("b:1"));
  EXPECT_TRUE(spec.IsDense("ps"));
}

TEST(ClusterSpecTest, SparseJobCountsItsTasksAndHasHoles) {
  const ClusterSpec spec = Sparse({{"worker", {{3, "d:1"}, {1, "b:1"}}}});

  EXPECT_EQ(spec.NumTasks("worker"), 2);
  EXPECT_THAT(spec.TaskIndices("worker"), ElementsAre(1, 3));
  EXPECT_FALSE(spec.IsDense("worker"));
}

TEST(ClusterSpecTest, UnknownJobAndTaskAreErrors) {
  const ClusterSpec spec = Sparse({{"worker", {{1, "b:1"}}}});

  EXPECT_THAT(spec.TaskAddress("ps", 0),
              StatusIs(kInvalid, HasSubstr("no job \"ps\"")));
  EXPECT_THAT(spec.TaskAddress("worker", 0),
              StatusIs(kInvalid, HasSubstr("\"worker\" has no task 0")));
  EXPECT_EQ(spec.NumTasks("ps"), 0);
  EXPECT_THAT(spec.TaskIndices("ps"), IsEmpty());
}

TEST(ClusterSpecTest, EmptyMeansWithoutJobs) {
  EXPECT_TRUE(ClusterSpec().empty());
  EXPECT_FALSE(DenseCluster({{"ps", {}}}).empty());
  EXPECT_FALSE(DenseCluster({{"ps", {}}}).IsDense("ps"));
}

TEST(ClusterSpecTest, EqualityIsByContentAndOrderMatters) {
  EXPECT_EQ(DenseCluster({{"ps", {"a:1"}}}), Sparse({{"ps", {{0, "a:1"}}}}));
  EXPECT_NE(DenseCluster({{"ps", {"a:1", "b:1"}}}),
            DenseCluster({{"ps", {"b:1", "a:1"}}}));
  EXPECT_NE(ClusterSpec(), DenseCluster({{"ps", {}}}));
}

TEST(ClusterSpecTest, IndexOutsideItsRangeIsRefused) {
  EXPECT_THAT(ClusterSpec::FromJobs({{"ps", {{-1, "a:1"}}}}),
              StatusIs(kInvalid, HasSubstr("task index -1 of job \"ps\" is "
                                           "outside 0 to 999999")));
  EXPECT_THAT(ClusterSpec::FromJobs({{"ps", {{1'000'000, "a:1"}}}}),
              StatusIs(kInvalid, HasSubstr("1000000")));
  EXPECT_OK(ClusterSpec::FromJobs({{"ps", {{999'999, "a:1"}}}}));
}

}  // namespace
}  // namespace lockstep
