#include "strategy/nccl/payload.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

Value Zeros(ElementType type, std::vector<int64_t> shape) {
  return *Value::Zeros(type, std::move(shape));
}

Value Integers(const std::vector<int64_t>& integers) {
  return Value::Of(ElementType::kInt64, {static_cast<int64_t>(integers.size())},
                   integers);
}

TEST(PayloadTest, LargeDenseLeavesAreThePayload) {
  const Value large = Zeros(ElementType::kFloat16, {2, 8});  // 32 bytes
  const Value small = Zeros(ElementType::kInt64, {3});
  const Slices slices = {{1, 2}, Zeros(ElementType::kFloat64, {2, 9}), {}};
  const std::vector<Leaf> leaves = {small, large, slices, large};
  EXPECT_EQ(PayloadOf(leaves, 32).size(), 2u);
  EXPECT_THAT(PayloadOf(leaves, 33), IsEmpty());

  auto read = ReadRest(WithoutPayload(leaves, 32));
  ASSERT_OK(read);
  EXPECT_EQ(read->leaves, leaves);
  EXPECT_THAT(read->payload, ElementsAre(1, 3));
  EXPECT_EQ(read->bytes(), 64u);
  ASSERT_EQ(read->memory().size(), 2u);
  EXPECT_EQ(read->memory()[1].data(),
            std::get<Value>(read->leaves[3]).bytes().data());
}

TEST(PayloadTest, LeavesWithoutElementsAreNot) {
  const std::vector<Leaf> leaves = {Zeros(ElementType::kFloat32, {0, 5})};
  EXPECT_THAT(PayloadOf(leaves, 0), IsEmpty());
  EXPECT_EQ(ReadRest(WithoutPayload(leaves, 0))->leaves, leaves);
}

TEST(PayloadTest, HeadersThatCannotBeAreRefused) {
  const Value header = Integers({2, 5});
  for (const std::vector<Leaf>& rest : std::vector<std::vector<Leaf>>{
           {},                                  // no places
           {Value::Scalar(1)},                  // of another type
           {Slices()},                          //
           {Integers({0})},                     // no such leaf
           {Integers({-1}), header},            //
           {Integers({1, 0}), header, header},  // out of order
           {Integers({0, 0}), header, header},  //
           {Integers({0}), Value::Scalar(1)},   // no header
           {Integers({0}), Integers({})},       // no type
           {Integers({0}), Integers({0, 5})},   //
           {Integers({0}), Integers({14, 5})},  //
           {Integers({0}), Integers({2, -5})},  // a shape that cannot be
           {Integers({0}), Integers({2, int64_t{1} << 60})}}) {
    EXPECT_THAT(ReadRest(rest), StatusIs(kInvalid));
  }
}

TEST(PayloadTest, PartsAreThoseOfTheRange) {
  const std::string texts[] = {"abc", "", "defgh", "i"};
  std::vector<absl::Span<const char>> memory(std::begin(texts),
                                             std::end(texts));
  const auto parts = [&](size_t begin, size_t end) {
    std::string found;
    EXPECT_OK(ForEachPart<const char>(
        memory, begin, end, [&](absl::Span<const char> part, size_t offset) {
          found += std::string(part.begin(), part.end()) + "@" +
                   std::to_string(offset) + " ";
          return absl::OkStatus();
        }));
    return found;
  };
  EXPECT_EQ(parts(0, 9), "abc@0 defgh@3 i@8 ");
  EXPECT_EQ(parts(1, 4), "bc@0 d@2 ");
  EXPECT_EQ(parts(3, 8), "defgh@0 ");
  EXPECT_EQ(parts(4, 6), "ef@0 ");
  EXPECT_EQ(parts(8, 20), "i@0 ");
  EXPECT_EQ(parts(2, 2), "");
}

TEST(PayloadTest, AnErrorStopsTheParts) {
  const std::vector<absl::Span<const char>> memory = {{"ab", 2}, {"cd", 2}};
  int calls = 0;
  EXPECT_THAT(ForEachPart<const char>(
                  memory, 0, 4,
                  [&](absl::Span<const char>, size_t) -> absl::Status {
                    ++calls;
                    return absl::InternalError("no");
                  }),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("no")));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace lockstep::strategy
