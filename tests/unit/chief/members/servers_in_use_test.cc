#include "chief/members/servers_in_use.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::chief {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kLease = absl::Seconds(10);

JobConfig ElasticMirrors() {
  JobConfig job;
  job.total_num_replicas = job.replicas_to_aggregate = 3;
  job.elastic_workers = true;
  job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
  job.lease = kLease;
  return job;
}

TaskId Ps(int index) { return {TaskType::kPs, index}; }

ServerReport WithState() {
  ServerReport report;
  report.committed_step = 4;
  return report;
}

ServerReport NotAsked() {
  ServerReport report;
  report.takes_part = false;
  return report;
}

class ServersInUseTest : public ::testing::Test {
 protected:
  void Come(const std::vector<int>& servers) {
    for (const int server : servers) {
      ASSERT_OK(members_.Register(Ps(server), ++incarnation_, now_));
    }
  }

  // Its lease ends.
  void Die(int server) {
    now_ += kLease + absl::Seconds(1);
    for (const int other : {0, 1, 2}) {
      const auto member = members_.Get(Ps(other));
      if (other == server || member.incarnation == 0) continue;
      members_.Heartbeat(Ps(other), member.incarnation, nullptr, now_)
          .IgnoreError();
    }
    for (const auto& dead : members_.TakeDead(now_)) {
      members_.Buried(dead.task, dead.incarnation);
    }
  }

  void Open() {
    Come({0, 1, 2});
    servers_.OnFound({ServerReport(), ServerReport(), ServerReport()});
    servers_.OnOpened();
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  uint64_t incarnation_ = 0;
  JobConfig job_ = ElasticMirrors();
  MembershipTable members_{{Ps(0), Ps(1), Ps(2)}, kLease};
  ServersInUse servers_{job_, members_};
};

TEST_F(ServersInUseTest, AllTakePartInAJobThatIsNotElastic) {
  job_.elastic_workers = false;
  ServersInUse servers(job_, members_);
  Come({0, 1});
  servers.SetWorkers({0});

  EXPECT_THAT(servers.Needed(), ElementsAre(0, 1, 2));
  EXPECT_THAT(servers.Away(), ElementsAre(Ps(2)));
  EXPECT_THAT(servers.GiveUp(now_, now_ + absl::Hours(1)), IsEmpty());
  EXPECT_FALSE(servers.may_change());
}

TEST_F(ServersInUseTest, AnyJobOfMirrorsMakesNoStepsWithoutThoseAway) {
  job_.elastic_workers = false;
  ServersInUse servers(job_, members_);
  Come({0, 1, 2});
  servers.EndSteps();
  EXPECT_FALSE(servers.may_change());  // the state may be elsewhere
  servers.OnOpened();
  Die(1);

  servers.EndSteps();

  EXPECT_THAT(servers.GiveUp(now_, now_, /*at_once=*/true), ElementsAre(1));
  EXPECT_THAT(servers.ForRound(), ElementsAre(0, 2));
  EXPECT_FALSE(servers.CanMakeSteps());
  servers.BeginStepsAgain();
  EXPECT_TRUE(servers.CanMakeSteps());
  EXPECT_THAT(servers.Needed(), ElementsAre(0, 1, 2));
  EXPECT_THAT(servers.GiveUp(now_, now_, /*at_once=*/true), IsEmpty());
}

TEST_F(ServersInUseTest, ServersThatAreNoMirrorsAreAllNeededAtTheEnd) {
  job_.elastic_workers = false;
  job_.strategy.kind = StrategyKind::kParameterServer;
  ServersInUse servers(job_, members_);
  Come({0, 1, 2});
  servers.OnOpened();
  servers.EndSteps();
  Die(1);

  EXPECT_THAT(servers.GiveUp(now_, now_, /*at_once=*/true), IsEmpty());
}

TEST_F(ServersInUseTest, MirrorsOfTheWorkersTakePart) {
  servers_.SetWorkers({0, 2});

  EXPECT_THAT(servers_.Needed(), ElementsAre(0, 2));
  EXPECT_FALSE(servers_.TakesPart(1));
}

TEST_F(ServersInUseTest, MirrorThatCommitsTakesPartWithoutItsWorker) {
  servers_.SetWorkers({1, 2});

  EXPECT_THAT(servers_.Needed(), ElementsAre(0, 1, 2));
}

TEST_F(ServersInUseTest, MirrorIsGivenUpAfterALease) {
  Open();
  Die(1);
  const absl::Time since = now_;

  EXPECT_THAT(servers_.Away(), ElementsAre(Ps(1)));
  EXPECT_THAT(servers_.GiveUp(since, now_ + absl::Seconds(9)), IsEmpty());
  EXPECT_THAT(servers_.GiveUp(since, now_ + kLease), ElementsAre(1));

  EXPECT_THAT(servers_.Away(), IsEmpty());
  EXPECT_THAT(servers_.ForRound(), ElementsAre(0, 2));
  EXPECT_TRUE(servers_.HasGivenUpOneOf({0, 1, 2}));
  EXPECT_FALSE(servers_.HasGivenUpOneOf({0, 2}));
}

TEST_F(ServersInUseTest, MirrorThatHasLeftIsGivenUpAtOnce) {
  Open();
  ASSERT_OK(members_.Leave(Ps(2), members_.Get(Ps(2)).incarnation,
                           LeaveCause::kStopped, "bye", nullptr, now_));

  EXPECT_THAT(servers_.GiveUp(now_, now_), ElementsAre(2));
}

TEST_F(ServersInUseTest, AllThatAreAwayAreGivenUpAtOnceIfNeedBe) {
  Open();
  Die(1);

  EXPECT_THAT(servers_.GiveUp(now_, now_), IsEmpty());
  EXPECT_THAT(servers_.GiveUp(now_, now_, /*at_once=*/true), ElementsAre(1));
}

TEST_F(ServersInUseTest, TimeAtWhichAllAreGivenUpIsKnown) {
  Open();
  Die(1);
  const absl::Time since = now_ + absl::Seconds(1);
  EXPECT_EQ(servers_.AllGivenUpAt(since), since + kLease);

  Die(0);
  EXPECT_EQ(servers_.AllGivenUpAt(since), absl::InfiniteFuture());
  EXPECT_THAT(servers_.GiveUp(now_, now_, /*at_once=*/true), IsEmpty());
}

TEST_F(ServersInUseTest, NoMirrorIsGivenUpWhileTheOneThatCommitsIsAway) {
  Open();
  Die(1);
  Die(0);

  EXPECT_THAT(servers_.GiveUp(now_, now_ + absl::Hours(1)), IsEmpty());
}

TEST_F(ServersInUseTest, MirrorThatIsBackTakesPartAgain) {
  Open();
  Die(1);
  ASSERT_THAT(servers_.GiveUp(now_, now_ + kLease), SizeIs(1));
  EXPECT_FALSE(servers_.IsOneBack());

  Come({1});
  EXPECT_TRUE(servers_.IsOneBack());
  EXPECT_THAT(servers_.TakeBack(), ElementsAre(1));

  EXPECT_THAT(servers_.ForRound(), ElementsAre(0, 1, 2));
}

TEST_F(ServersInUseTest, GivenUpMirrorIsForgottenWithItsWorker) {
  Open();
  Die(1);
  ASSERT_THAT(servers_.GiveUp(now_, now_ + kLease), SizeIs(1));

  servers_.SetWorkers({0, 2});
  EXPECT_THAT(servers_.given_up(), IsEmpty());
  servers_.SetWorkers({0, 1, 2});

  EXPECT_THAT(servers_.Needed(), ElementsAre(0, 1, 2));
}

TEST_F(ServersInUseTest, NoMirrorIsGivenUpWhileTheStateMayBeElsewhere) {
  Open();
  Die(1);
  ASSERT_THAT(servers_.GiveUp(now_, now_ + kLease), SizeIs(1));

  servers_.OnStateElsewhere();

  EXPECT_THAT(servers_.Away(), ElementsAre(Ps(1)));
  EXPECT_THAT(servers_.GiveUp(now_, now_ + absl::Hours(1)), IsEmpty());
  servers_.OnOpened();
  EXPECT_THAT(servers_.GiveUp(now_, now_ + absl::Hours(1)), ElementsAre(1));
}

TEST_F(ServersInUseTest, MirrorThatComesMayHaveTheStateThatWasElsewhere) {
  Open();
  Die(1);
  Die(2);
  ASSERT_THAT(servers_.GiveUp(now_, now_ + kLease), ElementsAre(1, 2));
  servers_.OnStateElsewhere();
  ASSERT_EQ(servers_.AllGivenUpAt(now_), absl::InfiniteFuture());

  Come({1});
  EXPECT_THAT(servers_.GiveUp(now_, now_ + kLease), ElementsAre(2));
  EXPECT_THAT(servers_.ForRound(), ElementsAre(0, 1));
  EXPECT_TRUE(servers_.HasGivenUpOneOf({0, 1, 2}));

  // It has not.
  servers_.OnStateElsewhere();
  EXPECT_THAT(servers_.Away(), ElementsAre(Ps(2)));
  EXPECT_THAT(servers_.GiveUp(now_, now_ + absl::Hours(1)), IsEmpty());
}

TEST_F(ServersInUseTest, FirstRoundComesWithoutMirrorsThatHaveHadALease) {
  Come({0, 1});

  EXPECT_THAT(servers_.AwayAtFirst(now_, now_), ElementsAre(Ps(2)));
  EXPECT_THAT(servers_.AwayAtFirst(now_, now_ + kLease), IsEmpty());
  EXPECT_THAT(servers_.Away(), IsEmpty());
  EXPECT_THAT(servers_.ForRound(), ElementsAre(0, 1));
}

TEST_F(ServersInUseTest, FirstRoundNeedsTheMirrorThatCommits) {
  Come({1, 2});

  EXPECT_THAT(servers_.AwayAtFirst(now_, now_ + absl::Hours(1)),
              ElementsAre(Ps(0)));
  EXPECT_THAT(servers_.Away(), ElementsAre(Ps(0)));
}

TEST_F(ServersInUseTest, JobThatStartsNeedsAll) {
  Come({0, 1});

  EXPECT_FALSE(servers_.OnFound({ServerReport(), ServerReport(), NotAsked()}));

  EXPECT_TRUE(servers_.AwaitsAll());
  EXPECT_THAT(servers_.AwayAtFirst(now_, now_ + absl::Hours(1)),
              ElementsAre(Ps(2)));
  EXPECT_THAT(servers_.GiveUp(now_, now_ + absl::Hours(1)), IsEmpty());
}

TEST_F(ServersInUseTest, JobThatBeginsAnewNeedsAll) {
  ServersInUse servers(job_, members_, /*anew=*/true);
  Come({0, 1});

  EXPECT_THAT(servers.AwayAtFirst(now_, now_ + absl::Hours(1)),
              ElementsAre(Ps(2)));
}

TEST_F(ServersInUseTest, StateOfTheMirrorThatCommitsIsTheLastWord) {
  Come({0, 1});
  ASSERT_TRUE(servers_.OnFound({WithState(), ServerReport(), NotAsked()}));
  servers_.SetWorkers({0, 1, 2});

  EXPECT_THAT(servers_.Away(), ElementsAre(Ps(2)));
  EXPECT_THAT(servers_.GiveUp(now_, now_ + kLease), ElementsAre(2));
  EXPECT_THAT(servers_.Away(), IsEmpty());
}

TEST_F(ServersInUseTest, StateOfAnotherMirrorIsNotTheLastWord) {
  Come({0, 1});
  ASSERT_TRUE(servers_.OnFound({ServerReport(), WithState(), NotAsked()}));
  servers_.SetWorkers({0, 1, 2});

  EXPECT_THAT(servers_.GiveUp(now_, now_ + absl::Hours(1)), IsEmpty());
  EXPECT_THAT(servers_.Away(), ElementsAre(Ps(2)));
}

TEST_F(ServersInUseTest, AnotherMirrorThatComesMayKnowMore) {
  MembershipTable members({Ps(0), Ps(1), Ps(2), Ps(3)}, kLease);
  job_.total_num_replicas = 4;
  ServersInUse servers(job_, members);
  ASSERT_OK(members.Register(Ps(0), 1, now_));
  ASSERT_OK(members.Register(Ps(1), 1, now_));
  ASSERT_TRUE(
      servers.OnFound({ServerReport(), WithState(), NotAsked(), NotAsked()}));
  servers.SetWorkers({0, 1, 2});
  ASSERT_THAT(servers.Away(), ElementsAre(Ps(2)));

  ASSERT_OK(members.Register(Ps(3), 1, now_));

  EXPECT_THAT(servers.Away(), IsEmpty());
  EXPECT_THAT(servers.ForRound(), ElementsAre(0, 1, 3));
}

}  // namespace
}  // namespace lockstep::chief
