// TensorFlow's SyncReplicasOptimizer as a whole, case by case: how
// many gradients are wasted, whose count, and where it hangs. D1 to D17 number
// the cases that follow from its rules, without D7, D9 and D12, which the list
// does not have; those of a single accumulator, D10 to D16, are in
// protocol/accumulator_cases_test.cc. R64 to R67 number rules of which the list
// has no case.
//
// A pass takes a second, so that the order of events does not depend on how
// long calls take.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/simulation/chief_process.h"
#include "tests/conformance/simulation/script.h"
#include "tests/conformance/simulation/server_process.h"

namespace lockstep::simulation {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Drop = CompatiblePromises::Drop;

constexpr absl::Duration kPass = absl::Seconds(1);

Options Compatible(int replicas_to_aggregate, int initial_tokens,
                   std::vector<absl::Duration> pass_times) {
  Options options;
  options.mode = SyncMode::kCompatible;
  options.replicas_to_aggregate = replicas_to_aggregate;
  options.total_num_replicas = static_cast<int>(pass_times.size());
  options.initial_tokens = initial_tokens;
  options.pass_times = std::move(pass_times);
  options.parts = {1, 1};
  options.steps = 1000;
  options.checkpoint_every = 1000;
  return options;
}

Options Equal(int workers, int replicas_to_aggregate, int initial_tokens) {
  return Compatible(replicas_to_aggregate, initial_tokens,
                    std::vector<absl::Duration>(workers, kPass));
}

// One job, from its start.
class CompatibleScript {
 public:
  explicit CompatibleScript(const Options& options) : script_(options) {
    script_.StartAll();
  }

  // True if `step` is committed within `passes` times kPass.
  bool ReachesStep(int64_t step, int passes) {
    script_.Until(
        "a step or the time to be over",
        [&, end = script_.world().Now() + passes * kPass] {
          return committed() >= step || script_.world().Now() > end;
        },
        absl::Hours(1));
    EXPECT_THAT(script_.Broken(), IsEmpty());
    return committed() >= step;
  }
  // Until `worker` has pushed, and is the only one that waits for a token.
  void UntilOnlyWaits(int worker) {
    script_.Until("one worker to wait for a token", [&] {
      if (!script_.server(0).IsOpen()) return false;
      const std::vector<server::Gate::Waiting> waiting = WaitingWorkers();
      return waiting.size() == 1 && waiting[0].worker == worker;
    });
    EXPECT_THAT(script_.Broken(), IsEmpty());
  }
  int64_t committed() const { return script_.job().promises.committed(); }

  // Each pass whose gradient a server drops, once.
  std::vector<Drop> drops() const {
    std::vector<Drop> drops;
    for (const Drop& drop : script_.job().compatible.drops()) {
      const bool known =
          std::any_of(drops.begin(), drops.end(), [&](const Drop& other) {
            return other.worker == drop.worker && other.pass == drop.pass;
          });
      if (!known) drops.push_back(drop);
    }
    return drops;
  }
  // By worker: its gradients that count in the steps that are committed.
  std::vector<int64_t> accepted() const {
    std::vector<int64_t> accepted(script_.job().options.total_num_replicas);
    for (const auto& update : updates()) {
      for (const Pass& pass : update) ++accepted[pass.worker];
    }
    return accepted;
  }
  // By step: the passes of which it was made.
  const std::vector<CompatiblePromises::Update>& updates() const {
    return script_.job().compatible.updates(0, 0);
  }
  std::string WaitsFor() { return script_.server(0).WaitsFor(); }
  std::vector<server::Gate::Waiting> WaitingWorkers() {
    return script_.server(0).WaitingWorkers();
  }

  int place(int worker) { return script_.job().worker_place(worker); }
  absl::Duration lease() { return script_.job().config.lease; }
  Script& script() { return script_; }

 private:
  mutable Script script_;
};

MATCHER(IsOfStep0AtStep1, "has stamp 0 and comes to step 1") {
  return arg.stamp == 0 && arg.step == 1;
}
MATCHER_P2(IsPassOf, number, worker, "") {
  return arg.pass == number && arg.worker == worker;
}

TEST(CompatibleScriptsTest, D1AsManyInitialTokensAsGradientsWasteOnePassEach) {
  CompatibleScript script(Equal(4, 4, 4));

  EXPECT_TRUE(script.ReachesStep(20, 23));

  EXPECT_THAT(script.drops(), SizeIs(4));
  EXPECT_THAT(script.drops(), Each(IsOfStep0AtStep1()));
}

TEST(CompatibleScriptsTest, D2NoInitialTokensWasteNothing) {
  CompatibleScript script(Equal(4, 4, 0));

  EXPECT_TRUE(script.ReachesStep(20, 22));

  EXPECT_THAT(script.drops(), IsEmpty());
  EXPECT_THAT(script.accepted(), Each(20));
}

TEST(CompatibleScriptsTest, D3FewerWorkersThanGradientsNeedTheDifference) {
  CompatibleScript enough(Equal(2, 4, 2));
  EXPECT_TRUE(enough.ReachesStep(10, 22));
  EXPECT_THAT(enough.drops(), IsEmpty());
  EXPECT_THAT(enough.accepted(), ElementsAre(20, 20));

  CompatibleScript more(Equal(2, 4, 4));
  EXPECT_TRUE(more.ReachesStep(10, 23));
  EXPECT_THAT(more.drops(), SizeIs(2));
  EXPECT_THAT(more.drops(), Each(IsOfStep0AtStep1()));

  CompatibleScript fewer(Equal(2, 4, 1));
  EXPECT_FALSE(fewer.ReachesStep(1, 20));
  EXPECT_THAT(fewer.WaitsFor(), HasSubstr("1 of 4 gradients of 1 part"));
  EXPECT_THAT(fewer.WaitingWorkers(), SizeIs(2));
}

TEST(CompatibleScriptsTest, D4FastWorkerSuppliesEveryGradientGivenTheTokens) {
  CompatibleScript with_tokens(Compatible(2, 2, {kPass, 60 * kPass}));
  EXPECT_TRUE(with_tokens.ReachesStep(20, 50));
  EXPECT_THAT(with_tokens.accepted(), ElementsAre(40, 0));

  CompatibleScript without(Compatible(2, 0, {kPass, 6 * kPass}));
  EXPECT_TRUE(without.ReachesStep(20, 130));
  EXPECT_THAT(without.accepted(), ElementsAre(20, 20));
}

TEST(CompatibleScriptsTest, D5BackupWastesAboutOneGradientAStep) {
  CompatibleScript script(Equal(5, 4, 4));

  EXPECT_TRUE(script.ReachesStep(30, 40));

  EXPECT_GE(script.drops().size(), 28U);
  EXPECT_LE(script.drops().size(), 40U);
  const std::vector<int64_t> accepted = script.accepted();
  EXPECT_EQ(std::accumulate(accepted.begin(), accepted.end(), int64_t{0}), 120);
}

TEST(CompatibleScriptsTest, D17OneWorkerAloneLosesItsSecondBatch) {
  CompatibleScript script(Equal(1, 1, 1));

  EXPECT_TRUE(script.ReachesStep(4, 7));

  EXPECT_THAT(script.drops(), ElementsAre(Drop{0, 2, 0, 1}));
  EXPECT_THAT(
      script.updates(),
      ElementsAre(ElementsAre(IsPassOf(1, 0)), ElementsAre(IsPassOf(3, 0)),
                  ElementsAre(IsPassOf(4, 0)), ElementsAre(IsPassOf(5, 0))));
}

// Four workers in step, one of which dies in the middle of a pass.
class DeadWorkerTest : public ::testing::Test {
 protected:
  DeadWorkerTest() {
    EXPECT_TRUE(script_.ReachesStep(5, 10));
    script_.script().For(kPass / 2);
    script_.script().Kill(script_.place(3));
  }

  CompatibleScript script_{Equal(4, 4, 4)};
};

TEST_F(DeadWorkerTest, D6LostTokenHangsAllUntilTheLeaseEnds) {
  const int64_t step = script_.committed();
  script_.script().For(script_.lease() / 2);
  EXPECT_EQ(script_.committed(), step);
  EXPECT_THAT(script_.WaitsFor(), HasSubstr("1 of 4 gradients of 1 part"));
  EXPECT_THAT(script_.WaitingWorkers(), SizeIs(3));

  EXPECT_TRUE(script_.ReachesStep(step + 10, 50));
}

TEST_F(DeadWorkerTest, D6ItsRestartHealsBeforeTheLeaseEnds) {
  const int64_t step = script_.committed();
  script_.script().StartAgain(script_.place(3));

  EXPECT_TRUE(script_.ReachesStep(
      step + 1, static_cast<int>(script_.lease() / 2 / kPass)));
  EXPECT_TRUE(script_.ReachesStep(step + 10, 20));
}

// Four tokens of a step more than gradients: so many may be lost at once.
TEST(CompatibleScriptsTest, D8WorkersThatLeaveInOneStepHangTheRest) {
  CompatibleScript script(Equal(16, 12, 12));
  EXPECT_TRUE(script.ReachesStep(5, 10));
  script.script().For(kPass / 2);
  const int64_t step = script.committed();
  for (int worker = 0; worker < 7; ++worker) {
    script.script().Kill(script.place(worker));
  }

  script.script().For(script.lease() / 2);
  EXPECT_LE(script.committed(), step + 1);

  EXPECT_TRUE(script.ReachesStep(step + 10, 100));
}

TEST(CompatibleScriptsTest, D8OneLeavingPerStepHangsNone) {
  CompatibleScript script(Equal(16, 12, 12));
  for (int worker = 0; worker < 7; ++worker) {
    EXPECT_TRUE(script.ReachesStep(5 + worker, 12));
    script.script().Kill(script.place(worker));
  }

  EXPECT_TRUE(script.ReachesStep(30, 60));
}

// The two others are in step, so that each takes a token and one of them the
// third. A server ends a wait after 3 s: the dead worker's is over when the
// tokens come, and its lease, of 10 s, is not when the third one is needed.
TEST(CompatibleScriptsTest, R64WorkerThatDiesWhileItWaitsHangsNone) {
  CompatibleScript script(Compatible(3, 0, {kPass, 4.5 * kPass, 4.5 * kPass}));
  script.UntilOnlyWaits(0);
  script.script().For(2.5 * kPass);
  script.script().Kill(script.place(0));
  EXPECT_TRUE(script.ReachesStep(1, 2));

  EXPECT_TRUE(script.ReachesStep(2, 10));

  EXPECT_EQ(script.accepted()[0], 1);
  EXPECT_THAT(script.drops(), IsEmpty());
}

TEST(CompatibleScriptsTest, R65WorkerThatHadPushedCountsAgainOnceItRestarts) {
  CompatibleScript script(Compatible(2, 0, {kPass, 10 * kPass}));
  script.UntilOnlyWaits(0);
  script.script().Kill(script.place(0));
  script.script().StartAgain(script.place(0));

  EXPECT_TRUE(script.ReachesStep(1, 5));

  EXPECT_THAT(script.updates(),
              ElementsAre(ElementsAre(IsPassOf(1, 0), IsPassOf(1, 0))));
}

// TensorFlow's chief restores a checkpoint, or wipes the variables.
TEST(CompatibleScriptsTest, R67RestartedChiefGoesOnFromTheServersStep) {
  Options options = Equal(2, 2, 2);
  options.steps = 12;
  CompatibleScript script(options);
  EXPECT_TRUE(script.ReachesStep(5, 10));
  script.script().For(kPass / 2);
  const int64_t step = script.committed();
  const auto history = script.script().job().promises.history();
  const int chief = script.script().job().chief_place();
  script.script().Kill(chief);
  script.script().StartAgain(chief);

  EXPECT_TRUE(script.ReachesStep(step + 1, 10));
  EXPECT_EQ(script.script().job().promises.history(), history)
      << "the job has gone back";

  EXPECT_THAT(script.script().Finish(), IsEmpty());
  EXPECT_EQ(script.committed(), 12);
}

// TensorFlow's own tests of the optimizer.
TEST(CompatibleScriptsTest, TwoWorkersMakeAStepAndThenWasteAPass) {
  CompatibleScript script(Equal(2, 2, 2));

  EXPECT_TRUE(script.ReachesStep(2, 5));

  EXPECT_THAT(script.drops(),
              UnorderedElementsAre(Drop{0, 2, 0, 1}, Drop{1, 2, 0, 1}));
  EXPECT_THAT(
      script.updates(),
      ElementsAre(UnorderedElementsAre(IsPassOf(1, 0), IsPassOf(1, 1)),
                  UnorderedElementsAre(IsPassOf(3, 0), IsPassOf(3, 1))));
}

TEST(CompatibleScriptsTest, ThreeWorkersNeedTwo) {
  CompatibleScript script(Compatible(2, 3, {kPass, 20 * kPass, kPass}));

  EXPECT_TRUE(script.ReachesStep(1, 3));

  EXPECT_THAT(script.updates(), ElementsAre(UnorderedElementsAre(
                                    IsPassOf(1, 0), IsPassOf(1, 2))));
}

// A server updates in place, so its process takes half a step with it.
TEST(CompatibleScriptsTest, KilledServerTakesAllBackToTheLastCheckpoint) {
  Options options = Equal(2, 2, 2);
  options.steps = 12;
  options.checkpoint_every = 4;
  CompatibleScript script(options);
  EXPECT_TRUE(script.ReachesStep(6, 12));
  for (const int server : {0, 1}) {
    const int place = script.script().job().server_place(server);
    script.script().Kill(place);
    script.script().StartAgain(place);
    script.script().For(kPass / 4);
  }

  EXPECT_THAT(script.script().Finish(), IsEmpty());

  EXPECT_GE(script.script().job().promises.history(), 1);
  EXPECT_EQ(script.committed(), 12);
}

}  // namespace
}  // namespace lockstep::simulation
