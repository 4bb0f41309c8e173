// The means that a server keeps: those whose norm is limited, and those of
// mirrors.

#include <cmath>
#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/shard/parts/part_updates.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/shard/parts/shard_state_fixture.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::testing::Each;

// A mean in the memory of a server that counts its writes with `counters`.
PartGradient LentBy(const WriteCounters& counters, PartGradient mean) {
  mean.peer_writes = PeerWrites{
      PeerMemory::Open(counters.file(), PeerMemory::Require::kSealed).value(),
      0, counters.Count(0)};
  return mean;
}

class PartMeansNormTest : public ShardStateFixture {
 protected:
  PartMeansNormTest() {
    options_.job.clipping = {ClippingConfig::Kind::kMeanGlobalNorm, 1};
  }

  // Measures, and returns the sum of all squares.
  static double MeasureAll(ShardState& state, float one, float other) {
    double squares = 0;
    for (int part = 0; part < kParts; ++part) {
      const PartGradient both[] = {Gradients(one)[part],
                                   Gradients(other)[part]};
      const auto measured = state.updates().MeasureMean(part, both);
      EXPECT_OK(measured);
      EXPECT_TRUE(measured->finite);
      squares += measured->squares;
    }
    return squares;
  }
  static void ApplyAll(ShardState& state, int64_t step, double norm) {
    for (int part = 0; part < kParts; ++part) {
      EXPECT_OK(state.updates().ApplyMean(part, step, norm));
    }
    EXPECT_OK(state.updates().MarkPrepared(step + 1, 1));
    EXPECT_OK(state.updates().Commit(step + 1));
  }
};

TEST_F(PartMeansNormTest, MeanAboveTheLimitIsScaledToIt) {
  auto state = CreateActive();

  const double squares = MeasureAll(*state, 1, 3);
  EXPECT_EQ(squares, 10 * 2 * 2);
  EXPECT_THAT(Read<float>(*state, 0), Each(1));
  ApplyAll(*state, 0, std::sqrt(squares));

  const double scale = 1 / (std::sqrt(40.0) + 1e-6);
  EXPECT_THAT(Read<float>(*state, 0),
              Each(1 - (2 * static_cast<float>(scale)) * 0.5f));
  EXPECT_THAT(Read<double>(*state, 2), Each(2 - (2 * scale) * 0.5));
}

TEST_F(PartMeansNormTest, MeanBelowTheLimitGivesTheBitsOfAPlainUpdate) {
  options_.job.clipping.limit = 100;
  options_.job.optimizer.kind = OptimizerConfig::Kind::kAdamW;
  auto state = CreateActive();
  ApplyAll(*state, 0, std::sqrt(MeasureAll(*state, 0.1f, 0.7f)));
  const std::vector<float> limited = Read<float>(*state, 0);
  ASSERT_OK(state->Remove());

  auto plain = CreateActive();
  UpdateAll(*plain, 0, 0.1f, 0.7f);
  ASSERT_OK(plain->updates().MarkPrepared(1, 1));
  ASSERT_OK(plain->updates().Commit(1));

  EXPECT_EQ(Read<float>(*plain, 0), limited);
}

TEST_F(PartMeansNormTest, AbsentPartsAddNothingAndStay) {
  auto state = CreateActive();
  const std::vector<PartGradient> none = {AbsentGradient(), AbsentGradient()};
  EXPECT_EQ(MeasureAll(*state, 2, 2), 40);

  const auto measured = state->updates().MeasureMean(1, none);
  ASSERT_OK(measured);
  EXPECT_EQ(measured->squares, 0);
  ApplyAll(*state, 0, 1);

  EXPECT_THAT(Read<float>(*state, 1), Each(1));
  EXPECT_THAT(Read<float>(*state, 0),
              Each(1 - 2 * static_cast<float>(1 / (1 + 1e-6)) * 0.5f));
}

TEST_F(PartMeansNormTest, UntrainedVariableIsNoPartOfTheNorm) {
  options_.job.untrained = {"w"};
  auto state = CreateActive();

  EXPECT_EQ(MeasureAll(*state, 1, 3), 2 * 2 * 2);
  ApplyAll(*state, 0, 1);

  EXPECT_THAT(Read<float>(*state, 0), Each(1));
  EXPECT_THAT(Read<double>(*state, 2), Each(::testing::Lt(2)));
}

TEST_F(PartMeansNormTest, MeanThatItsServerWritesAgainHasNoNorm) {
  auto state = CreateActive();
  auto counters = WriteCounters::Create(1).value();
  const PartGradient mean = LentBy(*counters, Gradients(3)[1]);
  counters->Begin(0);

  EXPECT_TRUE(absl::IsAborted(state->updates().KeepMean(1, mean).status()));
}

TEST_F(PartMeansNormTest, ApplyingTwiceIsApplyingOnce) {
  auto state = CreateActive();
  MeasureAll(*state, 1, 1);
  EXPECT_OK(state->updates().ApplyMean(0, 0, 4));
  ApplyAll(*state, 0, 4);

  EXPECT_THAT(Read<float>(*state, 0),
              Each(1 - static_cast<float>(1 / (4 + 1e-6)) * 0.5f));
}

// The order in which workers read new keys is chance.
TEST_F(PartMeansNormTest, SquaresDoNotDependOnTheOrderInWhichKeysWereRead) {
  options_.variables = {{"t",
                         {3, 1},
                         DType::kFloat32,
                         {Initializer::Kind::kConstant, 1, 0},
                         RowCut::kKey}};
  options_.parts = {{0, 0, 3, DType::kFloat32, 1, 1, true}};
  for (const std::vector<int64_t>& reads :
       std::vector<std::vector<int64_t>>{{1, 2, 3}, {2, 3, 1}, {3, 2, 1}}) {
    auto state = CreateActive();
    std::vector<std::byte> values(reads.size() * sizeof(float));
    ASSERT_OK(state->values().ReadKeys(0, reads, absl::MakeSpan(values)));
    // In doubles 1e16 + 1 is 1e16, but 1 + 1 + 1e16 is more.
    PartGradient gradient = GradientOf(std::vector<float>{1e8f, 1, 1});
    gradient.rows = GradientRows{{1, 2, 3}, {3, 1}};
    ASSERT_OK(state->updates().AdmitRows(0, gradient));

    const auto measured = state->updates().MeasureMean(0, {{gradient}});

    ASSERT_OK(measured);
    EXPECT_EQ(measured->squares, 1e16);
  }
}

// Servers that read a mean in other ways would apply different scales.
TEST_F(PartMeansNormTest, KeptMeanHasTheSquaresOfTheServerThatMeasuredIt) {
  options_.variables[0].dtype = DType::kBFloat16;
  options_.parts = {{0, 0, 8, DType::kBFloat16}};
  auto state = CreateActive();
  options_.task_index = 1;
  auto mirror = CreateActive();
  // 1 and 1 + 2^-7, whose mean is no bfloat16.
  const PartGradient both[] = {GradientOf(std::vector<uint16_t>(8, 0x3f80)),
                               GradientOf(std::vector<uint16_t>(8, 0x3f81))};

  const auto measured = state->updates().MeasureMean(0, both);

  ASSERT_OK(measured);
  EXPECT_EQ(measured->squares, 8 * (1 + 1.0 / 256) * (1 + 1.0 / 256));
  EXPECT_THAT(mirror->updates().KeepMean(0, state->updates().LendMean(0)),
              IsOkAndHolds(measured->squares));
}

class PartMeansMirrorTest : public ShardStateFixture {
 protected:
  PartMeansMirrorTest() {
    options_.job.strategy.kind = StrategyKind::kMultiWorkerMirrored;
    options_.parts[1].reducer = 1;
  }
};

TEST_F(PartMeansMirrorTest, OwnMeansAreLentInSharedMemory) {
  auto state = CreateActive();
  for (const int part : {0, 2}) {
    ASSERT_OK(state->updates().MeasureMean(part, {{Gradients(3)[part]}}));
    EXPECT_TRUE(state->updates().LendMean(part).place.has_value());
  }
  EXPECT_TRUE(state->updates().mean_files().has_value());
}

TEST_F(PartMeansMirrorTest, WithoutSharedMemoryMeansHaveNoPlace) {
  options_.shared_memory = false;
  auto state = CreateActive();
  ASSERT_OK(state->updates().MeasureMean(0, {{Gradients(3)[0]}}));
  EXPECT_FALSE(state->updates().LendMean(0).place.has_value());
  EXPECT_FALSE(state->updates().mean_files().has_value());
}

TEST_F(PartMeansMirrorTest, MeanThatItsServerWritesAgainIsNotApplied) {
  auto state = CreateActive();
  auto counters = WriteCounters::Create(1).value();
  const PartGradient mean = LentBy(*counters, Gradients(3)[1]);
  ASSERT_OK(state->updates().KeepMean(1, mean));
  EXPECT_OK(state->updates().ApplyMean(1, 0, 0));

  counters->Begin(0);

  EXPECT_TRUE(absl::IsAborted(state->updates().ApplyMean(1, 0, 0)));
}

}  // namespace
}  // namespace lockstep::server
