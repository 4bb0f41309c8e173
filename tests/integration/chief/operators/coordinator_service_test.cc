#include "chief/operators/coordinator_service.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/job/codec/job_config_codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/call.h"
#include "tests/integration/chief/operators/coordinator_fixture.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Stub = v1::CoordinatorService::Stub;
using Code = absl::StatusCode;
constexpr Code kInvalid = Code::kInvalidArgument;
constexpr Code kPrecondition = Code::kFailedPrecondition;

class CoordinatorServiceTest : public CoordinatorFixture {};

TEST_F(CoordinatorServiceTest, ChiefThatIsStartedAgainTakesMembersOver) {
  const auto answer = Heartbeat(Worker(5));

  ASSERT_OK(answer);
  EXPECT_TRUE(answer->model_wanted());
  EXPECT_EQ(members_.Get({TaskType::kWorker, 0}).incarnation, 5u);
  ASSERT_OK(Describe(Worker(5), {"w", {2}, DType::kFloat32, {}}));
  const auto next = Heartbeat(Worker(5));
  ASSERT_OK(next);
  EXPECT_FALSE(next->model_wanted());
}

class CoordinatorReplicasTest : public CoordinatorFixture {
 protected:
  // A replica on each GPU of a worker.
  CoordinatorReplicasTest()
      : CoordinatorFixture(2, /*has_evaluator=*/false, [] {
          JobConfig job = Job();
          job.strategy.kind = StrategyKind::kMirrored;
          return job;
        }()) {}
};

// The worker registered with the chief before, which compared its GPUs.
TEST_F(CoordinatorReplicasTest, ChiefThatIsStartedAgainComparesGpusTakenOver) {
  v1::HeartbeatRequest heartbeat;
  *heartbeat.mutable_identity() = Worker(5, 0);
  heartbeat.set_protocol_version(kProtocolVersion);
  heartbeat.set_gpus(2);
  ASSERT_OK(Call(*stub_, &Stub::Heartbeat, heartbeat));
  v1::RegisterRequest other = Registration(Worker(6, 1));
  other.set_gpus(1);

  EXPECT_THAT(
      Register(other),
      StatusIs(kPrecondition, HasSubstr("worker 0 computes on 2 GPUs")));

  other.set_gpus(2);
  EXPECT_OK(Register(other));
}

TEST_F(CoordinatorServiceTest, StatusTellsWhatDeathsHaveCost) {
  table_.SetLosses({2, 3, 4, absl::Seconds(5)});
  table_.CheckpointFailed("the volume is full");
  table_.Died({.task = "worker 1", .held = "a token", .at = clock_.Now()});

  const auto status = Call(*stub_, &Stub::GetStatus, v1::GetStatusRequest());

  ASSERT_OK(status);
  EXPECT_EQ(status->losses().recoveries(), 2);
  EXPECT_EQ(status->losses().steps_redone(), 3);
  EXPECT_EQ(status->losses().steps_repeated(), 4);
  EXPECT_EQ(status->losses().stood_still().seconds(), 5);
  EXPECT_EQ(status->checkpoint_trouble(), "the volume is full");
  EXPECT_EQ(status->deaths().at(0).held(), "a token");
}

TEST_F(CoordinatorServiceTest, LossOfTheJobIsThatOfTheWorkersThatTrain) {
  const auto report = [this](int worker, double loss) {
    v1::HeartbeatRequest request;
    *request.mutable_identity() = Worker(1, worker);
    request.set_protocol_version(kProtocolVersion);
    request.mutable_progress()->set_examples(10);
    request.mutable_progress()->set_loss(loss);
    ASSERT_OK(Call(*stub_, &Stub::Heartbeat, request));
  };
  const auto loss = [this] {
    return Call(*stub_, &Stub::GetStatus, v1::GetStatusRequest())->loss();
  };
  ASSERT_OK(Register(Registration(Worker(1, 0))));
  ASSERT_OK(Register(Registration(Worker(1, 1))));
  report(0, 8.0);
  EXPECT_EQ(loss(), 8.0);
  report(1, 2.0);
  EXPECT_EQ(loss(), 5.0);

  report(0, std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(loss(), 2.0);

  report(0, 8.0);
  clock_.Advance(kLease / 2);
  report(1, 1.0);
  clock_.Advance(kLease * 3 / 4);
  Bury();
  EXPECT_EQ(loss(), 1.0);
}

TEST_F(CoordinatorServiceTest, MemberLearnsTheJob) {
  auto joined = Register(Registration(Task(TaskType::kWorker, 1, 1, "")));

  ASSERT_OK(joined);
  EXPECT_EQ(joined->job_id(), kJobId);
  EXPECT_EQ(joined->num_workers(), 2);
  EXPECT_EQ(joined->job().train_steps(), 100);
}

TEST_F(CoordinatorServiceTest, RegistrationCanBeRepeated) {
  ASSERT_OK(Register(Registration(Worker(1))));

  EXPECT_OK(Register(Registration(Worker(1))));
  EXPECT_OK(Heartbeat(Worker(1)));
}

TEST_F(CoordinatorServiceTest, OtherVersionOrJobIsRefused) {
  v1::RegisterRequest version = Registration(Worker(1));
  version.set_protocol_version(kProtocolVersion + 1);
  v1::RegisterRequest job = Registration(Worker(1));
  job.set_expected_job("other");
  const v1::RegisterRequest id =
      Registration(Task(TaskType::kWorker, 0, 1, "job-0"));

  EXPECT_THAT(Register(version),
              StatusIs(kPrecondition, HasSubstr("protocol version")));
  EXPECT_THAT(Register(job), StatusIs(kPrecondition, HasSubstr("\"other\"")));
  EXPECT_THAT(Register(id), StatusIs(kPrecondition, HasSubstr("job-0")));
  EXPECT_THAT(Heartbeat(Worker(1), kProtocolVersion + 1),
              StatusIs(kPrecondition, HasSubstr("protocol version")));
  EXPECT_EQ(members_.Get({TaskType::kWorker, 0}).incarnation, 0u);
}

TEST_F(CoordinatorServiceTest, TaskThatIsNotInTheClusterIsRefused) {
  const v1::Identity unknown = Task(TaskType::kWorker, 2, 1);

  EXPECT_THAT(Register(Registration(unknown)), StatusIs(Code::kNotFound));
  EXPECT_THAT(Heartbeat(unknown), StatusIs(Code::kNotFound));
}

TEST_F(CoordinatorServiceTest, IdentityThatCannotBeIsRefused) {
  EXPECT_THAT(Register(Registration(v1::Identity())), StatusIs(kInvalid));
  EXPECT_THAT(Register(Registration(Worker(0))), StatusIs(kInvalid));
  EXPECT_THAT(Heartbeat(v1::Identity()), StatusIs(kInvalid));
}

TEST_F(CoordinatorServiceTest, NewerIncarnationReplacesTheOlderOnceBuried) {
  ASSERT_OK(Register(Registration(Worker(1))));

  EXPECT_THAT(Register(Registration(Worker(2))), StatusIs(Code::kUnavailable));
  Bury();
  EXPECT_OK(Register(Registration(Worker(2))));

  EXPECT_OK(Heartbeat(Worker(2)));
  EXPECT_THAT(Heartbeat(Worker(1)),
              StatusIs(Code::kAlreadyExists, HasSubstr("task of its own")));
  EXPECT_THAT(Register(Registration(Worker(1))), StatusIs(Code::kUnavailable));
}

TEST_F(CoordinatorServiceTest, LeaseThatEndedMustBeTakenAnew) {
  ASSERT_OK(Register(Registration(Worker(1))));
  clock_.Advance(2 * kLease);
  Bury();

  EXPECT_THAT(Heartbeat(Worker(1)), StatusIs(Code::kAborted));
  EXPECT_OK(Register(Registration(Worker(2))));
}

TEST_F(CoordinatorServiceTest, HeartbeatsKeepTheLease) {
  ASSERT_OK(Register(Registration(Worker(1))));

  for (int i = 0; i < 5; ++i) {
    clock_.Advance(kLease / 2);
    Bury();
    EXPECT_OK(Heartbeat(Worker(1)));
  }
}

TEST_F(CoordinatorServiceTest, HeartbeatTellsHowTheJobStands) {
  ASSERT_OK(Register(Registration(Worker(1))));
  table_.StartTraining(0, clock_.Now());
  table_.Stepped(3, clock_.Now());
  auto training = Heartbeat(Worker(1));
  table_.SetState(JobState::kFailed, "ps 1 is gone", clock_.Now());

  auto failed = Heartbeat(Worker(1));

  ASSERT_OK(training);
  EXPECT_EQ(training->state(), v1::JOB_TRAINING);
  EXPECT_EQ(training->global_step(), 3);
  ASSERT_OK(failed);
  EXPECT_EQ(failed->state(), v1::JOB_FAILED);
  EXPECT_EQ(failed->reason(), "ps 1 is gone");
}

TEST_F(CoordinatorServiceTest, WorkersMustDescribeTheSameModel) {
  ASSERT_OK(Register(Registration(Worker(1))));
  const VariableSpec weights{"w", {8}, DType::kFloat32, {}};
  VariableSpec wider = weights;
  wider.shape = {9};

  EXPECT_OK(Describe(Worker(1), weights));
  EXPECT_OK(Describe(Worker(1), weights));
  EXPECT_THAT(Describe(Worker(1), wider), StatusIs(kInvalid, HasSubstr("w")));
  EXPECT_THAT(Describe(Worker(9), weights), StatusIs(kPrecondition));
  EXPECT_EQ(table_.variables()[0].shape, weights.shape);
}

struct BadVariable {
  std::string name;
  std::function<void(v1::DescribeModelRequest&)> spoil;
};

class BadVariableTest : public CoordinatorServiceTest,
                        public ::testing::WithParamInterface<BadVariable> {};

TEST_P(BadVariableTest, IsRefusedAndAGoodDescriptionCanFollow) {
  ASSERT_OK(Register(Registration(Worker(1))));
  v1::DescribeModelRequest good;
  *good.mutable_identity() = Worker(1);
  *good.add_variables() = ToProto(VariableSpec{"w", {8}, DType::kFloat32, {}});
  *good.add_variables() = ToProto(VariableSpec{"b", {}, DType::kFloat32, {}});
  v1::DescribeModelRequest bad = good;
  GetParam().spoil(bad);

  EXPECT_THAT(Describe(bad), StatusIs(kInvalid));

  EXPECT_THAT(table_.variables(), IsEmpty());
  EXPECT_OK(Describe(good));
}

using R = v1::DescribeModelRequest&;
INSTANTIATE_TEST_SUITE_P(
    Descriptions, BadVariableTest,
    ::testing::Values(
        BadVariable{"NoVariables", [](R r) { r.clear_variables(); }},
        BadVariable{"NoName",
                    [](R r) { r.mutable_variables(0)->clear_name(); }},
        BadVariable{"SameName",
                    [](R r) { r.mutable_variables(1)->set_name("w"); }},
        BadVariable{"NegativeDimension",
                    [](R r) { r.mutable_variables(0)->set_shape(0, -8); }},
        BadVariable{"EmptyDimension",
                    [](R r) { r.mutable_variables(0)->set_shape(0, 0); }},
        BadVariable{"ShapeThatOverflows",
                    [](R r) {
                      r.mutable_variables(0)->set_shape(0, int64_t{1} << 32);
                      r.mutable_variables(0)->add_shape(int64_t{1} << 32);
                    }},
        BadVariable{"UnknownType",
                    [](R r) { r.mutable_variables(0)->set_dtype("int3"); }},
        BadVariable{"UnknownInitializer",
                    [](R r) {
                      r.mutable_variables(0)->set_initializer(
                          static_cast<v1::Initializer>(-1));
                    }}),
    [](const auto& info) { return info.param.name; });

TEST_F(CoordinatorServiceTest, StrangersAreRefusedByEveryRpcOfMembers) {
  const auto codes = [this](const v1::Identity& identity) {
    v1::DescribeModelRequest describe;
    *describe.mutable_identity() = identity;
    *describe.add_variables() =
        ToProto(VariableSpec{"w", {8}, DType::kFloat32, {}});
    v1::GetPlanRequest plan;
    *plan.mutable_identity() = identity;
    v1::LeaveRequest leave;
    *leave.mutable_identity() = identity;
    v1::ReportEvaluationRequest report;
    *report.mutable_identity() = identity;
    return std::vector<absl::StatusCode>{
        Describe(describe).code(),
        Call(*stub_, &Stub::GetPlan, plan).status().code(),
        Heartbeat(identity).status().code(),
        Call(*stub_, &Stub::Leave, leave).status().code(),
        Call(*stub_, &Stub::ReportEvaluation, report).status().code()};
  };
  ASSERT_OK(Register(Registration(Worker(2))));

  EXPECT_THAT(codes(Task(TaskType::kWorker, 0, 2, "other")),
              Each(kPrecondition));
  EXPECT_THAT(codes(Worker(1)),
              Each(AnyOf(kPrecondition, Code::kAlreadyExists)));
  EXPECT_THAT(codes(Task(TaskType::kWorker, 7, 1)), Each(Code::kNotFound));
  EXPECT_THAT(codes(v1::Identity()), Each(kInvalid));

  EXPECT_THAT(table_.variables(), IsEmpty());
  EXPECT_FALSE(table_.Get(clock_.Now()).evaluation.has_value());
  EXPECT_OK(Heartbeat(Worker(2)));
}

TEST_F(CoordinatorServiceTest, PlanIsReadyOnceItIsPublished) {
  ASSERT_OK(Register(Registration(Worker(1))));
  v1::GetPlanRequest request;
  *request.mutable_identity() = Worker(1);
  table_.SetWaits({{"chief", "ps 0", clock_.Now()}});
  auto early = Call(*stub_, &Stub::GetPlan, request);
  table_.PublishPlan(
      {{{"w", {8}, DType::kFloat32, {}}}, {Part{0, 0, 8, 0, 0}}});

  auto plan = Call(*stub_, &Stub::GetPlan, request);

  ASSERT_OK(early);
  EXPECT_FALSE(early->ready());
  EXPECT_EQ(early->waiting_for(), "ps 0");
  ASSERT_OK(plan);
  EXPECT_TRUE(plan->ready());
  EXPECT_THAT(plan->parts(), SizeIs(1));
}

TEST_F(CoordinatorServiceTest, WorkerThatHasLeftIsNoMember) {
  ASSERT_OK(Register(Registration(Worker(1))));
  v1::LeaveRequest leave;
  *leave.mutable_identity() = Worker(1);
  leave.set_reason("SIGTERM");

  EXPECT_OK(Call(*stub_, &Stub::Leave, leave));
  EXPECT_OK(Call(*stub_, &Stub::Leave, leave));

  auto status = Call(*stub_, &Stub::GetStatus, v1::GetStatusRequest());
  ASSERT_OK(status);
  EXPECT_EQ(status->members(0).task(), "ps 0");
  EXPECT_EQ(status->members(0).state(), v1::MEMBER_MISSING);
  EXPECT_EQ(status->members(1).task(), "worker 0");
  EXPECT_EQ(status->members(1).state(), v1::MEMBER_LEFT);
}

TEST_F(CoordinatorServiceTest, CauseThatCannotBeInThisJobIsNotBelieved) {
  for (const int cause : {0, 2, 4, 99}) {  // unnamed, end of input, no room
    ASSERT_OK(Register(Registration(Worker(cause + 1))));
    v1::LeaveRequest request;
    *request.mutable_identity() = Worker(cause + 1);
    request.set_cause(static_cast<v1::LeaveCause>(cause));
    ASSERT_OK(Call(*stub_, &Stub::Leave, request));
    const auto dead = members_.TakeDead(clock_.Now());
    EXPECT_EQ(dead.at(0).leave, LeaveCause::kStopped) << cause;
    members_.Buried(dead.at(0).task, cause + 1);
  }
}

// In the job of a user's program the tables' limits are not in the job file.
TEST_F(CoordinatorServiceTest, FullTableIsBelievedWhereATableGrows) {
  ASSERT_OK(Register(Registration(Worker(1))));
  ASSERT_OK(
      Describe(Worker(1),
               VariableSpec{"t", {100, 3}, DType::kFloat32, {}, RowCut::kKey}));
  v1::LeaveRequest request;
  *request.mutable_identity() = Worker(1);
  request.set_cause(v1::LEAVE_NO_ROOM);

  ASSERT_OK(Call(*stub_, &Stub::Leave, request));

  EXPECT_EQ(members_.TakeDead(clock_.Now()).at(0).leave, LeaveCause::kNoRoom);
}

// Its scores are known to the chief before; it would not report them again.
TEST_F(CoordinatorServiceTest, EvaluatorOfAnEarlierChiefRegistersAgain) {
  EXPECT_THAT(Heartbeat(Task(TaskType::kEvaluator, 0, 1)),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("score")));
  ASSERT_OK(Register(Registration(Task(TaskType::kEvaluator, 0, 2))));
  EXPECT_OK(Heartbeat(Task(TaskType::kEvaluator, 0, 2)));
}

TEST_F(CoordinatorServiceTest, FiguresOfAUsersEvaluatorAreInTheStatus) {
  ASSERT_OK(Register(Registration(Task(TaskType::kEvaluator, 0, 1))));
  v1::ReportEvaluationRequest report;
  *report.mutable_identity() = Task(TaskType::kEvaluator, 0, 1);
  report.set_global_step(10);
  *report.mutable_figures() =
      ToProto(std::vector<NamedFigure>{{"bleu", 0.5}, {"loss", -2}});
  EXPECT_OK(Call(*stub_, &Stub::ReportEvaluation, report));

  const auto status = Call(*stub_, &Stub::GetStatus, v1::GetStatusRequest());
  ASSERT_OK(status);
  ASSERT_EQ(status->evaluation().figures_size(), 2);
  EXPECT_EQ(status->evaluation().figures(0).name(), "bleu");
  EXPECT_EQ(status->evaluation().figures(1).value(), -2);

  report.set_global_step(20);
  report.mutable_figures(0)->set_name("two words");
  EXPECT_THAT(Call(*stub_, &Stub::ReportEvaluation, report),
              StatusIs(kInvalid, HasSubstr("the name of a figure")));
  EXPECT_EQ(table_.Get(clock_.Now()).evaluation->step, 10);
}

TEST_F(CoordinatorServiceTest, BuffersAreDescribedAndAreNoTables) {
  ASSERT_OK(Register(Registration(Worker(1))));
  const VariableSpec both = {
      .name = "mean", .shape = {2}, .row_cut = RowCut::kMod, .buffer = true};
  EXPECT_THAT(Describe(Worker(1), both),
              StatusIs(kInvalid, HasSubstr("a table and a buffer")));
  const VariableSpec buffer = {.name = "mean", .shape = {2}, .buffer = true};
  EXPECT_OK(Describe(Worker(1), buffer));
  ASSERT_EQ(table_.variables().size(), 1u);
  EXPECT_TRUE(table_.variables()[0].buffer);
  const VariableSpec plain = {.name = "mean", .shape = {2}};
  EXPECT_THAT(Describe(Worker(1), plain),
              StatusIs(kInvalid, HasSubstr("a buffer on the one")));
}

TEST_F(CoordinatorServiceTest, ScoreMustBeOfAStepThatTheJobHasReached) {
  ASSERT_OK(Register(Registration(Task(TaskType::kEvaluator, 0, 1))));
  table_.StartTraining(9, clock_.Now());

  EXPECT_THAT(Evaluate(0.75),
              StatusIs(kInvalid, HasSubstr("global_step is 10")));
  table_.Stepped(10, clock_.Now());
  EXPECT_OK(Evaluate(0.75));
}

TEST_F(CoordinatorServiceTest, ScoreMustBeAFraction) {
  ASSERT_OK(Register(Registration(Task(TaskType::kEvaluator, 0, 1))));

  EXPECT_THAT(Evaluate(1.5), StatusIs(kInvalid));
  EXPECT_THAT(Evaluate(std::numeric_limits<double>::quiet_NaN()),
              StatusIs(kInvalid));
  EXPECT_FALSE(table_.Get(clock_.Now()).evaluation.has_value());

  ASSERT_OK(Register(Registration(Worker(1))));
  v1::ReportEvaluationRequest of_a_worker;
  *of_a_worker.mutable_identity() = Worker(1);
  of_a_worker.set_accuracy(1);
  EXPECT_THAT(Call(*stub_, &Stub::ReportEvaluation, of_a_worker),
              StatusIs(kInvalid, HasSubstr("only the evaluator")));
  EXPECT_OK(Evaluate(0.75));
  EXPECT_EQ(table_.Get(clock_.Now()).evaluation->accuracy, 0.75);
}

TEST_F(CoordinatorServiceTest, BytesThatAreNoMessageAreRefused) {
  for (const char* method :
       {"Register", "DescribeModel", "GetPlan", "Heartbeat", "Leave",
        "ReportEvaluation", "GetStatus", "Stop"}) {
    const std::string path =
        absl::StrCat("/lockstep.v1.CoordinatorService/", method);

    // gRPC's own answer, also to methods that do not exist.
    EXPECT_THAT(CallWithBytes(channel_, path, std::string(64, '\xff')),
                StatusIs(Code::kUnimplemented))
        << method;
    EXPECT_FALSE(stopped_.has_value());
    EXPECT_NE(CallWithBytes(channel_, path, "").code(), Code::kUnimplemented)
        << method;
  }
  EXPECT_OK(Register(Registration(Worker(1))));
}

}  // namespace
}  // namespace lockstep::testing
