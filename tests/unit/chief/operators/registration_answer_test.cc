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

}  // namespace
}  // namespace lockstep::chief
