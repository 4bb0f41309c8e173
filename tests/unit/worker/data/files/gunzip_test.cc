#include "worker/data/files/gunzip.h"

#include <cstddef>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/data/files/idx_bytes.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Bytes;
using ::lockstep::testing::Gzip;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kLimit = 1 << 26;

Bytes Concatenate(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Bytes that do not compress, so that several chunks are needed.
Bytes Noise(size_t size) {
  Bytes bytes(size);
  uint32_t state = 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

TEST(GunzipTest, GzipIsToldByItsFirstTwoBytes) {
  EXPECT_TRUE(IsGzip(Bytes{0x1f, 0x8b}));
  EXPECT_FALSE(IsGzip(Bytes{0x1f}));
  EXPECT_FALSE(IsGzip(Bytes{0, 0, 8, 1}));
  EXPECT_FALSE(IsGzip({}));
}

TEST(GunzipTest, GivesBackWhatWasCompressed) {
  EXPECT_THAT(Gunzip(Gzip({1, 2, 3}), kLimit), IsOkAndHolds(Bytes{1, 2, 3}));
}

TEST(GunzipTest, EmptyContentIsNoError) {
  EXPECT_THAT(Gunzip(Gzip({}), kLimit), IsOkAndHolds(Bytes{}));
}

TEST(GunzipTest, ContentLongerThanOneChunkIsWhole) {
  const Bytes noise = Noise(3'500'000);

  const absl::StatusOr<Bytes> out = Gunzip(Gzip(noise), kLimit);

  ASSERT_OK(out);
  EXPECT_TRUE(*out == noise);
}

TEST(GunzipTest, ContentOfWholeChunksIsWhole) {
  const Bytes zeros(2 << 20, 0);

  const absl::StatusOr<Bytes> out = Gunzip(Gzip(zeros), kLimit);

  ASSERT_OK(out);
  EXPECT_TRUE(*out == zeros);
}

TEST(GunzipTest, MemoryIsBoundedByTheLimit) {
  const Bytes zeros(3 << 20, 0);

  const absl::StatusOr<Bytes> out = Gunzip(Gzip(zeros), 3 << 20);

  ASSERT_OK(out);
  EXPECT_LE(out->capacity(), (3u << 20) + 1);
}

TEST(GunzipTest, MembersAreJoined) {
  EXPECT_THAT(Gunzip(Concatenate(Gzip({1, 2}), Gzip({3})), kLimit),
              IsOkAndHolds(Bytes{1, 2, 3}));
}

TEST(GunzipTest, EveryTruncationIsFound) {
  const Bytes whole = Gzip({1, 2, 3, 4, 5});

  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(Gunzip(absl::MakeSpan(whole.data(), size), kLimit),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("truncated")))
        << size;
  }
}

TEST(GunzipTest, TrailingBytesAreCounted) {
  EXPECT_THAT(
      Gunzip(Concatenate(Gzip({1, 2}), {7, 7, 7}), kLimit),
      StatusIs(absl::StatusCode::kDataLoss,
               AllOf(HasSubstr("3 trailing bytes"), HasSubstr("fetch it"))));
}

TEST(GunzipTest, DamageIsFoundByTheChecksum) {
  Bytes bytes = Gzip({1, 2, 3});
  bytes[bytes.size() - 8] ^= 0xff;  // the first byte of the CRC

  EXPECT_THAT(Gunzip(bytes, kLimit),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
}

TEST(GunzipTest, OtherDataIsRefused) {
  EXPECT_THAT(Gunzip(Bytes{0, 0, 8, 1}, kLimit),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(GunzipTest, LimitItselfIsAllowed) {
  EXPECT_OK(Gunzip(Gzip(Bytes(1000, 7)), 1000));
}

TEST(GunzipTest, OneByteMoreThanTheLimitIsRefused) {
  EXPECT_THAT(Gunzip(Gzip(Bytes(1001, 7)), 1000),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("more than 1000 bytes")));
  EXPECT_THAT(Gunzip(Gzip({1}), 0),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST(GunzipTest, SmallFileThatUnpacksToMuchIsStoppedAtTheLimit) {
  const Bytes bomb = Gzip(Bytes(64 << 20, 0));

  EXPECT_THAT(Gunzip(bomb, 1 << 20),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

}  // namespace
}  // namespace lockstep::worker
