#include "worker/loop/clipped_gradient_source.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::FloatEq;

using Kind = ClippingConfig::Kind;

absl::Span<std::byte> Bytes(std::vector<float>& values) {
  return {reinterpret_cast<std::byte*>(values.data()),
          values.size() * sizeof(float)};
}

// Two gradients, of norms 3 and 4, the second one first.
class FakeSource final : public GradientSource {
 public:
  absl::StatusOr<GradientResult> Compute(int64_t index,
                                         const PassHooks& hooks) override {
    if (index > 0) return absl::OutOfRangeError("no batch");
    second = {0, 4};
    hooks.Report(1);
    first = {3};
    hooks.Report(0);
    return GradientResult{1.5, 8};
  }

  std::vector<float> first = {0};
  std::vector<float> second = {0, 0};
};

class ClippedGradientSourceTest : public ::testing::Test {
 protected:
  absl::StatusOr<GradientResult> Compute(Kind kind, double limit,
                                         int64_t index = 0) {
    ClippedGradientSource clipped(
        {kind, limit}, DType::kFloat32,
        [this] {
          return ClippedGradientSource::Gradients{Bytes(source_.first),
                                                  Bytes(source_.second)};
        },
        source_);
    PassHooks hooks;
    hooks.on_gradient = [this](size_t variable) {
      order_.push_back(variable);
      seen_.push_back(variable == 0 ? source_.first[0] : source_.second[1]);
    };
    return clipped.Compute(index, hooks);
  }

  FakeSource source_;
  std::vector<size_t> order_;
  std::vector<float> seen_;  // when it was reported
};

TEST_F(ClippedGradientSourceTest, GlobalNormIsOfAllGradients) {
  const auto result = Compute(Kind::kGlobalNorm, 2.5);

  ASSERT_OK(result);
  EXPECT_EQ(result->loss, 1.5);
  EXPECT_THAT(order_, ElementsAre(1, 0));
  EXPECT_THAT(seen_, ElementsAre(FloatEq(2), FloatEq(1.5)));
}

TEST_F(ClippedGradientSourceTest, NormIsOfEachGradientAlone) {
  ASSERT_OK(Compute(Kind::kNorm, 2));
  EXPECT_THAT(seen_, ElementsAre(FloatEq(2), FloatEq(2)));
}

TEST_F(ClippedGradientSourceTest, ValuesAreLimitedBeforeTheyAreReported) {
  ASSERT_OK(Compute(Kind::kValue, 3.5));
  EXPECT_THAT(seen_, ElementsAre(3.5f, 3));
}

TEST_F(ClippedGradientSourceTest, EndOfInputReportsNothing) {
  for (const Kind kind : {Kind::kGlobalNorm, Kind::kNorm}) {
    EXPECT_THAT(Compute(kind, 1, 1), StatusIs(absl::StatusCode::kOutOfRange));
    EXPECT_THAT(order_, ElementsAre());
  }
}

}  // namespace
}  // namespace lockstep
