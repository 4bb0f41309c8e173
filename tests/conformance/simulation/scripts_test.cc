// Schedules that a test says, step by step.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/simulation/chief_process.h"
#include "tests/conformance/simulation/script.h"
#include "tests/conformance/simulation/server_process.h"
#include "tests/conformance/simulation/worker_process.h"

namespace lockstep::simulation {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string NameOf(const Options& options) {
  return absl::StrCat(options.replicas_to_aggregate, "of",
                      options.total_num_replicas, "on", options.parts.size(),
                      options.elastic ? "Elastic" : "");
}

// One server alone, two gradients of three workers, no checkpoint: a server
// that loses its state takes the whole job back to its beginning, and no other
// server knows.
class LoneServerTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  LoneServerTest() {
    script_.StartAll();
    script_.Until("all to register", [this] { return AllRegistered(); });
  }

  int place(int worker) { return script_.job().worker_place(worker); }
  bool AllRegistered() {
    for (int at = 1; at < place(3); ++at) {
      if (!script_.chief().IsAlive(script_.job().TaskAt(at))) return false;
    }
    return true;
  }

  // The chief that has replaced another one trains up to a step whose values
  // worker 0 has when it hangs. Then the server loses its
  // state, and that chief is killed before it has seen that.
  void LoseTheStateWhileAWorkerHangs() {
    script_.Until("a gradient of worker 0 that is not pushed yet", [this] {
      step_ = script_.worker(0).computed_step();
      return step_ >= 5 && step_ == script_.job().promises.committed();
    });
    script_.Hang(place(0), absl::Hours(1));
    script_.Kill(place(1));
    script_.Kill(server_, /*loses_state=*/true);
    script_.StartAgain(server_);
    script_.Until("the server to register",
                  [this] { return script_.server(0).IsMember(); });
    script_.Kill(chief_);
  }
  // The older chief opens the server from the beginning, and is killed.
  void LetTheOlderChiefOpenTheServer() {
    script_.WakeOldChief();
    script_.Until("the older chief to open the server",
                  [this] { return script_.server(0).IsOpen(); });
    script_.KillOldChief();
  }
  // A third chief makes the steps again, of the other workers' gradients, until
  // the step at hand needs worker 0.
  void MakeTheStepsAgain() {
    script_.StartAgain(chief_);
    script_.StartAgain(place(1));
    script_.UntilCommitted(step_);
    script_.Kill(place(1));
  }
  // What that worker computed from values that were lost must not count.
  auto LetTheWorkerGoOn() {
    script_.WakeUp(place(0));
    script_.UntilCommitted(step_ + 1);
    script_.StartAgain(place(1));
    return script_.Finish();
  }

  Script script_{Options{2, 3, {1}, /*steps=*/100, /*checkpoint_every=*/1000},
                 /*seed=*/GetParam()};
  const int chief_ = script_.job().chief_place();
  const int server_ = script_.job().server_place(0);
  int64_t step_ = 0;  // whose values the worker that hangs has
};

TEST_P(LoneServerTest, WorkerOfALostHistoryIsShutOutByAChiefThatHasNotTrained) {
  script_.ReplaceChief();
  LoseTheStateWhileAWorkerHangs();
  LetTheOlderChiefOpenTheServer();
  MakeTheStepsAgain();
  EXPECT_THAT(LetTheWorkerGoOn(), IsEmpty());
}

TEST_P(LoneServerTest, WorkerThatAnOlderChiefHasNotHeardOfIsShutOut) {
  script_.UntilCommitted(1);
  script_.ReplaceChief();
  for (int worker : {0, 1}) {
    script_.Kill(place(worker));
    script_.StartAgain(place(worker));
  }
  LoseTheStateWhileAWorkerHangs();
  LetTheOlderChiefOpenTheServer();
  MakeTheStepsAgain();
  EXPECT_THAT(LetTheWorkerGoOn(), IsEmpty());
}

// Two gradients of three workers, whose data end one after the other.
class EndOfInputTest : public ::testing::Test {
 protected:
  EndOfInputTest() {
    script_.job().input_ends[0] = 3;
    script_.StartAll();
  }

  int place(int worker) { return script_.job().worker_place(worker); }
  void UntilItHasLeft(int worker) {
    script_.Until("a worker to use up its data",
                  [=, this] { return !script_.IsThere(place(worker)); });
  }
  void RestartTheChief() {
    script_.Kill(chief_);
    script_.StartAgain(chief_);
  }

  Script script_{Options{2, 3, {2, 1}, /*steps=*/15}};
  const int chief_ = script_.job().chief_place();
};

TEST_F(EndOfInputTest, RestartedChiefKnowsWhichWorkersHaveLeft) {
  script_.job().input_ends[1] = 8;
  script_.UntilCommitted(4);
  script_.Kill(place(2));  // so that the job stands still
  UntilItHasLeft(0);
  RestartTheChief();
  script_.StartAgain(place(2));
  EXPECT_THAT(script_.Finish(), IsEmpty());
  EXPECT_EQ(script_.job().promises.committed(), 8);
}

TEST_F(EndOfInputTest, RestartedChiefIsToldWhileItGathers) {
  script_.job().input_ends[1] = 8;
  script_.UntilCommitted(3);
  script_.Kill(script_.job().server_place(1));
  script_.Kill(place(2));
  RestartTheChief();
  script_.For(absl::Seconds(2));
  script_.StartAgain(script_.job().server_place(1));
  UntilItHasLeft(0);
  RestartTheChief();
  script_.StartAgain(place(2));
  EXPECT_THAT(script_.Finish(), IsEmpty());
}

TEST_F(EndOfInputTest, ServersDescribeTheModelOnceAllWorkersHaveLeft) {
  script_.job().input_ends = {{0, 3}, {1, 3}, {2, 3}};
  script_.UntilCommitted(3);
  for (int worker : {0, 1, 2}) UntilItHasLeft(worker);
  RestartTheChief();
  EXPECT_THAT(script_.Finish(), IsEmpty());
  EXPECT_EQ(script_.job().promises.committed(), 3);
}

// Two gradients of two workers, and a third worker may join.
class ElasticTest : public ::testing::Test {
 protected:
  ElasticTest() { script_.StartAll(); }

  int place(int worker) { return script_.job().worker_place(worker); }
  void LetTheThirdWorkerIn() {
    script_.UntilCommitted(1);
    script_.StartAgain(place(2));
    script_.Until("three workers to take part", [this] {
      return script_.chief().in_effect().workers.size() == 3 && IsMember(0) &&
             IsMember(1) && IsMember(2);
    });
  }
  bool IsMember(int worker) {
    return script_.worker(worker).IsMember() &&
           script_.chief().IsAlive(script_.job().TaskAt(place(worker)));
  }

  // It has heard nothing of the settings that servers hold.
  void StopANewChiefThatAwaitsAServer() {
    script_.Kill(script_.job().server_place(0));
    script_.Kill(chief_);
    script_.StartAgain(chief_);
    script_.For(absl::Seconds(1));
    script_.chief().RequestStop();
  }
  auto UntilTheThirdWorkerHasEnded() {
    script_.Until(
        "the third worker to hear of the end",
        [this] { return !script_.IsThere(place(2)); }, absl::Seconds(20));
    return script_.Broken();
  }

  Script script_{Options{2,
                         2,
                         {2, 1},
                         /*steps=*/100,
                         /*checkpoint_every=*/5,
                         /*elastic=*/true}};
  const int chief_ = script_.job().chief_place();
};

TEST_F(ElasticTest, WorkerThatJoinedLaterHearsOfTheEndFromANewChief) {
  LetTheThirdWorkerIn();
  StopANewChiefThatAwaitsAServer();
  EXPECT_THAT(UntilTheThirdWorkerHasEnded(), IsEmpty());
}

TEST_F(ElasticTest, EndOfInputIsHeardThoughTheWorkersChangeMeanwhile) {
  script_.job().input_ends[1] = 2;
  script_.UntilCommitted(1);
  script_.Hang(place(0), absl::Hours(1));
  script_.For(absl::Milliseconds(100));  // the next step has begun
  script_.world().Cut(place(1), chief_, absl::Seconds(3));
  script_.StartAgain(place(2));
  script_.Until("the third worker to be wanted", [this] {
    return script_.chief().settings_table().wanted().workers.size() == 3;
  });
  script_.WakeUp(place(0));
  script_.Until("three workers to take part", [this] {
    return script_.chief().in_effect().workers.size() == 3;
  });
  script_.For(absl::Seconds(3));
  EXPECT_THAT(script_.Finish(), IsEmpty());
  EXPECT_EQ(script_.job().promises.committed(), 2);
}

// Three workers, each of which has a mirror. Passes are slow, so that the job
// is not over before a mirror is given up.
class ElasticMirrorsTest : public ::testing::Test {
 protected:
  static Options OptionsOf(PlantedBug bug) {
    return {.replicas_to_aggregate = 3,
            .total_num_replicas = 3,
            .parts = {1, 1, 1},
            .steps = 20,
            .elastic = true,
            .bug = bug,
            .mirrored = true,
            .pass_times = std::vector<absl::Duration>(3, absl::Seconds(2))};
  }
  static int MirrorOf(Script& script, int worker) {
    return script.job().server_place(worker);
  }
  static void LosePair(Script& script, int worker) {
    script.Kill(script.job().worker_place(worker));
    script.Kill(MirrorOf(script, worker));
  }
  static void BringBack(Script& script, int worker) {
    script.StartAgain(MirrorOf(script, worker));
    script.StartAgain(script.job().worker_place(worker));
  }
  static void LoseTheStateOfTheFirst(Script& script) {
    script.Kill(MirrorOf(script, 0), /*loses_state=*/true);
    script.StartAgain(MirrorOf(script, 0));
  }
  static void UntilWorkersAre(Script& script, size_t number) {
    script.Until(
        absl::StrCat(number, " workers to take part"),
        [&script, number] {
          return script.chief().in_effect().workers.size() == number;
        },
        absl::Seconds(50));
  }
  static int64_t StepOf(Script& script) {
    return script.job().promises.committed();
  }

  // Mirror 2 has prepared a step when it goes with its worker. The others make
  // that step again, and are at it when the mirror comes back.
  static std::vector<std::string> RunWithAStepMadeAgain(PlantedBug bug) {
    Script script(OptionsOf(bug));
    script.StartAll();
    script.UntilCommitted(3);
    // No take is answered, so the step is not committed.
    script.world().Cut(MirrorOf(script, 2), script.job().chief_place(),
                       absl::Seconds(8));
    script.Until("mirror 2 to prepare a step",
                 [&script] { return script.job().promises.IsAhead(2); });
    const int64_t step = StepOf(script);
    script.For(absl::Milliseconds(100));
    EXPECT_EQ(StepOf(script), step);
    LosePair(script, 2);
    UntilWorkersAre(script, 2);
    script.UntilCommitted(step + 1);
    BringBack(script, 2);
    UntilWorkersAre(script, 3);
    return script.Finish();
  }

  // Mirror 2 is started again, and cannot open its state until its process
  // ends.
  static void RestartBroken(Script& script) {
    script.StartAll();
    script.UntilCommitted(3);
    script.Kill(MirrorOf(script, 2));
    script.StartBroken(2);
  }
  static void UntilBrokenHasEnded(Script& script) {
    script.Until("the broken mirror to end",
                 [&script] { return !script.IsThere(MirrorOf(script, 2)); });
    EXPECT_GE(script.job().tally.left_out, 1);
    EXPECT_FALSE(script.IsThere(script.job().worker_place(2)));
  }

  Script script_{OptionsOf(PlantedBug::kNone)};
};

TEST_F(ElasticMirrorsTest, JobGoesOnWithoutAPairThatNeverComesBack) {
  script_.StartAll();
  script_.UntilCommitted(3);
  LosePair(script_, 2);
  UntilWorkersAre(script_, 2);
  EXPECT_THAT(script_.Finish(), IsEmpty());
  EXPECT_EQ(StepOf(script_), 20);
  EXPECT_EQ(script_.job().promises.history(), 0);
}

TEST_F(ElasticMirrorsTest, MirrorCopiesAStepThatOthersMadeAgain) {
  EXPECT_THAT(RunWithAStepMadeAgain(PlantedBug::kNone), IsEmpty());
}

TEST_F(ElasticMirrorsTest, MirrorThatKeptItsOwnStepWouldBeFound) {
  EXPECT_THAT(RunWithAStepMadeAgain(PlantedBug::kReturnedMirrorKeepsItsStep),
              Contains(HasSubstr("P11")));
}

TEST_F(ElasticMirrorsTest, MirrorThatIsLeftHasTheStateOfTheFirst) {
  script_.StartAll();
  script_.UntilCommitted(3);
  LosePair(script_, 2);
  UntilWorkersAre(script_, 2);
  script_.UntilCommitted(StepOf(script_) + 1);
  LoseTheStateOfTheFirst(script_);
  script_.UntilCommitted(StepOf(script_) + 1);
  BringBack(script_, 2);
  UntilWorkersAre(script_, 3);
  EXPECT_THAT(script_.Finish(), IsEmpty());
  EXPECT_EQ(script_.job().promises.history(), 0);
}

TEST_F(ElasticMirrorsTest, JobAwaitsThePairsThatAloneHaveTheState) {
  script_.StartAll();
  script_.UntilCommitted(3);
  LosePair(script_, 1);
  LosePair(script_, 2);
  LoseTheStateOfTheFirst(script_);
  const int64_t step = StepOf(script_);
  script_.For(absl::Seconds(35));
  EXPECT_EQ(StepOf(script_), step);
  BringBack(script_, 1);
  BringBack(script_, 2);
  EXPECT_THAT(script_.Finish(), IsEmpty());
  EXPECT_EQ(StepOf(script_), 20);
  EXPECT_EQ(script_.job().promises.history(), 0);
}

TEST_F(ElasticMirrorsTest, JobGoesOnWithoutAMirrorThatCannotOpenItsState) {
  RestartBroken(script_);
  UntilBrokenHasEnded(script_);
  UntilWorkersAre(script_, 2);
  EXPECT_THAT(script_.Finish(), IsEmpty());
  EXPECT_EQ(StepOf(script_), 20);
  EXPECT_EQ(script_.job().promises.history(), 0);
}

TEST_F(ElasticMirrorsTest, PairThatComesBackBrokenTakesPartOnceItIsMended) {
  script_.StartAll();
  script_.UntilCommitted(3);
  LosePair(script_, 2);
  UntilWorkersAre(script_, 2);
  script_.StartBroken(2);
  script_.StartAgain(script_.job().worker_place(2));
  UntilBrokenHasEnded(script_);
  UntilWorkersAre(script_, 2);
  script_.UntilCommitted(StepOf(script_) + 1);
  BringBack(script_, 2);
  UntilWorkersAre(script_, 3);
  EXPECT_THAT(script_.Finish(), IsEmpty());
  EXPECT_EQ(StepOf(script_), 20);
  EXPECT_EQ(script_.job().promises.history(), 0);
}

TEST_F(ElasticMirrorsTest, BrokenMirrorThatIsNotLeftOutWouldBeFound) {
  Script script(OptionsOf(PlantedBug::kBrokenMirrorIsAwaited));
  RestartBroken(script);
  EXPECT_THAT(script.Finish(), Contains(HasSubstr("P6")));
}

// Two gradients of three workers: a member that hangs gives its place to the
// backup, long before its lease ends.
class StallTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  StallTest() { script_.StartAll(); }

  // So many steps that worker 0 is a member of some before the last one.
  Script script_{Options{.total_num_replicas = 3,
                         .steps = 60,
                         .stall_timeout = absl::Seconds(1)},
                 /*seed=*/GetParam()};
};

TEST_P(StallTest, MemberThatHangsIsReplacedByABackup) {
  script_.UntilCommitted(3);
  script_.Until("worker 0 to be in a step",
                [this] { return script_.server(0).HasMember(0); });
  const int64_t step = script_.job().promises.committed();
  script_.Hang(script_.job().worker_place(0), absl::Seconds(60));
  script_.For(absl::Seconds(5));
  EXPECT_GT(script_.job().promises.committed(), step);
  EXPECT_GT(script_.job().tally.replaced, 0);
  EXPECT_THAT(script_.Finish(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Timings, StallTest,
                         ::testing::Range(uint64_t{1}, uint64_t{11}));

class QuietTest : public ::testing::TestWithParam<Options> {};

TEST_P(QuietTest, EveryStepTakesOneAttemptWhereNothingGoesWrong) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Script script(GetParam(), seed);
    script.StartAll();
    EXPECT_THAT(script.Finish(), IsEmpty());
    EXPECT_EQ(script.job().promises.committed(), GetParam().steps);
    EXPECT_EQ(script.job().tally.redone, 0);
    EXPECT_EQ(script.job().tally.replaced, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Clusters, QuietTest,
    ::testing::Values(Options{2, 2, {2, 1}},     // every worker counts
                      Options{2, 3, {2, 1}},     // one backup
                      Options{2, 4, {1, 0}},     // a server without parts
                      Options{1, 1, {1, 1, 1}},  // alone
                      Options{2, 2, {1}},        // one server, granted steps
                      Options{3, 2, {2, 1}},     // shares: two and one
                      Options{4, 2, {1, 1}},     // shares: two each
                      Options{2, 2, {2, 1}, 4, 2, /*elastic=*/true}),
    [](const auto& info) { return NameOf(info.param); });

INSTANTIATE_TEST_SUITE_P(Timings, LoneServerTest,
                         ::testing::Range(uint64_t{1}, uint64_t{21}));

}  // namespace
}  // namespace lockstep::simulation
