#include "worker/compute/tensor/element_type.h"

#include "gtest/gtest.h"

namespace lockstep::worker {
namespace {

TEST(ElementTypeTest, BytesAreThoseOfTheCppType) {
  EXPECT_EQ(ElementBytes(kElementTypeOf<uint8_t>), 1u);
  EXPECT_EQ(ElementBytes(kElementTypeOf<float>), 4u);
  EXPECT_EQ(ElementBytes(kElementTypeOf<double>), 8u);
}

TEST(ElementTypeTest, NamesAreThoseOfTensorFlow) {
  EXPECT_STREQ(ElementTypeName(ElementType::kUint8), "uint8");
  EXPECT_STREQ(ElementTypeName(ElementType::kFloat32), "float32");
  EXPECT_STREQ(ElementTypeName(ElementType::kFloat64), "float64");
}

TEST(ElementTypeTest, ValueThatIsNoTypeHasNoSize) {
  const auto none = static_cast<ElementType>(99);

  EXPECT_EQ(ElementBytes(none), 0u);
  EXPECT_STREQ(ElementTypeName(none), "unknown");
}

}  // namespace
}  // namespace lockstep::worker
