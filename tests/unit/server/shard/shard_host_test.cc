#include "server/shard/shard_host.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/shard_host_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

const TaskId kWorker1{TaskType::kWorker, 1};

using ShardHostTest = ShardHostFixture;

TEST_F(ShardHostTest, CallsAreRefusedBeforeTheJobIsKnown) {
  ShardHost host({.task_index = 2, .incarnation = 5, .state_dir = ""});
  const auto unavailable = StatusIs(absl::StatusCode::kUnavailable);

  EXPECT_THAT(host.TakeEpoch("job"), unavailable);
  EXPECT_THAT(host.CheckChief("job", 1), unavailable);
  EXPECT_THAT(host.Admit("job", kWorker1, 1), unavailable);
}

TEST_F(ShardHostTest, CallsAreRefusedAfterTheEnd) {
  ASSERT_OK(host_.FollowChief("job", 3));
  CreateActive();
  const auto ended =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has ended"));

  host_.Close(absl::UnavailableError("this ps has ended"));

  EXPECT_THAT(host_.TakeEpoch("job"), ended);
  EXPECT_THAT(host_.FollowChief("job", 4), ended);
  EXPECT_THAT(host_.CheckChief("job", 3), ended);
  EXPECT_THAT(host_.Admit("job", kWorker1, 1), ended);
}

TEST_F(ShardHostTest, AnotherJobIsRefusedByName) {
  const auto refused =
      StatusIs(absl::StatusCode::kFailedPrecondition,
               AllOf(HasSubstr("\"other\""), HasSubstr("ps 2 belongs to \"job"),
                     HasSubstr("TF_CONFIG")));

  EXPECT_THAT(host_.TakeEpoch("other"), refused);
  EXPECT_THAT(host_.CheckChief("other", 1), refused);
  EXPECT_THAT(host_.Admit("other", kWorker1, 1), refused);
}

TEST_F(ShardHostTest, ChiefAloneSteersServers) {
  EXPECT_OK(host_.CheckIsChief({TaskType::kChief, 0}));
  for (const TaskId& other :
       {kWorker1, TaskId{TaskType::kWorker, 0}, TaskId{TaskType::kPs, 0},
        TaskId{TaskType::kChief, 1}, TaskId{TaskType::kEvaluator, 0}}) {
    EXPECT_THAT(host_.CheckIsChief(other),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         AllOf(HasSubstr("by chief 0 alone"),
                               HasSubstr(other.ToString()))));
  }

  const ShardHost hosted({.state_dir = "", .chief = {TaskType::kWorker, 0}});
  EXPECT_OK(hosted.CheckIsChief({TaskType::kWorker, 0}));
  EXPECT_THAT(hosted.CheckIsChief(kWorker1),
              StatusIs(absl::StatusCode::kPermissionDenied));
}

TEST_F(ShardHostTest, MeansOfServersThatTheClusterLacksAreRefused) {
  const ShardHost host({.state_dir = "", .num_servers = 2});
  parts_.push_back({0, 4, 4, DType::kFloat32});
  parts_[1].reducer = 1;
  EXPECT_OK(host.CheckMirrors({}, parts_));

  parts_[1].reducer = 2;
  EXPECT_THAT(host.CheckMirrors({}, parts_),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("ps 2"), HasSubstr("has only 2"),
                             HasSubstr("the same cluster"))));
}

TEST_F(ShardHostTest, MirrorsOfAnElasticJobNeedAStateFile) {
  JobConfig job;
  job.elastic_workers = true;
  job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
  const ShardHost in_memory({.state_dir = ""});
  EXPECT_THAT(in_memory.CheckMirrors(job, parts_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("--state_dir")));
  EXPECT_OK(ShardHost({.state_dir = "/dev/shm/x"}).CheckMirrors(job, parts_));
  job.elastic_workers = false;
  EXPECT_OK(in_memory.CheckMirrors(job, parts_));
}

TEST_F(ShardHostTest, EpochThatAChiefHasTakenIsAnsweredAgain) {
  ASSERT_THAT(host_.TakeEpoch("job", 0, /*chief=*/7), IsOkAndHolds(1));
  ASSERT_OK(host_.FollowChief("job", 2, 7));  // as ps task 0 has answered

  EXPECT_THAT(host_.TakeEpoch("job", 0, 7), IsOkAndHolds(2));
  EXPECT_OK(host_.CheckChief("job", 2, 7));

  EXPECT_THAT(host_.TakeEpoch("job", 2, 7), IsOkAndHolds(3));
  EXPECT_THAT(host_.TakeEpoch("job", 0, /*chief=*/8), IsOkAndHolds(4));
}

TEST_F(ShardHostTest, ChiefThatHungWhileItsSuccessorBeganTakesNoEpoch) {
  // Its news of workers are older than the settings that its successor opened.
  ASSERT_THAT(host_.TakeEpoch("job", 0, /*chief=*/8), IsOkAndHolds(1));

  EXPECT_THAT(host_.TakeEpoch("job", 5, /*chief=*/7),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("started later has taken epoch 1")));

  EXPECT_OK(host_.CheckChief("job", 1, 8));
  EXPECT_THAT(host_.TakeEpoch("job", 1, /*chief=*/9), IsOkAndHolds(2));
}

TEST_F(ShardHostTest, ChiefOfAnEpochThatAnotherHasTakenIsFencedOff) {
  // This server has lost its state, and so counts from 1 again.
  ASSERT_THAT(host_.TakeEpoch("job", 0, /*chief=*/8), IsOkAndHolds(1));

  EXPECT_THAT(host_.CheckChief("job", 1, /*chief=*/7),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("another chief")));

  EXPECT_OK(host_.CheckChief("job", 1, 8));
}

TEST_F(ShardHostTest, OlderChiefIsFencedOff) {
  EXPECT_OK(host_.FollowChief("job", 3));
  EXPECT_OK(host_.CheckChief("job", 3));
  EXPECT_OK(host_.FollowChief("job", 4));

  EXPECT_THAT(host_.CheckChief("job", 3),
              StatusIs(absl::StatusCode::kAborted,
                       HasSubstr("a newer chief has epoch 4")));
  EXPECT_THAT(host_.CheckChief("job", 0), StatusIs(absl::StatusCode::kAborted));
  EXPECT_OK(host_.CheckChief("job", 4));
}

TEST_F(ShardHostTest, NewerEpochIsFollowedWhereItsRoundBegins) {
  // The server has lost its state, and the epoch of a chief that hung then.
  ASSERT_OK(host_.FollowChief("job", 1, /*chief=*/8));

  EXPECT_THAT(host_.CheckChief("job", 2, /*chief=*/7),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("ps 2 is in epoch 1"),
                             HasSubstr("chief of epoch 2"))));

  EXPECT_OK(host_.CheckChief("job", 1, 8));
  ASSERT_OK(host_.FollowChief("job", 2, 7));
  EXPECT_THAT(host_.CheckChief("job", 1, 8),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(host_.FollowChief("job", 1, 8),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_OK(host_.CheckChief("job", 2, 7));
}

TEST_F(ShardHostTest, RestartedServerWantsANewEpochFromEveryChief) {
  // Chief 7 drew epoch 3 here, and chief 8 its own epoch 3 elsewhere.
  LeaveState(3);
  host_.SetJobId("job");

  EXPECT_THAT(host_.FollowChief("job", 3, /*chief=*/8),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("has to take a newer one")));

  EXPECT_THAT(host_.TakeEpoch("job", 3, 7), IsOkAndHolds(4));
  EXPECT_OK(host_.FollowChief("job", 4, 7));
}

TEST_F(ShardHostTest, ChiefWithoutAnEpochIsNoChief) {
  EXPECT_THAT(host_.FollowChief("job", 0),
              StatusIs(absl::StatusCode::kAborted));
  EXPECT_THAT(host_.CheckChief("job", 0), StatusIs(absl::StatusCode::kAborted));
}

TEST_F(ShardHostTest, WorkersAreAdmittedOnceTheShardIsOpen) {
  const auto closed =
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has no values yet"));
  EXPECT_THAT(host_.shard(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(host_.Admit("job", kWorker1, 1), closed);
  ASSERT_OK(Create());
  EXPECT_OK(host_.shard());
  EXPECT_THAT(host_.Admit("job", kWorker1, 1), closed);

  ASSERT_OK((*host_.shard())->Activate(0, {}));

  EXPECT_THAT(host_.Admit("job", kWorker1, 1), IsOkAndHolds(*host_.shard()));
}

TEST_F(ShardHostTest, ExpiredIncarnationsAreHeardNoMore) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  host_.ExpireWorker(1, 7);
  host_.ExpireWorker(1, 6);

  for (uint64_t incarnation : {1, 6, 7}) {
    EXPECT_THAT(host_.Admit("job", kWorker1, incarnation),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("taken for dead")));
  }

  EXPECT_OK(host_.Admit("job", kWorker1, 8));
  EXPECT_OK(host_.Admit("job", TaskId{TaskType::kWorker, 0}, 7));
}

TEST_F(ShardHostTest, WorkerThatIsShutOutIsHeardOnceItsIncarnationIsKnown) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  ASSERT_OK(host_.FollowChief("job", 3));
  host_.KeepStandings({{1, 0}});
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("when the job went back"));
  EXPECT_THAT(host_.Admit("job", kWorker1, 1000), refused);
  EXPECT_OK(host_.Admit("job", TaskId{TaskType::kWorker, 0}, 1));

  host_.ExpireWorker(1, 0);  // of which nothing is known
  EXPECT_THAT(host_.Admit("job", kWorker1, 1000), refused);
  host_.ExpireWorker(1, 7);
  host_.KeepStandings({{1, 0}});  // was delayed

  EXPECT_THAT(host_.Admit("job", kWorker1, 7),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(host_.Admit("job", kWorker1, 8));
}

TEST_F(ShardHostTest, DataOfAnEarlierRunIsNotUsedUpForOneThatBeginsAnew) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  ASSERT_OK(host_.FollowChief("job", 3));
  const WorkerStanding ended = {.worker = 0, .input_ended = true};
  host_.KeepStandings({ended});
  host_.KeepStandings({{1, 0}});
  EXPECT_EQ(host_.Standings(), (std::vector<WorkerStanding>{{1, 0}}));

  host_.KeepStandings({ended});
  host_.KeepStandings({{1, 0}});  // was delayed

  EXPECT_EQ(host_.Standings(), (std::vector<WorkerStanding>{ended, {1, 0}}));
}

TEST_F(ShardHostTest, RestartedServerKnowsTheExpiredIncarnations) {
  {
    ShardHost killed(
        {.task_index = 2, .incarnation = 4, .state_dir = temp_dir_.path()});
    killed.SetJobId("job");
    ASSERT_OK(killed.FollowChief("job", 3));
    const auto shard = killed.Create(job_, variables_, parts_);
    ASSERT_OK(shard);
    ASSERT_OK((*shard)->Activate(0, {}));
    killed.ExpireWorker(1, 7);
    killed.KeepStandings({{0, 0}});
  }
  ASSERT_OK(host_.TakeEpoch("job", /*newer_than=*/3));
  const auto shard = Create();
  ASSERT_OK(shard);
  ASSERT_OK((*shard)->Activate(0, {}));

  EXPECT_THAT(host_.Admit("job", kWorker1, 7),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("taken for dead")));
  EXPECT_OK(host_.Admit("job", kWorker1, 8));
  EXPECT_THAT(host_.Admit("job", TaskId{TaskType::kWorker, 0}, 9),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("when the job went back")));
}

TEST_F(ShardHostTest, FencesOutliveStateThatIsDiscarded) {
  ASSERT_OK(host_.FollowChief("job", 3));
  ASSERT_NO_FATAL_FAILURE(CreateActive());
  host_.ExpireWorker(1, 7);

  const auto shard =
      host_.Create(job_, variables_, parts_, ShardHost::Keep::kNothing);
  ASSERT_OK(shard);
  ASSERT_OK((*shard)->Activate(0, {}));

  EXPECT_THAT(host_.Admit("job", kWorker1, 7),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(ShardHostTest, RepeatedCreateGivesTheSameShard) {
  const auto first = Create();
  ASSERT_OK(first);

  EXPECT_THAT(Create(), IsOkAndHolds(*first));
}

TEST_F(ShardHostTest, ShardOfAnotherLayoutIsRefused) {
  const auto shard = Create();
  ASSERT_OK(shard);
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                HasSubstr("of another layout"));

  parts_[0].count = 2;
  EXPECT_THAT(Create(), refused);
  parts_[0].count = 4;
  variables_[0].name = "v";
  EXPECT_THAT(Create(), refused);
  variables_[0].name = "w";
  job_.replicas_to_aggregate = 1;
  EXPECT_THAT(Create(), refused);
  job_.replicas_to_aggregate = 2;

  EXPECT_THAT(Create(), IsOkAndHolds(*shard));
}

TEST_F(ShardHostTest, OpenShardIsFoundAgain) {
  ASSERT_NO_FATAL_FAILURE(CreateActive());

  EXPECT_THAT(Create(), IsOkAndHolds(*host_.shard()));
  EXPECT_TRUE((*host_.shard())->active());
}

TEST_F(ShardHostTest, FailedCreateLeavesRoomForAnother) {
  parts_[0].count = 100;
  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(host_.shard(), StatusIs(absl::StatusCode::kUnavailable));

  parts_[0].count = 4;
  EXPECT_OK(Create());
}

TEST_F(ShardHostTest, ShardOutlivesTheHostForItsHolder) {
  auto host = std::make_unique<ShardHost>(ShardHost::Options{
      .task_index = 0, .incarnation = 1, .state_dir = temp_dir_.path()});
  host->SetJobId("job");
  const auto shard = host->Create(job_, variables_, parts_);
  ASSERT_OK(shard);

  host.reset();

  EXPECT_OK((*shard)->Activate(0, {}));
}

}  // namespace
}  // namespace lockstep::server
