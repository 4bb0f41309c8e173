#include "deploy/lockstep/job_needs.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(NeededWorkersTest, WithoutBackupsAllAreNeeded) {
  EXPECT_EQ(NeededWorkers({}, 3), 3);
}

TEST(NeededWorkersTest, BackupsAreNotNeeded) {
  EXPECT_EQ(
      NeededWorkers({.replicas_to_aggregate = 2, .total_num_replicas = 3}, 3),
      2);
}

TEST(NeededWorkersTest, FewReplicasHaveAShareEach) {
  EXPECT_EQ(
      NeededWorkers({.replicas_to_aggregate = 8, .total_num_replicas = 2}, 2),
      2);
}

TEST(NeededWorkersTest, NeverMoreThanThereAreNorNone) {
  EXPECT_EQ(
      NeededWorkers({.replicas_to_aggregate = 9, .total_num_replicas = 9}, 2),
      2);
  EXPECT_EQ(NeededWorkers({}, 0), 1);
}

TEST(NeededWorkersTest, InCompatibleModeOneCanDoItAll) {
  EXPECT_EQ(NeededWorkers(
                {.mode = SyncMode::kCompatible, .replicas_to_aggregate = 3}, 3),
            1);
}

}  // namespace
}  // namespace lockstep
