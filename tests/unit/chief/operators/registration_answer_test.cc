#include "chief/operators/registration_answer.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;

TEST(RegistrationAnswerTest, MemberLearnsTheJobAndItsShare) {
  MemberJob told;
  told.job.train_steps = 100;
  told.num_workers = 3;
  told.data_shard = 1;
  told.workers = {0, 3, 5};
  v1::RegisterResponse response;
  FillJob(told, response);
  EXPECT_EQ(response.job().train_steps(), 100);
  EXPECT_EQ(response.num_workers(), 3);
  EXPECT_EQ(response.data_shard(), 1);
  EXPECT_THAT(response.workers(), ElementsAre(0, 3, 5));
}

TEST(RegistrationAnswerTest, EveryEditedValueChangesTheFingerprint) {
  JobConfig job;
  const uint64_t before = FingerprintOf(job);
  EXPECT_EQ(FingerprintOf(job), before);
  job.batch_size += 1;
  const uint64_t batch = FingerprintOf(job);
  EXPECT_NE(batch, before);
  job.data.train_files.push_back("more");
  EXPECT_NE(FingerprintOf(job), batch);
}

}  // namespace
}  // namespace lockstep::chief
