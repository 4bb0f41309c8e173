// What TensorFlow's SyncReplicasOptimizer does as a whole, case by case: how
// many gradients are wasted, whose count, and where it hangs. D1 to D17 number
// the cases that follow from its rules; those of a single accumulator, D10 to
// D16, are in accumulator_cases_test.cc.

#include <cstdint>
#include <numeric>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/conformance/protocol/compatible_simulation.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Drop = CompatibleSimulation::Drop;

CompatibleSimulation::Options Equal(int workers, int replicas_to_aggregate,
                                    int initial_tokens) {
  return {replicas_to_aggregate, std::vector<int64_t>(workers, 10),
          initial_tokens};
}

TEST(CompatibleProtocolTest, D1AsManyInitialTokensAsGradientsWasteOnePassEach) {
  CompatibleSimulation simulation(Equal(4, 4, 4));

  simulation.RunTo(100);

  EXPECT_THAT(simulation.drops(), SizeIs(4));
  EXPECT_THAT(simulation.drops(), Each(Drop{0, 1}));
}

TEST(CompatibleProtocolTest, D2NoInitialTokensWasteNothing) {
  CompatibleSimulation simulation(Equal(4, 4, 0));

  simulation.RunTo(100);

  EXPECT_THAT(simulation.drops(), IsEmpty());
  EXPECT_THAT(simulation.accepted(), ElementsAre(100, 100, 100, 100));
}

TEST(CompatibleProtocolTest, D3FewerWorkersThanGradientsNeedTheDifference) {
  CompatibleSimulation enough(Equal(2, 4, 2));
  enough.RunTo(50);
  EXPECT_THAT(enough.drops(), IsEmpty());
  EXPECT_THAT(enough.accepted(), ElementsAre(100, 100));

  CompatibleSimulation more(Equal(2, 4, 4));
  more.RunTo(50);
  EXPECT_THAT(more.drops(), ElementsAre(Drop{0, 1}, Drop{0, 1}));

  CompatibleSimulation fewer(Equal(2, 4, 1));
  fewer.RunTo(50);
  EXPECT_EQ(fewer.global_step(), 0);
  EXPECT_EQ(fewer.shard().WaitsFor(), "1 of 4 gradients of 2 parts");
  EXPECT_THAT(fewer.gate().WaitingWorkers(), SizeIs(2));
}

TEST(CompatibleProtocolTest, D4FastWorkerSuppliesEveryGradientGivenTheTokens) {
  CompatibleSimulation with_tokens({2, {1, 60}, 2});
  with_tokens.RunTo(20);
  EXPECT_THAT(with_tokens.accepted(), ElementsAre(40, 0));

  CompatibleSimulation without({2, {1, 60}, 0});
  without.RunTo(20);
  EXPECT_THAT(without.accepted(), ElementsAre(20, 20));
}

TEST(CompatibleProtocolTest, D5BackupWastesAboutOneGradientAStep) {
  CompatibleSimulation simulation(Equal(5, 4, 4));

  simulation.RunTo(100);

  EXPECT_GE(simulation.drops().size(), 95u);
  EXPECT_LE(simulation.drops().size(), 110u);
  const std::vector<int64_t> accepted = simulation.accepted();
  EXPECT_EQ(std::accumulate(accepted.begin(), accepted.end(), int64_t{0}), 400);
}

TEST(CompatibleProtocolTest, D17OneWorkerAloneLosesItsSecondBatch) {
  CompatibleSimulation::Options options = Equal(1, 1, 1);
  options.num_parts = 1;
  options.gradient = [](int, int64_t pass, int) {
    return static_cast<float>(pass);
  };
  CompatibleSimulation simulation(options);

  simulation.RunTo(4);

  EXPECT_THAT(simulation.dropped_passes().at(0), ElementsAre(2));
  std::vector<float> used;
  for (const auto& update : simulation.updater().updates()) {
    used.push_back(update.gradients.at(0));
  }
  EXPECT_THAT(used, ElementsAre(1, 3, 4, 5));
}

// Four workers in step, one of which dies in the middle of a pass.
class DeadWorkerTest : public ::testing::Test {
 protected:
  DeadWorkerTest() {
    simulation_.RunTo(10);
    simulation_.Kill(3);
    simulation_.RunTo(20);
  }

  CompatibleSimulation simulation_{Equal(4, 4, 4)};
};

TEST_F(DeadWorkerTest, D6LostTokenHangsEveryoneUntilSomebodyActs) {
  EXPECT_LT(simulation_.global_step(), 20);
  EXPECT_EQ(simulation_.shard().WaitsFor(), "1 of 4 gradients of 2 parts");
  EXPECT_THAT(simulation_.gate().WaitingWorkers(), SizeIs(3));
}

TEST_F(DeadWorkerTest, D6ItsRestartHeals) {
  simulation_.Restart(3);

  simulation_.RunTo(20);

  EXPECT_EQ(simulation_.global_step(), 20);
}

TEST_F(DeadWorkerTest, ItsExpiredLeaseHealsThoughItNeverComesBack) {
  simulation_.Expire(3);

  simulation_.RunTo(20);

  EXPECT_EQ(simulation_.global_step(), 20);
}

// Four tokens of a step more than gradients: so many may be lost at once.
TEST(CompatibleProtocolTest, D8WorkersThatLeaveInOneStepHangTheRest) {
  CompatibleSimulation simulation(Equal(64, 60, 60));
  simulation.RunTo(10);
  for (int worker = 0; worker < 27; ++worker) simulation.Kill(worker);

  simulation.RunTo(100);

  EXPECT_LT(simulation.global_step(), 20);
}

TEST(CompatibleProtocolTest, D8OneLeavingPerStepHangsNobody) {
  CompatibleSimulation simulation(Equal(64, 60, 60));
  for (int worker = 0; worker < 27; ++worker) {
    simulation.RunTo(10 + worker);
    simulation.Kill(worker);
  }

  simulation.RunTo(100);

  EXPECT_EQ(simulation.global_step(), 100);
}

// TensorFlow's own tests: worker w pushes 0.1 + 0.2 w and 0.9 + 0.2 w, learning
// rate 2, variables 0 and 1.
class SmallModelTest : public ::testing::Test {
 protected:
  static CompatibleSimulation::Options Model(int workers,
                                             int replicas_to_aggregate) {
    CompatibleSimulation::Options options =
        Equal(workers, replicas_to_aggregate, workers);
    options.gradient = [](int worker, int64_t, int part) {
      return (part == 0 ? 0.1f : 0.9f) + 0.2f * static_cast<float>(worker);
    };
    return options;
  }
  static std::vector<float> Variables(const CompatibleSimulation& simulation) {
    std::vector<float> variables = {0, 1};
    for (const auto& update : simulation.updater().updates()) {
      variables[update.part] -= 2 * update.gradients.at(0);
    }
    return variables;
  }
};

TEST_F(SmallModelTest, TwoWorkersMakeAStepAndThenWasteAPass) {
  CompatibleSimulation simulation(Model(2, 2));
  EXPECT_EQ(simulation.global_step(), 0);
  EXPECT_THAT(Variables(simulation), ElementsAre(0, 1));

  simulation.RunPass(0);
  simulation.RunPass(1);

  EXPECT_EQ(simulation.global_step(), 1);
  EXPECT_THAT(Variables(simulation), ElementsAre(::testing::FloatEq(-0.4f),
                                                 ::testing::FloatEq(-1.0f)));
  EXPECT_EQ(simulation.local_step(0), 0);
  EXPECT_EQ(simulation.local_step(1), 0);

  simulation.RunPass(0);
  simulation.RunPass(1);

  EXPECT_EQ(simulation.global_step(), 1);
  EXPECT_THAT(simulation.updater().updates(), SizeIs(2));
  EXPECT_EQ(simulation.local_step(0), 1);
  EXPECT_EQ(simulation.local_step(1), 1);
}

TEST_F(SmallModelTest, ThreeWorkersNeedTwo) {
  CompatibleSimulation simulation(Model(3, 2));

  simulation.RunPass(0);
  simulation.RunPass(2);

  EXPECT_EQ(simulation.global_step(), 1);
  EXPECT_THAT(Variables(simulation), ElementsAre(::testing::FloatEq(-0.6f),
                                                 ::testing::FloatEq(-1.2f)));
}

}  // namespace
}  // namespace lockstep
