#include "worker/replicas/replicated_gradient_source.h"

#include <cstring>
#include <functional>
#include <vector>

#include "common/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/hooked_pass.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::ComputePass;
using ::lockstep::testing::HookedPass;
using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

const std::vector<VariableSpec> kVariables = {{"w", {2}, DType::kFloat32, {}},
                                              {"b", {1}, DType::kFloat32, {}}};

absl::Span<float> Floats(absl::Span<std::byte> bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / 4};
}

// Its gradient of every element is the element's value times a factor.
class FactorSource final : public GradientSource {
 public:
  using Before = std::function<absl::Status()>;
  FactorSource(float factor, const ParameterMemory& memory, Before before)
      : factor_(factor), memory_(memory), before_(std::move(before)) {}

  bool MayBeginEarly() const override { return true; }
  void PrepareEarly(const PassId& pass) override { early_step_ = pass.step; }
  // That of the last PrepareEarly(); -1: there was none.
  int64_t early_step() const { return early_step_; }

  absl::Status Begin(int64_t, GradientPass& pass) override {
    return pass.NeedValues(0, 2);
  }
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override {
    if (before_) LOCKSTEP_RETURN_IF_ERROR(before_());
    for (const size_t v : {1, 0}) {
      LOCKSTEP_RETURN_IF_ERROR(pass.CheckWanted());
      for (size_t i = 0; i < Floats(memory_.gradient(v)).size(); ++i) {
        Floats(memory_.gradient(v))[i] = factor_ * Floats(memory_.value(v))[i];
      }
      pass.GradientReady(v);
    }
    return GradientResult{.loss = factor_, .examples = 8, .non_finite = 1};
  }

 private:
  const float factor_;
  const ParameterMemory& memory_;
  const Before before_;
  int64_t early_step_ = -1;
};

class ReplicatedGradientSourceTest : public ::testing::Test {
 protected:
  ReplicatedGradientSourceTest() {
    const std::vector<float> values = {1, 2, 4};
    std::memcpy(memory_.value(0).data(), values.data(), 8);
    std::memcpy(memory_.value(1).data(), values.data() + 2, 4);
  }

  ReplicatedGradientSource Make(const std::vector<float>& factors,
                                const ClippingConfig& clipping = {},
                                const FactorSource::Before& before = nullptr) {
    std::vector<ReplicatedGradientSource::Replica> replicas;
    for (const float factor : factors) {
      auto& replica = replicas.emplace_back();
      replica.memory =
          std::make_unique<ParameterMemory>(*memory_.WithOwnGradients());
      replica.source = std::make_unique<FactorSource>(
          factor, *replica.memory,
          replicas.size() == factors.size() ? before : nullptr);
    }
    return {std::move(replicas), clipping, memory_, trained_};
  }

  std::vector<bool> trained_ = {true, true};
  ParameterMemory memory_ =
      *ParameterMemory::Make(kVariables, ParameterMemory::Gradients::kPrivate);
};

TEST_F(ReplicatedGradientSourceTest, GradientsAreTheMeanOfTheReplicas) {
  ReplicatedGradientSource source = Make({1, 3, 8});
  std::vector<size_t> ready;

  const absl::StatusOr<GradientResult> result = ComputePass(
      source, 0, {.on_gradient = [&](size_t v) { ready.push_back(v); }});

  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(Floats(memory_.gradient(0)), ElementsAre(4, 8));
  EXPECT_THAT(Floats(memory_.gradient(1)), ElementsAre(16));
  EXPECT_THAT(ready, ElementsAre(1, 0));
  EXPECT_EQ(result->loss, 4);
  EXPECT_EQ(result->examples, 24);
  EXPECT_EQ(result->non_finite, 3);
}

TEST_F(ReplicatedGradientSourceTest, EachReplicaIsToldOfAnEarlyPass) {
  std::vector<ReplicatedGradientSource::Replica> replicas(2);
  std::vector<const FactorSource*> sources;
  for (auto& replica : replicas) {
    replica.memory =
        std::make_unique<ParameterMemory>(*memory_.WithOwnGradients());
    auto source = std::make_unique<FactorSource>(1, *replica.memory, nullptr);
    sources.push_back(source.get());
    replica.source = std::move(source);
  }
  ReplicatedGradientSource source(std::move(replicas), {}, memory_, trained_);

  source.PrepareEarly({.step = 7});

  EXPECT_EQ(sources[0]->early_step(), 7);
  EXPECT_EQ(sources[1]->early_step(), 7);
}

// 2^24 + 1 rounds to 2^24 in float32: the order shows.
TEST_F(ReplicatedGradientSourceTest, TheSumIsInTheOrderOfTheReplicas) {
  ReplicatedGradientSource small_last = Make({0x1p24f, 1, 1});
  ReplicatedGradientSource small_first = Make({1, 1, 0x1p24f});

  ASSERT_THAT(ComputePass(small_last, 0), IsOk());
  EXPECT_EQ(Floats(memory_.gradient(0))[0], 0x1p24f / 3);
  ASSERT_THAT(ComputePass(small_first, 0), IsOk());
  EXPECT_EQ(Floats(memory_.gradient(0))[0], (0x1p24f + 2) / 3);
}

TEST_F(ReplicatedGradientSourceTest, EachReplicaIsClippedByItself) {
  ReplicatedGradientSource by_value =
      Make({1, -9}, {ClippingConfig::Kind::kValue, 3});
  ASSERT_THAT(ComputePass(by_value, 0), IsOk());
  EXPECT_THAT(Floats(memory_.gradient(0)), ElementsAre(-1, -0.5f));

  std::vector<size_t> ready;
  ReplicatedGradientSource by_norm =
      Make({0, 2}, {ClippingConfig::Kind::kGlobalNorm, 1e6});
  ASSERT_THAT(
      ComputePass(by_norm, 0,
                  {.on_gradient = [&](size_t v) { ready.push_back(v); }}),
      IsOk());
  EXPECT_THAT(ready, UnorderedElementsAre(0, 1));
}

TEST_F(ReplicatedGradientSourceTest, AnUntrainedVariableIsNoPartOfTheNorm) {
  const ClippingConfig clipping = {ClippingConfig::Kind::kGlobalNorm, 4};
  ReplicatedGradientSource both = Make({1}, clipping);
  ASSERT_THAT(ComputePass(both, 0), IsOk());
  const float with_both = Floats(memory_.gradient(1))[0];
  trained_ = {false, true};
  ReplicatedGradientSource source = Make({1}, clipping);

  ASSERT_THAT(ComputePass(source, 0), IsOk());

  EXPECT_LT(with_both, 4);
  EXPECT_THAT(Floats(memory_.gradient(1)), ElementsAre(4));
}

TEST_F(ReplicatedGradientSourceTest, ValuesAreAskedForOnce) {
  ReplicatedGradientSource source = Make({1, 1, 1});
  int asked = 0;
  const HookedPass pass_hooks;
  for (int pass = 1; pass <= 2; ++pass) {
    ASSERT_THAT(ComputePass(source, pass,
                            {.need_values =
                                 [&](size_t, size_t) {
                                   ++asked;
                                   return absl::OkStatus();
                                 }}),
                IsOk());
    EXPECT_EQ(asked, pass);
  }
}

TEST_F(ReplicatedGradientSourceTest, AReplicaThatFailsEndsThePass) {
  bool fails = true;
  ReplicatedGradientSource source = Make({1, 1}, {}, [&] {
    return fails ? absl::DataLossError("bad batch") : absl::OkStatus();
  });

  EXPECT_THAT(ComputePass(source, 0),
              StatusIs(absl::StatusCode::kDataLoss, "bad batch"));
  fails = false;
  EXPECT_THAT(ComputePass(source, 0), IsOk());
}

TEST_F(ReplicatedGradientSourceTest, AnUnwantedPassIsDroppedByAll) {
  ReplicatedGradientSource source = Make({1, 1});

  EXPECT_THAT(ComputePass(source, 0, {.unwanted = [] { return true; }}),
              StatusIs(absl::StatusCode::kAborted));
}

}  // namespace
}  // namespace lockstep::worker
