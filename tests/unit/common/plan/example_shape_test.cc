#include "common/plan/example_shape.h"

#include "gtest/gtest.h"

namespace lockstep {
namespace {

TEST(ExampleShapeTest, MessagesNameWhatAnExampleIs) {
  EXPECT_EQ((ExampleShape{28, 32, 3, 10}.ToString()), "28x32x3, 10 classes");
  EXPECT_EQ((ExampleShape{.tokens = 64}.ToString()), "texts of 64 bytes");
}

}  // namespace
}  // namespace lockstep
