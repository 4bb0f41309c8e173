#include "worker/data/files/idx.h"

#include <cstddef>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/data/files/idx_bytes.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Bytes;
using ::lockstep::testing::IdxBytes;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(IdxTest, OneDimensionIsRead) {
  const absl::StatusOr<IdxHeader> header =
      ParseIdxHeader(IdxBytes({3}, {7, 0, 255}));

  ASSERT_OK(header);
  EXPECT_THAT(header->dimensions, ElementsAre(3));
}

TEST(IdxTest, FourDimensionsAreReadInOrder) {
  const absl::StatusOr<IdxHeader> header =
      ParseIdxHeader(IdxBytes({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6}));

  ASSERT_OK(header);
  EXPECT_THAT(header->dimensions, ElementsAre(1, 2, 3, 1));
}

TEST(IdxTest, DimensionsAreBigEndian) {
  const absl::StatusOr<IdxHeader> header =
      ParseIdxHeader(IdxBytes({0x010203}, Bytes(0x010203, 9)));

  ASSERT_OK(header);
  EXPECT_THAT(header->dimensions, ElementsAre(0x010203));
}

TEST(IdxTest, HeaderTellsWhereTheValuesBegin) {
  const absl::StatusOr<IdxHeader> header =
      ParseIdxHeader(IdxBytes({1, 2, 1}, {5, 6}));

  ASSERT_OK(header);
  EXPECT_EQ(header->size, 16u);
}

TEST(IdxTest, ArrayWithoutValuesIsNoError) {
  const absl::StatusOr<IdxHeader> header =
      ParseIdxHeader(IdxBytes({0, 28, 28}, {}));

  ASSERT_OK(header);
  EXPECT_THAT(header->dimensions, ElementsAre(0, 28, 28));
}

TEST(IdxTest, EveryTruncationIsRefused) {
  const Bytes whole = IdxBytes({2, 2}, {1, 2, 3, 4});

  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(ParseIdxHeader(absl::MakeSpan(whole.data(), size)).ok())
        << size;
  }
}

TEST(IdxTest, TruncatedHeaderTellsBothSizes) {
  Bytes bytes = IdxBytes({2, 2}, {});
  bytes.pop_back();

  EXPECT_THAT(ParseIdxHeader(bytes),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("12 bytes"), HasSubstr("11 are"))));
}

TEST(IdxTest, TooFewValuesTellExpectedAndFound) {
  EXPECT_THAT(ParseIdxHeader(IdxBytes({2, 3}, {1, 2, 3, 4, 5})),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("2 x 3"), HasSubstr("need 6 bytes"),
                             HasSubstr("5 follow"))));
}

TEST(IdxTest, TrailingBytesTellExpectedAndFound) {
  EXPECT_THAT(
      ParseIdxHeader(IdxBytes({2}, {1, 2, 3})),
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr("need 2 bytes"), HasSubstr("3 follow"))));
}

TEST(IdxTest, OverflowingDimensionsAreRefused) {
  const uint32_t most = 0xffffffff;

  EXPECT_THAT(ParseIdxHeader(IdxBytes({most, most, most}, {1})),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("4294967295 x 4294967295"),
                             HasSubstr("more than 2^64"))));
  // 2^32 * 2^32 is 0 in 64 bits, which is what follows.
  EXPECT_THAT(ParseIdxHeader(IdxBytes({1u << 31, 2, 1u << 31, 2}, {})),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(IdxTest, HugeDimensionsAllocateNothing) {
  EXPECT_THAT(ParseIdxHeader(IdxBytes({0xffffffff, 0x7fffffff}, {1})),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(IdxTest, OtherElementTypesAreRefusedByName) {
  EXPECT_THAT(ParseIdxHeader(IdxBytes({1}, {0, 0, 0, 0}, 0x0d)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("0x0d (float)"), HasSubstr("0x08"))));
  EXPECT_THAT(ParseIdxHeader(IdxBytes({1}, {0}, 0x09)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("0x09 (signed byte)")));
  EXPECT_THAT(
      ParseIdxHeader(IdxBytes({1}, {0}, 0x42)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0x42 (no type")));
}

TEST(IdxTest, NoDimensionAndTooManyAreRefused) {
  EXPECT_THAT(
      ParseIdxHeader(IdxBytes({}, {1})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 dimensions")));
  EXPECT_THAT(ParseIdxHeader(IdxBytes({1, 1, 1, 1, 1}, {1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("5 dimensions; 1 to 4")));
}

TEST(IdxTest, OtherFilesAreRefused) {
  EXPECT_THAT(ParseIdxHeader(Bytes{0x89, 'P', 'N', 'G', 1, 2, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("begins with 0x89 0x50")));
  EXPECT_THAT(ParseIdxHeader({}), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("not IDX data: 0 bytes")));
}

}  // namespace
}  // namespace lockstep::worker
