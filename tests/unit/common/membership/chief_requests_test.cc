#include "common/membership/chief_requests.h"

#include <string>

#include "common/wire/wire_codec.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ChiefRequestsTest, ARegistrationNamesVersionJobAndAddress) {
  ChiefClient::Options options;
  options.own_address = "here:1";
  options.expected_job = "job";
  const v1::RegisterRequest request = RegisterRequestOf(options, true);
  EXPECT_EQ(request.protocol_version(), kProtocolVersion);
  EXPECT_EQ(request.address(), "here:1");
  EXPECT_EQ(request.expected_job(), "job");
  EXPECT_TRUE(request.again());
}

TEST(ChiefRequestsTest, AModelIsItsVariablesAndExamples) {
  VariableSpec variable;
  variable.name = "w";
  const v1::DescribeModelRequest without =
      DescribeRequestOf({variable, variable}, std::nullopt);
  EXPECT_EQ(without.variables_size(), 2);
  EXPECT_EQ(without.variables(1).name(), "w");
  EXPECT_FALSE(without.has_examples());
  EXPECT_EQ(without.num_examples(), 0);
  EXPECT_TRUE(DescribeRequestOf({}, ExampleShape()).has_examples());
  EXPECT_EQ(DescribeRequestOf({}, std::nullopt, 1797).num_examples(), 1797);
}

TEST(ChiefRequestsTest, AnAucIsThereIfItWasScored) {
  ChiefClient::Score score;
  score.loss = 2;
  score.accuracy = 0.5;
  score.examples = 7;
  v1::ReportEvaluationRequest request = ReportRequestOf(9, score);
  EXPECT_EQ(request.global_step(), 9);
  EXPECT_EQ(request.loss(), 2);
  EXPECT_EQ(request.accuracy(), 0.5);
  EXPECT_EQ(request.examples(), 7);
  EXPECT_FALSE(request.has_auc());
  score.auc = 0.25;
  score.figures = {{"f", 1}};
  request = ReportRequestOf(9, score);
  EXPECT_EQ(request.auc(), 0.25);
  EXPECT_EQ(request.figures_size(), 1);
}

TEST(ChiefRequestsTest, ALeaveHasItsCauseAndTheProgress) {
  ChiefClient::Options options;
  v1::LeaveRequest request =
      LeaveRequestOf(options, LeaveCause::kEndOfInput, "end");
  EXPECT_EQ(request.cause(), v1::LEAVE_END_OF_INPUT);
  EXPECT_EQ(request.reason(), "end");
  EXPECT_FALSE(request.has_progress());
  options.progress = [] { return Progress{}; };
  request = LeaveRequestOf(options, LeaveCause::kDone, "");
  EXPECT_TRUE(request.has_progress());
}

// The chief acts on the cause, so it must be able to read the message.
TEST(ChiefRequestsTest, ARequestIsReadWhateverBytesItsReasonHas) {
  const std::string reason = "no file /data/M\xFCller";
  v1::LeaveRequest leave;
  ASSERT_TRUE(leave.ParseFromString(
      LeaveRequestOf({}, LeaveCause::kCannotTakePart, reason)
          .SerializeAsString()));
  EXPECT_EQ(leave.cause(), v1::LEAVE_CANNOT_TAKE_PART);
  EXPECT_EQ(leave.reason(), "no file /data/M?ller");
  v1::StopRequest stop;
  ASSERT_TRUE(
      stop.ParseFromString(StopRequestOf({"job", {TaskType::kPs, 1}, 7}, reason)
                               .SerializeAsString()));
  EXPECT_EQ(stop.reason(), "ps 1: no file /data/M?ller");
}

TEST(ChiefRequestsTest, AStopNamesTheTask) {
  const v1::StopRequest request =
      StopRequestOf({"job", {TaskType::kPs, 1}, 7}, "why");
  EXPECT_EQ(request.reason(), "ps 1: why");
  EXPECT_EQ(request.task_type(), "ps");
  EXPECT_EQ(request.task_index(), 1);
  EXPECT_EQ(request.job_id(), "job");
  EXPECT_EQ(request.incarnation(), 7);
}

}  // namespace
}  // namespace lockstep
