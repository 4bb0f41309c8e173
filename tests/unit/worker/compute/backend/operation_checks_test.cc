#include "worker/compute/backend/operation_checks.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;
constexpr ElementType kFloat = ElementType::kFloat32;
constexpr ElementType kDouble = ElementType::kFloat64;
constexpr ElementType kByte = ElementType::kUint8;
constexpr int64_t kHuge = int64_t{1} << 33;

// A tensor that is only looked at from outside.
ConstTensor Seen(const Shape& shape, ElementType type = kFloat) {
  static const double memory = 0;
  return ConstTensor(type, shape, &memory);
}

absl::Status Conv(const ConstTensor& images, const ConstTensor& filters,
                  const ConstTensor& out) {
  return CheckConv2D("Conv2D", {"images", images}, {"filters", filters},
                     {"out", out}, {});
}

absl::Status Pool(const ConstTensor& in, const ConstTensor& out,
                  const ConstTensor& argmax) {
  return CheckMaxPool2x2("MaxPool2x2", {"in", in}, {"out", out},
                         {"argmax", argmax});
}

TEST(CheckIsTest, MessageSaysWhatIsAndWhatMustBe) {
  EXPECT_THAT(CheckIs("MatMul", {"out", Seen({3, 2}, kDouble)}, kFloat, {2, 3}),
              StatusIs(kInvalid,
                       "MatMul: out must be float32 [2,3], got float64 "
                       "[3,2]"));
}

TEST(CheckIsTest, MissingMemoryIsRefusedUnlessNoneIsNeeded) {
  const ConstTensor none(kFloat, {2}, nullptr);
  const ConstTensor empty(kFloat, {0}, nullptr);

  EXPECT_THAT(CheckIs("Relu", {"in", none}, kFloat, {2}),
              StatusIs(kInvalid, "Relu: in has no memory"));
  EXPECT_THAT(CheckIs("Relu", {"in", empty}, kFloat, {0}), IsOk());
}

TEST(CheckFloatsTest, RankAndTypeAreChecked) {
  EXPECT_THAT(CheckFloats("Op", {"x", Seen({2, 2})}, 2), IsOk());
  EXPECT_THAT(CheckFloats("Op", {"x", Seen({2})}, 2),
              StatusIs(kInvalid, HasSubstr("x must be of rank 2, got")));
  EXPECT_THAT(CheckFloats("Op", {"x", Seen({2, 2}, kByte)}, 2),
              StatusIs(kInvalid, HasSubstr("must be float32 or float64")));
  EXPECT_THAT(CheckFloats("Op", {"x", Seen({-1, 2})}, 2),
              StatusIs(kInvalid, HasSubstr("possible shape")));
}

TEST(CheckMatMulTest, TranspositionSwapsSides) {
  EXPECT_THAT(CheckMatMul(Seen({2, 3}), Seen({3, 5}), {}, Seen({2, 5})),
              IsOk());
  EXPECT_THAT(
      CheckMatMul(Seen({3, 2}), Seen({5, 3}),
                  {.transpose_a = true, .transpose_b = true}, Seen({2, 5})),
      IsOk());
}

TEST(CheckMatMulTest, EachMismatchNamesItsArgument) {
  EXPECT_THAT(CheckMatMul(Seen({2}), Seen({3, 5}), {}, Seen({2, 5})),
              StatusIs(kInvalid, HasSubstr("a must be")));
  EXPECT_THAT(CheckMatMul(Seen({2, 3}), Seen({4, 5}), {}, Seen({2, 5})),
              StatusIs(kInvalid, HasSubstr("b must be float32 [3,5]")));
  EXPECT_THAT(
      CheckMatMul(Seen({2, 3}), Seen({3, 5}, kDouble), {}, Seen({2, 5})),
      StatusIs(kInvalid, HasSubstr("b must be float32 [3,5]")));
  EXPECT_THAT(CheckMatMul(Seen({2, 3}), Seen({3, 5}), {}, Seen({5, 2})),
              StatusIs(kInvalid, HasSubstr("out must be float32 [2,5]")));
}

TEST(CheckMatMulTest, SidesBeyondBlasAreRefused) {
  EXPECT_THAT(CheckMatMul(Seen({kHuge, 1}), Seen({1, 1}), {}, Seen({kHuge, 1})),
              StatusIs(kInvalid, HasSubstr("a must be at most 2147483647")));
  EXPECT_THAT(CheckMatMul(Seen({1, 1}), Seen({1, kHuge}), {}, Seen({1, kHuge})),
              StatusIs(kInvalid, HasSubstr("b must be at most 2147483647")));
}

TEST(CheckBiasTest, VectorIsAsLongAsARow) {
  EXPECT_THAT(CheckBias("Op", {"x", Seen({2, 7, 3})}, {"b", Seen({3})}),
              IsOk());
  EXPECT_THAT(CheckBias("Op", {"x", Seen({2, 3})}, {"b", Seen({2})}),
              StatusIs(kInvalid, HasSubstr("b must be float32 [3]")));
  EXPECT_THAT(CheckBias("Op", {"x", Seen({})}, {"b", Seen({1})}),
              StatusIs(kInvalid, HasSubstr("x must be of rank 1 or more")));
}

TEST(CheckSameTest, TypeAndShapeAreShared) {
  EXPECT_THAT(CheckSame("Op", {"x", Seen({2})}, {{"y", Seen({2})}}), IsOk());
  EXPECT_THAT(CheckSame("Op", {"x", Seen({2})}, {{"y", Seen({2}, kDouble)}}),
              StatusIs(kInvalid, HasSubstr("y must be float32 [2]")));
  EXPECT_THAT(
      CheckSame("Op", {"x", Seen({2}, kByte)}, {{"y", Seen({2}, kByte)}}),
      StatusIs(kInvalid, HasSubstr("x must be float32 or float64")));
}

TEST(CheckConv2DTest, SamePaddingKeepsHeightAndWidth) {
  EXPECT_THAT(Conv(Seen({2, 5, 7, 3}), Seen({3, 1, 3, 4}), Seen({2, 5, 7, 4})),
              IsOk());
}

TEST(CheckConv2DTest, EachMismatchNamesItsArgument) {
  const ConstTensor images = Seen({2, 5, 7, 3});
  const ConstTensor filters = Seen({3, 3, 3, 4});
  EXPECT_THAT(Conv(Seen({2, 5, 7}), filters, Seen({2, 5, 7, 4})),
              StatusIs(kInvalid, HasSubstr("images must be of rank 4")));
  EXPECT_THAT(Conv(images, Seen({2, 3, 3, 4}), Seen({2, 5, 7, 4})),
              StatusIs(kInvalid, HasSubstr("filters must be of odd height")));
  EXPECT_THAT(Conv(images, Seen({3, 0, 3, 4}), Seen({2, 5, 7, 4})),
              StatusIs(kInvalid, HasSubstr("filters must be of odd height")));
  EXPECT_THAT(Conv(images, Seen({3, 3, 2, 4}), Seen({2, 5, 7, 4})),
              StatusIs(kInvalid, HasSubstr("filters must be float32 [3,3,3")));
  EXPECT_THAT(Conv(images, filters, Seen({2, 3, 5, 4})),
              StatusIs(kInvalid, HasSubstr("out must be float32 [2,5,7,4]")));
}

TEST(CheckConv2DTest, MatricesBeyondBlasAreRefused) {
  EXPECT_THAT(
      Conv(Seen({0, kHuge, 1, 1}), Seen({1, 1, 1, 1}), Seen({0, kHuge, 1, 1})),
      StatusIs(kInvalid, HasSubstr("images must be at most")));
  EXPECT_THAT(
      Conv(Seen({0, 1, 1, 1}), Seen({1, 1, 1, kHuge}), Seen({0, 1, 1, kHuge})),
      StatusIs(kInvalid, HasSubstr("filters must be at most")));
}

TEST(CheckMaxPoolTest, SizesAreHalvedRoundingUp) {
  EXPECT_THAT(
      Pool(Seen({2, 5, 4, 3}), Seen({2, 3, 2, 3}), Seen({2, 3, 2, 3}, kByte)),
      IsOk());
}

TEST(CheckMaxPoolTest, EachMismatchNamesItsArgument) {
  EXPECT_THAT(Pool(Seen({2, 5}), Seen({2, 3}), Seen({2, 3}, kByte)),
              StatusIs(kInvalid, HasSubstr("in must be of rank 4")));
  EXPECT_THAT(
      Pool(Seen({2, 5, 4, 3}), Seen({2, 2, 2, 3}), Seen({2, 3, 2, 3}, kByte)),
      StatusIs(kInvalid, HasSubstr("out must be float32 [2,3,2,3]")));
  EXPECT_THAT(Pool(Seen({2, 5, 4, 3}), Seen({2, 3, 2, 3}), Seen({2, 3, 2, 3})),
              StatusIs(kInvalid, HasSubstr("argmax must be uint8 [2,3,2,3]")));
}

TEST(CheckLabelsTest, OneLabelPerRowKnownToBeInRange) {
  const auto labels = [](int64_t count, int64_t bound) {
    return Seen({count}, ElementType::kInt32).WithBound(bound);
  };
  EXPECT_THAT(CheckLabels("Op", Seen({2, 3}), labels(2, 3)), IsOk());
  EXPECT_THAT(CheckLabels("Op", Seen({2, 3}), labels(2, 1)), IsOk());
  EXPECT_THAT(CheckLabels("Op", Seen({0, 3}), labels(0, 0)), IsOk());
  EXPECT_THAT(
      CheckLabels("Op", Seen({2, 3}), labels(1, 3)),
      StatusIs(kInvalid, "Op: labels must be int32 [2], got int32 [1]"));
  EXPECT_THAT(CheckLabels("Op", Seen({2, 3}), Seen({2})),
              StatusIs(kInvalid, HasSubstr("got float32 [2]")));
  EXPECT_THAT(CheckLabels("Op", Seen({2, 3}), labels(2, 4)),
              StatusIs(kInvalid, HasSubstr("in [0, 3), got [0, 4)")));
  EXPECT_THAT(CheckLabels("Op", Seen({2, 3}), labels(2, 0)),
              StatusIs(kInvalid, HasSubstr("in [0, 3), got [0, 0)")));
}

TEST(CheckNumberTest, OnlyOneDoubleIsTaken) {
  EXPECT_THAT(CheckNumber("Op", {"loss", Seen({1}, kDouble)}), IsOk());
  EXPECT_THAT(
      CheckNumber("Op", {"loss", Seen({1})}),
      StatusIs(kInvalid, "Op: loss must be float64 [1], got float32 [1]"));
}

}  // namespace
}  // namespace lockstep::worker
