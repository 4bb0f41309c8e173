#include "worker/tables/skip_gram.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

constexpr char kText[] = "a b a b\nc a\nb\n";

SkipGram MakeModel(const SkipGram::Options& options) {
  auto vocabulary = Vocabulary::Make(kText, 1);
  EXPECT_OK(vocabulary);
  return SkipGram(options, *std::move(vocabulary), kText);
}

TEST(SkipGramTest, LinesAreExamplesAndWordsAreRows) {
  const SkipGram model = MakeModel({.dim = 4});
  EXPECT_EQ(model.num_examples(), 3);
  EXPECT_THAT(model.variables()[0].shape, ::testing::ElementsAre(3, 4));
  EXPECT_TRUE(model.variables()[1].is_table());
}

TEST(SkipGramTest, ABatchFollowsFromItsSeed) {
  SkipGram model = MakeModel({.dim = 4, .subsample = 0});
  ParameterMemory memory = *ParameterMemory::Make(model.variables());
  const auto loss_of = [&](uint64_t seed) {
    EXPECT_OK(model.Prepare({0, 1}, seed, memory));
    float next = 0.1f;
    for (const size_t v : {0, 1}) {
      for (float& value : Floats(memory.value(v))) value = next = -1.1f * next;
    }
    return model.Compute(memory)->loss;
  };
  EXPECT_EQ(loss_of(3), loss_of(3));
}

TEST(SkipGramTest, GradientsAreThoseOfTheSumOverPairs) {
  SkipGram model = MakeModel({.dim = 2, .negatives = 0, .subsample = 0});
  ParameterMemory memory = *ParameterMemory::Make(model.variables());
  ASSERT_OK(model.Prepare({1}, 1, memory));  // "c a": two pairs
  for (const size_t v : {0, 1}) {
    ASSERT_EQ(memory.rows(v).ids.size(), 2u);
    for (float& value : Floats(memory.value(v))) value = 0.5f;
  }
  const GradientResult result = model.Compute(memory).value();
  // Each pair: error = sigmoid(0.5) - 1, times the other's 0.5.
  const float gradient = (1 / (1 + std::exp(-0.5f)) - 1) * 0.5f;
  for (const size_t v : {0, 1}) {
    for (const float g : Floats(memory.gradient(v))) {
      EXPECT_NEAR(g, gradient, 1e-6f);
    }
  }
  EXPECT_EQ(result.examples, 2);
  EXPECT_NEAR(result.loss, std::log1p(std::exp(-0.5)), 1e-6);
}

TEST(SkipGramTest, LossOfLargeValuesIsFinite) {
  SkipGram model = MakeModel({.dim = 2, .negatives = 0, .subsample = 0});
  ParameterMemory memory = *ParameterMemory::Make(model.variables());
  ASSERT_OK(model.Prepare({1}, 1, memory));
  for (float& value : Floats(memory.value(0))) value = 40;
  for (float& value : Floats(memory.value(1))) value = -40;

  // A dot product of -3200 costs as much: -log(sigmoid(-3200)).
  EXPECT_DOUBLE_EQ(model.Compute(memory)->loss, 3200);
}

TEST(SkipGramTest, ALineOfOneWordHasNoPair) {
  SkipGram model = MakeModel({.dim = 2});
  ParameterMemory memory = *ParameterMemory::Make(model.variables());
  ASSERT_OK(model.Prepare({2}, 1, memory));
  EXPECT_TRUE(memory.rows(0).ids.empty());
  EXPECT_EQ(model.Compute(memory)->loss, 0);
}

}  // namespace
}  // namespace lockstep::worker
