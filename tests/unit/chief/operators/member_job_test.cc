#include "chief/operators/member_job.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr TaskId kWorker = {TaskType::kWorker, 3};

TEST(MemberJobTest, EveryWorkerOfTheClusterHasAShare) {
  const MemberJob told = JobOfMember({}, 4, kWorker, {});
  EXPECT_EQ(told.num_workers, 4);
  EXPECT_EQ(told.data_shard, 3);
  EXPECT_THAT(told.workers, IsEmpty());
}

TEST(MemberJobTest, WorkersOfAnElasticJobDivideTheDataAmongThose) {
  RunSettings in_effect;
  in_effect.workers = {0, 3, 5};
  const MemberJob told = JobOfMember({}, 4, kWorker, in_effect);
  EXPECT_EQ(told.num_workers, 3);
  EXPECT_EQ(told.data_shard, 1);
  EXPECT_THAT(told.workers, ElementsAre(0, 3, 5));
  EXPECT_EQ(told.job.total_num_replicas, 3);
  EXPECT_THAT(JobOfMember({}, 4, {TaskType::kPs, 0}, in_effect).workers,
              IsEmpty());
}

TEST(MemberJobTest, NumberOfGradientsIsTheOneInEffect) {
  JobConfig job;
  job.replicas_to_aggregate = 4;
  RunSettings in_effect;
  in_effect.replicas_to_aggregate = 2;
  EXPECT_EQ(JobOfMember(job, 4, kWorker, in_effect).job.replicas_to_aggregate,
            2);
  EXPECT_EQ(JobOfMember(job, 4, kWorker, {}).job.replicas_to_aggregate, 4);
}

TEST(MemberJobTest, SharedWorkKeepsTheNumberOfItsJob) {
  JobConfig job;
  job.work = Work::kShared;
  job.replicas_to_aggregate = 4;
  RunSettings in_effect;
  in_effect.replicas_to_aggregate = 2;
  EXPECT_EQ(JobOfMember(job, 4, kWorker, in_effect).job.replicas_to_aggregate,
            4);
}

}  // namespace
}  // namespace lockstep::chief
