#include "strategy/variables/variable.h"

#include "gtest/gtest.h"
#include "strategy/variables/variable_store.h"

namespace lockstep::strategy {
namespace {

TEST(VariableTest, CopiesAreNamedAfterTheVariable) {
  VariableStore store(Kind::kMirrored, {{"cpu:0", "cpu:1"}});
  VariableOptions options;
  options.name = "v";
  options.initializer = Starting(Value::Scalar(3));
  EXPECT_EQ(*options.initializer(), Value::Scalar(3));
  const Variable v = *store.Make(options, Value::Scalar(3));
  EXPECT_EQ(v.name(), "v");
  EXPECT_EQ(v.CopyName(0), "v");
  EXPECT_EQ(v.CopyName(1), "v/replica_1");
  EXPECT_EQ(v.type(), ElementType::kFloat32);
}

}  // namespace
}  // namespace lockstep::strategy
