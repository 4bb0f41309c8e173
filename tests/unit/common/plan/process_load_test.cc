#include "common/plan/process_load.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ProcessLoadTest, EveryFigureTellsTwoLoadsApart) {
  const ProcessLoad load{1, 2, 0.5};
  EXPECT_EQ(load, (ProcessLoad{1, 2, 0.5}));
  EXPECT_NE(load, (ProcessLoad{7, 2, 0.5}));
  EXPECT_NE(load, (ProcessLoad{1, 7, 0.5}));
  EXPECT_NE(load, (ProcessLoad{1, 2, 0.75}));
}

}  // namespace
}  // namespace lockstep
