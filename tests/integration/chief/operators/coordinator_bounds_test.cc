#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "chief/operators/coordinator_service.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/sinks/ostream_sink.h"
#include "spdlog/spdlog.h"
#include "tests/integration/call.h"
#include "tests/integration/chief/operators/coordinator_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

using Stub = v1::CoordinatorService::Stub;
constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr absl::StatusCode kRefused = absl::StatusCode::kFailedPrecondition;

// What peers may say to a chief, however much.
class CoordinatorBoundsTest : public CoordinatorFixture {
 protected:
  CoordinatorBoundsTest() : CoordinatorFixture(1, /*has_evaluator=*/false) {}

  // Returns the lines that are logged during `calls`.
  static std::vector<std::string> Logged(absl::FunctionRef<void()> calls) {
    std::ostringstream log;
    const auto before = spdlog::default_logger();
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)));
    calls();
    spdlog::set_default_logger(before);
    return absl::StrSplit(log.str(), '\n', absl::SkipEmpty());
  }

  bool ModelIsWanted(const v1::Identity& identity) {
    v1::HeartbeatRequest request;
    *request.mutable_identity() = identity;
    request.set_protocol_version(kProtocolVersion);
    const auto answer = Call(*stub_, &Stub::Heartbeat, request);
    EXPECT_OK(answer);
    return answer.ok() && answer->model_wanted();
  }
};

TEST_F(CoordinatorBoundsTest, ModelBeyondAllBoundsIsRefusedAtOnce) {
  ASSERT_OK(Register(Registration(Worker(1))));
  EXPECT_THAT(
      Describe(Worker(1), {"w", {int64_t{1} << 40}, DType::kFloat32, {}}),
      StatusIs(kInvalid, HasSubstr("at most 1048576")));
  EXPECT_THAT(
      Describe(Worker(1), {std::string(1025, 'w'), {1}, DType::kFloat32, {}}),
      StatusIs(kInvalid, HasSubstr("a name of 1025 bytes")));
  EXPECT_THAT(Describe(Worker(1),
                       {"w", std::vector<int64_t>(65, 1), DType::kFloat32, {}}),
              StatusIs(kInvalid, HasSubstr("65 dimensions")));
  EXPECT_TRUE(table_.variables().empty());

  EXPECT_OK(Describe(Worker(1), {"w", {2}, DType::kFloat32, {}}));
}

TEST_F(CoordinatorBoundsTest, OnlyRegisteredWorkersAndServersDescribeTheModel) {
  const VariableSpec variable{"w", {2}, DType::kFloat32, {}};
  const v1::Identity evaluator = Task(TaskType::kEvaluator, 0, 1);
  ASSERT_OK(Register(Registration(Worker(2))));
  ASSERT_OK(Register(Registration(evaluator)));

  EXPECT_FALSE(Describe(Worker(1), variable).ok());
  EXPECT_FALSE(Describe(Worker(3), variable).ok());
  EXPECT_FALSE(Describe(Task(TaskType::kPs, 0, 1), variable).ok());
  EXPECT_THAT(Describe(evaluator, variable),
              StatusIs(kInvalid, HasSubstr("only workers")));
  EXPECT_TRUE(table_.variables().empty());
}

TEST_F(CoordinatorBoundsTest, ReasonsOfPeersAreCut) {
  const std::string endless(10'000, 'x');
  ASSERT_OK(Register(Registration(Worker(1))));
  v1::LeaveRequest leave;
  *leave.mutable_identity() = Worker(1);
  leave.set_reason(endless);
  leave.mutable_progress()->set_activity(endless);
  ASSERT_OK(Call(*stub_, &Stub::Leave, leave));
  v1::StopRequest stop;
  stop.set_reason(endless);
  ASSERT_OK(Call(*stub_, &Stub::Stop, stop));

  const chief::MembershipTable::Member member =
      members_.Get({TaskType::kWorker, 0});
  EXPECT_EQ(member.leave_reason.size(), 1024u + 3);
  EXPECT_EQ(member.progress.activity.size(), 1024u + 3);
  EXPECT_EQ(stopped_->size(), 1024u + 3);
}

TEST_F(CoordinatorBoundsTest, RepeatedRegistrationIsLoggedOnce) {
  const std::vector<std::string> lines = Logged([&] {
    for (int i = 0; i < 5; ++i) EXPECT_OK(Register(Registration(Worker(1))));
  });

  EXPECT_THAT(lines, SizeIs(1));
}

TEST_F(CoordinatorBoundsTest, RepeatedDepartureIsLoggedOnce) {
  ASSERT_OK(Register(Registration(Worker(1))));
  v1::LeaveRequest leave;
  *leave.mutable_identity() = Worker(1);
  leave.set_reason("asked to stop");
  const std::vector<std::string> lines = Logged([&] {
    for (int i = 0; i < 5; ++i) EXPECT_OK(Call(*stub_, &Stub::Leave, leave));
  });

  EXPECT_THAT(lines, SizeIs(1));
}

TEST_F(CoordinatorBoundsTest, TaskThatWantsAnotherJobIsLoggedOnce) {
  v1::RegisterRequest request = Registration(Worker(1));
  const std::vector<std::string> lines = Logged([&] {
    for (const std::string job : {"other", "other", "third", "fourth"}) {
      request.set_expected_job(job);
      EXPECT_THAT(Register(request), StatusIs(kRefused, HasSubstr(job)));
      if (job == "third") clock_.Advance(absl::Seconds(1));
    }
  });

  EXPECT_THAT(lines, ElementsAre(HasSubstr("worker 0 wants job \"other\""),
                                 HasSubstr("wants job \"fourth\"")));
}

TEST_F(CoordinatorBoundsTest, ServerDescribesTheModelIfNoWorkerDoes) {
  const v1::Identity server = Task(TaskType::kPs, 0, 1);
  ASSERT_OK(Register(Registration(server)));
  ASSERT_OK(Register(Registration(Worker(1))));
  EXPECT_TRUE(ModelIsWanted(Worker(1)));
  EXPECT_FALSE(ModelIsWanted(server));

  clock_.Advance(absl::Seconds(6));
  EXPECT_TRUE(ModelIsWanted(server));
  EXPECT_OK(Describe(server, {"w", {8}, DType::kFloat32, {}}));

  EXPECT_FALSE(ModelIsWanted(server));
  EXPECT_EQ(table_.variables().size(), 1u);
}

}  // namespace
}  // namespace lockstep::testing
