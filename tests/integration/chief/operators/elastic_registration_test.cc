#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "chief/operators/coordinator_service.h"
#include "common/rpc/channel.h"
#include "common/rpc/server.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/call.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Stub = v1::CoordinatorService::Stub;
constexpr auto kUnavailable = absl::StatusCode::kUnavailable;

JobConfig Elastic() {
  JobConfig job;
  job.name = "job";
  job.elastic_workers = true;
  job.train_steps = 100;
  job.batch_size = 1;
  job.replicas_to_aggregate = 2;
  job.total_num_replicas = 3;
  job.data.train_images = "images";
  job.data.train_labels = "labels";
  return job;
}

class ElasticRegistrationTest : public ::testing::Test {
 protected:
  ElasticRegistrationTest() {
    settings_table_.Open(chief::InitialSettings(Elastic()));
    status_table_.SetSettings(chief::InitialSettings(Elastic()), absl::Now());
    auto server = GrpcServer::Start("127.0.0.1:0", {&service_});
    EXPECT_OK(server);
    server_ = *std::move(server);
    stub_ = v1::CoordinatorService::NewStub(
        MakeChannel(absl::StrCat("127.0.0.1:", server_->port())));
  }

  absl::StatusOr<v1::RegisterResponse> Register(int worker,
                                                uint64_t incarnation,
                                                bool again) {
    v1::RegisterRequest request;
    *request.mutable_identity() =
        ToProto(Sender{"job-1", {TaskType::kWorker, worker}, incarnation});
    request.set_protocol_version(kProtocolVersion);
    request.set_again(again);
    return Call(*stub_, &Stub::Register, request);
  }

  // `told`: the workers that a registration named.
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(
      int worker, uint64_t incarnation, const std::vector<int>& told) {
    v1::HeartbeatRequest request;
    *request.mutable_identity() =
        ToProto(Sender{"job-1", {TaskType::kWorker, worker}, incarnation});
    request.set_protocol_version(kProtocolVersion);
    request.mutable_workers()->Add(told.begin(), told.end());
    return Call(*stub_, &Stub::Heartbeat, request);
  }

  chief::MembershipTable members_{{{TaskType::kPs, 0},
                                   {TaskType::kWorker, 0},
                                   {TaskType::kWorker, 1},
                                   {TaskType::kWorker, 2}},
                                  absl::Seconds(2)};
  chief::StatusTable status_table_;
  chief::SettingsTable settings_table_{Elastic()};
  chief::CoordinatorService service_{
      chief::CoordinatorService::Options{"job-1", Elastic(), /*num_workers=*/3,
                                         /*has_evaluator=*/false,
                                         [](const std::string&, bool) {}},
      members_, status_table_, settings_table_, Clock::Real()};
  std::unique_ptr<GrpcServer> server_;
  std::unique_ptr<Stub> stub_;
};

// A chief that was started again learns of the workers that have joined from
// the servers, after some have registered; or another worker joins meanwhile.
TEST_F(ElasticRegistrationTest, ShareOfASetThatWasReplacedIsGivenAnew) {
  const auto first = Register(1, 1, /*again=*/false);
  ASSERT_OK(first);
  EXPECT_EQ(first->num_workers(), 3);
  EXPECT_EQ(first->data_shard(), 1);
  EXPECT_THAT(first->workers(), ElementsAre(0, 1, 2));
  EXPECT_OK(Heartbeat(1, 1, {0, 1, 2}));
  EXPECT_OK(Heartbeat(2, 4, {1, 2})) << "the chief does not know the set yet";

  RunSettings settings = chief::InitialSettings(Elastic());
  settings.workers = {1, 2};
  status_table_.SetSettings(settings, absl::Now());
  status_table_.StartTraining(0, absl::Now());

  const auto again =
      StatusIs(absl::StatusCode::kAborted, HasSubstr("new incarnation"));
  EXPECT_THAT(Heartbeat(1, 1, {0, 1, 2}), again);
  EXPECT_OK(Heartbeat(2, 4, {1, 2}));
  EXPECT_THAT(Heartbeat(2, 4, {0, 1, 2}), again) << "of an earlier chief";
  // The chief's loop buries the start that is replaced.
  EXPECT_THAT(Register(1, 2, /*again=*/true), StatusIs(kUnavailable));
  for (const auto& dead : members_.TakeDead(absl::Now())) {
    members_.Buried(dead.task, dead.incarnation);
  }
  const auto second = Register(1, 2, /*again=*/true);
  ASSERT_OK(second);
  EXPECT_EQ(second->num_workers(), 2);
  EXPECT_EQ(second->data_shard(), 0);
  EXPECT_THAT(second->workers(), ElementsAre(1, 2));
  EXPECT_OK(Heartbeat(1, 2, {1, 2}));
}

TEST_F(ElasticRegistrationTest, WorkerThatWasTakenOutMeanwhileMustEnd) {
  ASSERT_OK(Register(0, 1, /*again=*/false));
  members_.ExpireAll(TaskType::kWorker, "the workers of the job change",
                     Clock::Real().Now());
  v1::ChangeSettingsRequest removal;
  removal.set_remove_worker(0);
  ASSERT_OK(Call(*stub_, &Stub::ChangeSettings, removal));

  const auto answer = Register(0, 2, /*again=*/true);

  ASSERT_OK(answer);
  EXPECT_THAT(answer->taken_out(), HasSubstr("an operator"));
  EXPECT_EQ(settings_table_.wanted().workers, (std::vector<int>{1, 2}));
}

TEST_F(ElasticRegistrationTest, RestartOfADeadWorkerDoesNotUndoItsRemoval) {
  ASSERT_OK(Register(0, 1, /*again=*/false));
  members_.TakeDead(Clock::Real().Now() + absl::Hours(1));
  v1::ChangeSettingsRequest removal;
  removal.set_remove_worker(0);
  ASSERT_OK(Call(*stub_, &Stub::ChangeSettings, removal));

  const auto answer = Register(0, 2, /*again=*/false);

  ASSERT_OK(answer);
  EXPECT_THAT(answer->taken_out(), HasSubstr("an operator"));
  EXPECT_EQ(settings_table_.wanted().workers, (std::vector<int>{1, 2}));
  // Its supervisor lets it rest, so the next process is started on purpose.
  EXPECT_THAT(Register(0, 3, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_EQ(settings_table_.wanted().workers, (std::vector<int>{0, 1, 2}));
}

TEST_F(ElasticRegistrationTest, WorkerThatIsToRegisterAgainIsNotDead) {
  ASSERT_OK(Register(0, 1, /*again=*/false));
  members_.ExpireAll(TaskType::kWorker, "the workers of the job change",
                     Clock::Real().Now());

  const auto status = Call(*stub_, &Stub::GetStatus, v1::GetStatusRequest());

  ASSERT_OK(status);
  EXPECT_EQ(status->members(1).task(), "worker 0");
  EXPECT_EQ(status->members(1).state(), v1::MEMBER_JOINING);
}

TEST_F(ElasticRegistrationTest, NewProcessJoinsInItsPlace) {
  settings_table_.Leave(0);
  members_.SetWorkers({1, 2});

  EXPECT_THAT(Register(0, 3, /*again=*/false), StatusIs(kUnavailable));

  EXPECT_EQ(settings_table_.wanted().workers, (std::vector<int>{0, 1, 2}));
}

TEST_F(ElasticRegistrationTest,
       WorkerForWhichThereAreTooFewExamplesDoesNotJoin) {
  ASSERT_OK(Register(0, 1, /*again=*/false));
  v1::DescribeModelRequest model;
  *model.mutable_identity() =
      ToProto(Sender{"job-1", {TaskType::kWorker, 0}, 1});
  *model.add_variables() = ToProto(VariableSpec{.name = "w", .shape = {2}});
  model.set_num_examples(3);
  ASSERT_OK(Call(*stub_, &Stub::DescribeModel, model));

  EXPECT_THAT(Register(3, 1, /*again=*/false),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("3 examples over 4 workers are 0 each")));
}

TEST_F(ElasticRegistrationTest, LeaveOfAMemberOfTheChiefBeforeCounts) {
  v1::LeaveRequest leave;
  *leave.mutable_identity() =
      ToProto(Sender{"job-1", {TaskType::kWorker, 1}, /*incarnation=*/7});
  leave.set_cause(v1::LEAVE_END_OF_INPUT);

  ASSERT_OK(Call(*stub_, &Stub::Leave, leave));

  for (const chief::MembershipTable::Member& member : members_.Members()) {
    if (member.task != TaskId{TaskType::kWorker, 1}) continue;
    EXPECT_EQ(member.state, chief::MembershipTable::State::kLeft);
    EXPECT_EQ(member.incarnation, 7);
  }
}

TEST_F(ElasticRegistrationTest, WorkerThatJoinsWaitsUntilTheStepBoundary) {
  settings_table_.Leave(0);
  status_table_.SetSettings(settings_table_.wanted(), absl::Now());
  members_.SetWorkers({1, 2});
  EXPECT_THAT(Register(0, 3, /*again=*/false), StatusIs(kUnavailable));
  EXPECT_THAT(Register(0, 3, /*again=*/false), StatusIs(kUnavailable));

  status_table_.SetSettings(settings_table_.wanted(), absl::Now());
  members_.SetWorkers({0, 1, 2});

  const auto answer = Register(0, 3, /*again=*/false);
  ASSERT_OK(answer);
  EXPECT_EQ(answer->data_shard(), 0);
  EXPECT_EQ(answer->num_workers(), 3);
}

}  // namespace
}  // namespace lockstep::testing
