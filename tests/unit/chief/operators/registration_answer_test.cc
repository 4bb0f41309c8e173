#include "chief/operators/registration_answer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

v1::RegisterResponse AnswerTo(const TaskId& member,
                              const RunSettings& in_effect,
                              const JobConfig& job = {}) {
  v1::RegisterResponse response;
  FillJob(job, 4, member, in_effect, response);
  return response;
}

TEST(RegistrationAnswerTest, EveryWorkerOfTheClusterHasAShare) {
  const v1::RegisterResponse answer = AnswerTo({TaskType::kWorker, 3}, {});
  EXPECT_EQ(answer.num_workers(), 4);
  EXPECT_EQ(answer.data_shard(), 3);
  EXPECT_THAT(answer.workers(), IsEmpty());
}

TEST(RegistrationAnswerTest, WorkersOfAnElasticJobDivideTheDataAmongThose) {
  RunSettings in_effect;
  in_effect.workers = {0, 3, 5};
  const v1::RegisterResponse answer =
      AnswerTo({TaskType::kWorker, 3}, in_effect);
  EXPECT_EQ(answer.num_workers(), 3);
  EXPECT_EQ(answer.data_shard(), 1);
  EXPECT_THAT(answer.workers(), ElementsAre(0, 3, 5));
  EXPECT_EQ(answer.job().total_num_replicas(), 3);
  EXPECT_THAT(AnswerTo({TaskType::kPs, 0}, in_effect).workers(), IsEmpty());
}

TEST(RegistrationAnswerTest, NumberOfGradientsIsTheOneInEffect) {
  JobConfig job;
  job.replicas_to_aggregate = 4;
  RunSettings in_effect;
  in_effect.replicas_to_aggregate = 2;
  const TaskId worker = {TaskType::kWorker, 0};
  EXPECT_EQ(AnswerTo(worker, in_effect, job).job().replicas_to_aggregate(), 2);
  EXPECT_EQ(AnswerTo(worker, {}, job).job().replicas_to_aggregate(), 4);
}

TEST(RegistrationAnswerTest, SharedWorkKeepsTheNumberOfItsJob) {
  JobConfig job;
  job.work = Work::kShared;
  job.replicas_to_aggregate = 4;
  RunSettings in_effect;
  in_effect.replicas_to_aggregate = 2;
  EXPECT_EQ(AnswerTo({TaskType::kWorker, 0}, in_effect, job)
                .job()
                .replicas_to_aggregate(),
            4);
}

}  // namespace
}  // namespace lockstep::chief
