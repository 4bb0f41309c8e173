#include "chief/operators/member_answers.h"

#include "common/base/call_limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Code = absl::StatusCode;

constexpr int kProtocol = 7;
constexpr char kJobId[] = "job-1";
constexpr uint64_t kJobFile = 17;  // its fingerprint

JobConfig JobOfTwo() {
  JobConfig job;
  job.name = "job";
  job.replicas_to_aggregate = 2;
  job.total_num_replicas = 2;
  return job;
}

class MemberAnswersTest : public ::testing::Test {
 protected:
  explicit MemberAnswersTest(const JobConfig& job = JobOfTwo())
      : settings_(job),
        answers_({kJobId, job, 2, kProtocol, now_, kJobFile}, members_, status_,
                 settings_) {
    status_.SetSettings(InitialSettings(job), now_);
  }

  static Sender Worker(uint64_t incarnation, int index = 0) {
    return {kJobId, {TaskType::kWorker, index}, incarnation};
  }
  static Sender Server(uint64_t incarnation) {
    return {kJobId, {TaskType::kPs, 0}, incarnation};
  }
  static MemberAnswers::Registration Of(const Sender& sender) {
    MemberAnswers::Registration registration;
    registration.sender = sender;
    registration.protocol = kProtocol;
    return registration;
  }
  absl::StatusOr<MemberAnswers::Registered> Register(const Sender& sender) {
    return answers_.Register(Of(sender), now_);
  }
  absl::StatusOr<MemberAnswers::Heard> Hear(const Sender& sender) {
    MemberAnswers::Heartbeat heartbeat;
    heartbeat.sender = sender;
    heartbeat.protocol = kProtocol;
    return answers_.Hear(heartbeat, now_);
  }
  void Bury() {
    for (const MembershipTable::Dead& dead : members_.TakeDead(now_)) {
      members_.Buried(dead.task, dead.incarnation);
    }
  }
  LeaveCause CauseOfDeath() {
    const std::vector<MembershipTable::Dead> dead = members_.TakeDead(now_);
    return dead.empty() ? LeaveCause::kDone : dead.back().leave;
  }

  absl::Time now_ = absl::UnixEpoch();
  MembershipTable members_{{{TaskType::kPs, 0},
                            {TaskType::kWorker, 0},
                            {TaskType::kWorker, 1},
                            {TaskType::kEvaluator, 0}},
                           absl::Seconds(2)};
  StatusTable status_;
  SettingsTable settings_;
  MemberAnswers answers_;
};

TEST_F(MemberAnswersTest, OtherProtocolOrJobIsNotMeant) {
  EXPECT_THAT(answers_.CheckIsMeant(Of(Worker(1))), IsOk());
  MemberAnswers::Registration version = Of(Worker(1));
  version.protocol = kProtocol + 1;
  EXPECT_THAT(
      answers_.CheckIsMeant(version),
      StatusIs(Code::kFailedPrecondition, HasSubstr("protocol version 8")));
  MemberAnswers::Registration name = Of(Worker(1));
  name.expected_job = "other";
  EXPECT_THAT(answers_.CheckIsMeant(name),
              StatusIs(Code::kFailedPrecondition, HasSubstr("\"other\"")));
  MemberAnswers::Registration id = Of(Worker(1));
  id.sender.job_id = "job-0";
  EXPECT_THAT(answers_.CheckIsMeant(id),
              StatusIs(Code::kFailedPrecondition, HasSubstr("job-0")));
  id.sender.job_id = "";
  EXPECT_THAT(answers_.CheckIsMeant(id), IsOk());
}

TEST_F(MemberAnswersTest, RepeatedRegistrationIsNotNew) {
  EXPECT_TRUE(Register(Worker(1)).value().is_new);
  EXPECT_FALSE(Register(Worker(1)).value().is_new);
}

TEST_F(MemberAnswersTest, NewMemberLearnsTheSettingsInEffect) {
  RunSettings settings;
  settings.replicas_to_aggregate = 1;
  status_.SetSettings(settings, now_);
  const auto registered = Register(Worker(1, 1));
  ASSERT_THAT(registered, IsOk());
  EXPECT_EQ(registered->job.num_workers, 2);
  EXPECT_EQ(registered->job.data_shard, 1);
  EXPECT_EQ(registered->job.job.replicas_to_aggregate, 1);
}

TEST_F(MemberAnswersTest, EveryCallOfAnotherJobIsRefused) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  Sender other = Worker(1);
  other.job_id = "job-0";
  const auto refused =
      StatusIs(Code::kFailedPrecondition, HasSubstr("this chief runs"));
  EXPECT_THAT(answers_.CheckMember(other, now_), refused);
  EXPECT_THAT(Hear(other), refused);
  EXPECT_THAT(answers_.CheckDescribes(other, now_), refused);
  EXPECT_THAT(answers_.Leave(other, LeaveCause::kDone, "", {}, now_), refused);
}

TEST_F(MemberAnswersTest, HeartbeatTakesOverAMemberOfTheSameProtocolAlone) {
  MemberAnswers::Heartbeat other;
  other.sender = Worker(1);
  other.protocol = kProtocol + 1;
  EXPECT_THAT(answers_.Hear(other, now_),
              StatusIs(Code::kFailedPrecondition, HasSubstr("protocol")));
  EXPECT_THAT(Hear(Worker(1)), IsOk());
  EXPECT_THAT(answers_.Hear(other, now_), IsOk());
}

TEST_F(MemberAnswersTest, EvaluatorOfAnEarlierChiefBeginsAnew) {
  const Sender evaluator = {kJobId, {TaskType::kEvaluator, 0}, 1};
  EXPECT_THAT(Hear(evaluator), StatusIs(Code::kAborted, HasSubstr("scores")));
}

TEST_F(MemberAnswersTest, WorkerThatKnowsAnotherJobFileMustRegisterAgain) {
  MemberAnswers::Heartbeat heartbeat;
  heartbeat.protocol = kProtocol;
  heartbeat.sender = Worker(1);
  heartbeat.job_fingerprint = kJobFile + 1;
  EXPECT_THAT(answers_.Hear(heartbeat, now_),
              StatusIs(Code::kAborted, HasSubstr("another job file")));
  EXPECT_THAT(Register(Worker(2)), IsOk());

  heartbeat.sender = Worker(1, 1);
  heartbeat.job_fingerprint = kJobFile;
  EXPECT_THAT(answers_.Hear(heartbeat, now_), IsOk());

  heartbeat.sender = Worker(2);
  heartbeat.job_fingerprint = kJobFile + 1;
  EXPECT_THAT(answers_.Hear(heartbeat, now_), IsOk());
}

// It would send heartbeats at the intervals of the job file before.
TEST_F(MemberAnswersTest, ServerThatKnowsAnotherJobFileMustRegisterAgain) {
  MemberAnswers::Heartbeat heartbeat;
  heartbeat.protocol = kProtocol;
  heartbeat.sender = Server(1);
  heartbeat.job_fingerprint = kJobFile + 1;
  EXPECT_THAT(answers_.Hear(heartbeat, now_),
              StatusIs(Code::kAborted, HasSubstr("another job file")));
  EXPECT_THAT(Register(Server(1)), IsOk());
  EXPECT_THAT(answers_.Hear(heartbeat, now_), IsOk());
}

class MemberAnswersOfProgramsTest : public MemberAnswersTest {
 protected:
  explicit MemberAnswersOfProgramsTest(const StrategyConfig& strategy = {})
      : MemberAnswersTest(Job(strategy)) {}

  static JobConfig Job(const StrategyConfig& strategy) {
    JobConfig job = JobOfTwo();
    job.model.kind = kExternalModel;
    job.strategy = strategy;
    return job;
  }
  JobState StateFor(const Sender& sender) {
    const auto heard = Hear(sender);
    EXPECT_THAT(heard, IsOk());
    return heard.ok() ? heard->job.state : JobState::kFailed;
  }
};

TEST_F(MemberAnswersOfProgramsTest, ServersStayUntilWorkersHaveTheLastValues) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  ASSERT_THAT(Register(Server(1)), IsOk());
  status_.SetState(JobState::kDone, "", now_);
  EXPECT_EQ(StateFor(Worker(1)), JobState::kDone);
  EXPECT_EQ(StateFor(Server(1)), JobState::kFinishing);

  ASSERT_THAT(
      answers_.Leave(Worker(1), LeaveCause::kDone, "done", std::nullopt, now_),
      IsOk());
  EXPECT_EQ(StateFor(Server(1)), JobState::kDone);
}

TEST_F(MemberAnswersOfProgramsTest, ServersDoNotStayForAWorkerThatHangs) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  ASSERT_THAT(Register(Server(1)), IsOk());
  status_.SetState(JobState::kDone, "", now_);
  now_ += kLastPulls - absl::Milliseconds(1);
  EXPECT_EQ(StateFor(Server(1)), JobState::kFinishing);
  now_ += absl::Milliseconds(1);
  EXPECT_EQ(StateFor(Server(1)), JobState::kDone);
}

class MemberAnswersOfMirrorsTest : public MemberAnswersOfProgramsTest {
 protected:
  MemberAnswersOfMirrorsTest()
      : MemberAnswersOfProgramsTest(
            {.kind = StrategyKind::kMultiWorkerMirrored}) {}
};

// It may have been told to end with its worker, and waits for the word for a
// second only.
TEST_F(MemberAnswersOfMirrorsTest, AMirrorStaysForItsOwnWorkerAlone) {
  ASSERT_THAT(Register(Worker(1, 0)), IsOk());
  ASSERT_THAT(Register(Worker(1, 1)), IsOk());
  ASSERT_THAT(Register(Server(1)), IsOk());
  status_.SetState(JobState::kDone, "", now_);
  EXPECT_EQ(StateFor(Server(1)), JobState::kFinishing);

  ASSERT_THAT(answers_.Leave(Worker(1, 0), LeaveCause::kDone, "done",
                             std::nullopt, now_),
              IsOk());
  EXPECT_EQ(StateFor(Server(1)), JobState::kDone);
}

// No program of the user has values then.
TEST_F(MemberAnswersTest, ServersOfABuiltInModelHearOfTheEndAtOnce) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  ASSERT_THAT(Register(Server(1)), IsOk());
  status_.SetState(JobState::kDone, "", now_);
  const auto heard = Hear(Server(1));
  ASSERT_THAT(heard, IsOk());
  EXPECT_EQ(heard->job.state, JobState::kDone);
}

TEST_F(MemberAnswersTest, OlderOfTwoProcessesMustNotComeBack) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  EXPECT_THAT(Register(Worker(2)), StatusIs(Code::kUnavailable));
  Bury();
  ASSERT_THAT(Register(Worker(2)), IsOk());
  EXPECT_THAT(Hear(Worker(1)),
              StatusIs(Code::kAlreadyExists, HasSubstr("task of its own")));
}

TEST_F(MemberAnswersTest, HeartbeatTellsTheStateOfTheJob) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  status_.StartTraining(3, now_);
  const auto heard = Hear(Worker(1));
  ASSERT_THAT(heard, IsOk());
  EXPECT_EQ(heard->job.state, JobState::kTraining);
  EXPECT_EQ(heard->job.global_step, 3);
}

TEST_F(MemberAnswersTest, ServersAreAskedForTheModelIfNoWorkerDescribesIt) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  ASSERT_THAT(Register(Server(1)), IsOk());
  EXPECT_TRUE(Hear(Worker(1)).value().model_wanted);
  EXPECT_FALSE(Hear(Server(1)).value().model_wanted);

  now_ += MemberAnswers::kWorkersDescribe + absl::Milliseconds(1);
  EXPECT_TRUE(Hear(Server(1)).value().model_wanted);

  ASSERT_THAT(answers_.CheckDescribes(Server(1), now_), IsOk());
  ASSERT_THAT(
      answers_.Describe({{"w", {8}, DType::kFloat32, {}}}, std::nullopt, 0),
      IsOk());
  EXPECT_FALSE(Hear(Server(1)).value().model_wanted);
  EXPECT_FALSE(Hear(Worker(1)).value().model_wanted);
}

TEST_F(MemberAnswersTest, OnlyMembersWithAModelDescribeIt) {
  EXPECT_THAT(answers_.CheckDescribes(Worker(1), now_),
              StatusIs(Code::kUnavailable));
  const Sender evaluator = {kJobId, {TaskType::kEvaluator, 0}, 1};
  ASSERT_THAT(Register(evaluator), IsOk());
  EXPECT_THAT(answers_.CheckDescribes(evaluator, now_),
              StatusIs(Code::kInvalidArgument, HasSubstr("evaluator")));
  EXPECT_THAT(answers_.Describe({}, std::nullopt, 0),
              StatusIs(Code::kInvalidArgument));
  EXPECT_THAT(status_.variables(), IsEmpty());
}

TEST_F(MemberAnswersTest, CauseThatThisJobCannotHaveIsNotBelieved) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  ASSERT_THAT(
      answers_.Leave(Worker(1), LeaveCause::kEndOfInput, "bye", {}, now_),
      IsOk());
  EXPECT_EQ(CauseOfDeath(), LeaveCause::kStopped);
}

JobConfig JobWithAnEnd() {
  JobConfig job = JobOfTwo();
  job.data.epochs = 1;
  job.model.row_limit = 100;
  return job;
}

class JobWithAnEndTest : public MemberAnswersTest {
 protected:
  JobWithAnEndTest() : MemberAnswersTest(JobWithAnEnd()) {}
};

TEST_F(JobWithAnEndTest, CauseIsBelieved) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  ASSERT_THAT(answers_.Leave(Worker(1), LeaveCause::kNoRoom, "full", {}, now_),
              IsOk());
  EXPECT_EQ(CauseOfDeath(), LeaveCause::kNoRoom);
}

// The servers have to know it before the chief says that it does.
TEST_F(JobWithAnEndTest, EndOfTheInputIsBelieved) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  EXPECT_THAT(
      answers_.Leave(Worker(1), LeaveCause::kEndOfInput, "end", {}, now_),
      StatusIs(Code::kUnavailable));
  EXPECT_EQ(CauseOfDeath(), LeaveCause::kEndOfInput);
}

// The limit of a table is the program's then, and not in the job file.
TEST_F(MemberAnswersTest, FullTableOfAProgramIsBelieved) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  ASSERT_THAT(answers_.Describe(
                  {{.name = "t", .shape = {100, 2}, .row_cut = RowCut::kKey}},
                  std::nullopt, 0),
              IsOk());
  ASSERT_THAT(answers_.Leave(Worker(1), LeaveCause::kNoRoom, "full", {}, now_),
              IsOk());
  EXPECT_EQ(CauseOfDeath(), LeaveCause::kNoRoom);
}

JobConfig JobOfAProgram() {
  JobConfig job = JobOfTwo();
  job.model.kind = kExternalModel;
  job.learning_rate.base = 0.1;
  return job;
}

class JobOfAProgramTest : public MemberAnswersTest {
 protected:
  JobOfAProgramTest() : MemberAnswersTest(JobOfAProgram()) {
    settings_.Open(InitialSettings(JobOfAProgram()));
  }
};

// The program's types are not in the job file.
TEST_F(JobOfAProgramTest, DescribedTypesBoundTheRatesOfOperators) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  ASSERT_THAT(
      answers_.Describe({{"w", {2}, DType::kFloat16, {}}}, std::nullopt, 0),
      IsOk());
  EXPECT_THAT(settings_.Change({.learning_rate = 1e-8}).status(),
              StatusIs(Code::kInvalidArgument, HasSubstr("float16")));
  EXPECT_THAT(settings_.Change({.learning_rate = 1e-3}).status(), IsOk());
}

JobConfig ElasticJob() {
  JobConfig job = JobOfTwo();
  job.elastic_workers = true;
  return job;
}

class ElasticAnswersTest : public MemberAnswersTest {
 protected:
  ElasticAnswersTest() : MemberAnswersTest(ElasticJob()) {
    settings_.Open(InitialSettings(ElasticJob()));
    status_.StartTraining(0, now_);
  }
};

TEST_F(ElasticAnswersTest, ShareOfAnotherSetMustBeGivenAnew) {
  ASSERT_THAT(Register(Worker(1)), IsOk());
  MemberAnswers::Heartbeat heartbeat;
  heartbeat.sender = Worker(1);
  heartbeat.protocol = kProtocol;
  heartbeat.workers = {0, 1};
  EXPECT_THAT(answers_.Hear(heartbeat, now_), IsOk());
  heartbeat.workers = {0, 1, 2};
  EXPECT_THAT(answers_.Hear(heartbeat, now_), StatusIs(Code::kAborted));
}

TEST_F(ElasticAnswersTest, RemovedWorkerIsToldToLeaveAndNotLetIn) {
  ASSERT_THAT(Register(Worker(1, 1)), IsOk());
  EXPECT_FALSE(Hear(Worker(1, 1)).value().leave);
  SettingsChange change;
  change.remove_worker = 1;
  ASSERT_THAT(settings_.Change(change), IsOk());
  EXPECT_TRUE(Hear(Worker(1, 1)).value().leave);

  settings_.Leave(1);
  MemberAnswers::Registration again = Of(Worker(2, 1));
  again.again = true;
  const auto registered = answers_.Register(again, now_);
  ASSERT_THAT(registered, IsOk());
  EXPECT_THAT(registered->taken_out, HasSubstr("out of the job"));
}

}  // namespace
}  // namespace lockstep::chief
