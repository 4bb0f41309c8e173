#include "chief/events/job_actions.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

TEST(JobActionsTest, LinesHaveTheirLevelsAndOrder) {
  JobActions out;
  Info(out, "a");
  Warn(out, "b");
  Error(out, "c");
  ASSERT_EQ(out.size(), 3U);
  EXPECT_EQ(std::get<Say>(out[0]).level, Say::Level::kInfo);
  EXPECT_EQ(std::get<Say>(out[1]).level, Say::Level::kWarning);
  EXPECT_EQ(std::get<Say>(out[2]).level, Say::Level::kError);
  EXPECT_EQ(std::get<Say>(out[1]).text, "b");
}

TEST(JobActionsTest, NoticeIsInTheLogAndWhereOperatorsLook) {
  JobActions out;
  Notify(out, "set aside");
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(std::get<Say>(out[0]).text, "set aside");
  const JobReport& report = std::get<JobReport>(out[1]);
  EXPECT_EQ(std::get<Noticed>(report).text, "set aside");
}

}  // namespace
}  // namespace lockstep::chief
