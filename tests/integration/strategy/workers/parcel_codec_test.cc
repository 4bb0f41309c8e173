#include "strategy/workers/parcel_codec.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::vector<Leaf> SomeLeaves() {
  return {Value::Scalar(3), *Value::Zeros(ElementType::kInt64, {0, 2}),
          Slices{{4, 1},
                 Value::Of<float>(ElementType::kFloat32, {2, 1}, {5, 6}),
                 std::vector<int64_t>{9, 1}},
          Slices{{}, *Value::Zeros(ElementType::kBFloat16, {0, 3}), {}},
          Value::Of<double>(ElementType::kFloat64, {2}, {1.5, -2})};
}

std::string PayloadOf(const std::vector<Leaf>& leaves) {
  std::string payload;
  ForEachPiece(leaves, [&](absl::Span<const std::byte> piece) {
    payload.append(reinterpret_cast<const char*>(piece.data()), piece.size());
    return true;
  });
  return payload;
}

TEST(ParcelCodecTest, LeavesComeBackFromPiecesOfAnyLength) {
  const std::vector<Leaf> leaves = SomeLeaves();
  const std::string payload = PayloadOf(leaves);
  v1::ParcelHeader header;
  EncodeLeaves(leaves, header);
  for (const size_t piece : {1, 3, 8, 1000}) {
    auto reader = ParcelReader::Make(header);
    ASSERT_THAT(reader, IsOk());
    for (size_t at = 0; at < payload.size(); at += piece) {
      ASSERT_THAT(reader->Append(payload.substr(at, piece)), IsOk());
    }
    const auto read = reader->Finish();
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(*read, leaves) << piece;
  }
}

TEST(ParcelCodecTest, PiecesAreAtMostAMebibyte) {
  const std::vector<Leaf> leaves = {
      *Value::Zeros(ElementType::kFloat32, {(1 << 18) + 1})};
  std::vector<size_t> sizes;
  ForEachPiece(leaves, [&](absl::Span<const std::byte> piece) {
    sizes.push_back(piece.size());
    return true;
  });
  EXPECT_EQ(sizes, (std::vector<size_t>{1 << 20, 4}));
}

TEST(ParcelCodecTest, NothingIsSentAfterAPieceThatFails) {
  int pieces = 0;
  ForEachPiece(SomeLeaves(), [&](absl::Span<const std::byte>) {
    ++pieces;
    return false;
  });
  EXPECT_EQ(pieces, 1);
}

TEST(ParcelCodecTest, MissingAndSuperfluousBytesAreRefused) {
  for (const Leaf& leaf : SomeLeaves()) {
    const std::string payload = PayloadOf({leaf});
    v1::ParcelHeader header;
    EncodeLeaves({leaf}, header);
    auto longer = ParcelReader::Make(header);
    EXPECT_THAT(longer->Append(payload + "x"),
                StatusIs(kInvalid, HasSubstr("1 bytes more")));
    if (payload.empty()) continue;
    auto shorter = ParcelReader::Make(header);
    ASSERT_THAT(shorter->Append(payload.substr(1)), IsOk());
    EXPECT_THAT(shorter->Finish().status(),
                StatusIs(kInvalid, HasSubstr("bytes")));
  }
}

TEST(ParcelCodecTest, IndicesWithoutRowsAreRefusedWhenTheyAreCutOff) {
  const Leaf leaf =
      Slices{{1, 2}, *Value::Zeros(ElementType::kFloat32, {2, 0}), {}};
  v1::ParcelHeader header;
  EncodeLeaves({leaf}, header);
  auto reader = ParcelReader::Make(header);
  ASSERT_THAT(reader->Append(std::string(8, '\0')), IsOk());
  EXPECT_THAT(reader->Finish().status(),
              StatusIs(kInvalid, HasSubstr("indices")));
}

TEST(ParcelCodecTest, LeavesThatCannotBeAreRefused) {
  struct Case {
    std::string type;
    std::vector<int64_t> shape;
    bool is_slices;
    std::string says;
  };
  const Case cases[] = {
      {"complex64", {1}, false, "complex64"},
      {"float32", {-1}, false, "[-1]"},
      {"float32", {int64_t{1} << 40, 2}, false, "2^40"},
      {"float32", {}, true, "no rows"},
  };
  for (const Case& wrong : cases) {
    v1::ParcelHeader header;
    v1::LeafHeader& leaf = *header.add_leaves();
    leaf.set_type(wrong.type);
    leaf.mutable_shape()->Add(wrong.shape.begin(), wrong.shape.end());
    leaf.set_is_slices(wrong.is_slices);
    EXPECT_THAT(ParcelReader::Make(header).status(),
                StatusIs(kInvalid, HasSubstr(wrong.says)));
  }
}

// A header may promise what no memory holds.
TEST(ParcelCodecTest, MemoryIsTakenAsBytesCome) {
  v1::ParcelHeader header;
  v1::LeafHeader& leaf = *header.add_leaves();
  leaf.set_type("float32");
  leaf.add_shape(int64_t{1} << 38);
  auto reader = ParcelReader::Make(header);
  ASSERT_THAT(reader, IsOk());
  ASSERT_THAT(reader->Append("abcd"), IsOk());
  EXPECT_THAT(reader->Finish().status(),
              StatusIs(kInvalid, HasSubstr("4 bytes")));
}

}  // namespace
}  // namespace lockstep::strategy
