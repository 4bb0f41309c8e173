#include "strategy/gradients.h"

#include "tests/unit/strategy/strategy_unit_fixture.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

Value Floats(std::vector<int64_t> shape, const std::vector<float>& elements) {
  return Value::Of<float>(ElementType::kFloat32, std::move(shape), elements);
}

class GradientsTest : public TwoReplicas {};

TEST_F(GradientsTest, AGradientFitsItsVariableOrIsRowsOfIt) {
  const Variable table =
      strategy_->Create("table", Floats({3, 2}, {0, 0, 0, 0, 0, 0})).value();
  EXPECT_THAT(CheckGradient(Floats({3, 2}, {1, 2, 3, 4, 5, 6}), table), IsOk());
  EXPECT_THAT(
      CheckGradient(Slices{{2}, Floats({1, 2}, {1, 2}), std::nullopt}, table),
      IsOk());
  for (const Leaf& bad :
       std::vector<Leaf>{Floats({6}, {1, 2, 3, 4, 5, 6}),
                         Slices{{3}, Floats({1, 2}, {1, 2}), std::nullopt},
                         Slices{{0}, Floats({2}, {1, 2}), std::nullopt}}) {
    EXPECT_THAT(CheckGradient(bad, table),
                StatusIs(kRefused, HasSubstr("gradient of \"table\"")));
  }
}

TEST_F(GradientsTest, AScalarMultipliesDenseGradientsAndRows) {
  Leaf dense = Floats({2}, {1, -3});
  EXPECT_THAT(MultiplyBy(Number(0.5), "w", dense), IsOk());
  EXPECT_EQ(std::get<Value>(dense), Floats({2}, {0.5, -1.5}));
  Leaf rows = Slices{{4}, Floats({1, 2}, {1, 2}), std::nullopt};
  EXPECT_THAT(MultiplyBy(Number(3), "w", rows), IsOk());
  EXPECT_EQ(std::get<Slices>(rows).values, Floats({1, 2}, {3, 6}));
}

TEST_F(GradientsTest, AFactorOfAnotherShapeOrTypeIsRefused) {
  Leaf gradient = Floats({2}, {1, 2});
  for (const Value& factor :
       {Floats({1}, {2}), Value::Of<double>(ElementType::kFloat64, {}, {2})}) {
    EXPECT_THAT(MultiplyBy(factor, "w", gradient),
                StatusIs(kRefused, HasSubstr("gradient of \"w\"")));
  }
  EXPECT_EQ(std::get<Value>(gradient), Floats({2}, {1, 2}));
}

}  // namespace
}  // namespace lockstep::strategy
