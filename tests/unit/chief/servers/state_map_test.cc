#include "chief/servers/state_map.h"

#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

TEST(StateMapTest, NamesInCheckpointsFollowTheVariable) {
  StateMap map;
  map.plan.variables = {{.name = "w"}, {.name = "layer/b"}};
  map.slots = {{}, {"m", "v"}};

  EXPECT_EQ(map.TensorName(0, 0), "w");
  EXPECT_EQ(map.TensorName(1, 0), "layer/b");
  EXPECT_EQ(map.TensorName(1, 1), TensorNameOf("layer/b", "m"));
  EXPECT_EQ(map.TensorName(1, 2), TensorNameOf("layer/b", "v"));
  EXPECT_EQ(map.KeysName(0), TensorNameOf("w", kKeysName));
}

}  // namespace
}  // namespace lockstep::chief
