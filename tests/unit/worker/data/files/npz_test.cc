#include "worker/data/files/npz.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/data/files/npy_bytes.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Bytes;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::NpzBytes;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kMaxBytes = 1 << 20;

TEST(NpzTest, MemberIsReadByItsName) {
  const Bytes archive =
      NpzBytes({{"x.npy", {1, 2, 3}}, {"y.npy", {4}}, {"note.txt", {5}}});

  EXPECT_TRUE(IsZip(archive));
  EXPECT_THAT(ReadNpzMember(archive, "x", kMaxBytes),
              IsOkAndHolds(Bytes{1, 2, 3}));
  EXPECT_THAT(ReadNpzMember(archive, "y", kMaxBytes), IsOkAndHolds(Bytes{4}));
}

TEST(NpzTest, OnlyMemberNeedsNoName) {
  EXPECT_THAT(ReadNpzMember(NpzBytes({{"arr_0.npy", {7}}}), "", kMaxBytes),
              IsOkAndHolds(Bytes{7}));
}

TEST(NpzTest, MembersAreNamedWhereNoneIsChosen) {
  const Bytes archive = NpzBytes({{"x.npy", {1}}, {"y.npy", {2}}});

  for (const char* name : {"", "z", "x.npy", "../x"}) {
    EXPECT_THAT(ReadNpzMember(archive, name, kMaxBytes),
                StatusIs(absl::StatusCode::kNotFound,
                         AllOf(HasSubstr("x, y"), HasSubstr(".npz:NAME"))))
        << name;
  }
}

TEST(NpzTest, ArchiveWithoutArraysIsRefused) {
  EXPECT_THAT(ReadNpzMember(NpzBytes({{"note.txt", {5}}}), "", kMaxBytes),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("has no array")));
}

TEST(NpzTest, MemberAboveTheLimitIsRefused) {
  const Bytes archive = NpzBytes({{"x.npy", Bytes(100000)}});

  EXPECT_LT(archive.size(), 1000U);
  EXPECT_THAT(ReadNpzMember(archive, "x", 99999),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("100000 bytes")));
  EXPECT_OK(ReadNpzMember(archive, "x", 100000));
}

TEST(NpzTest, DamageIsFound) {
  const Bytes content(1000, 3);
  const Bytes archive = NpzBytes({{"x.npy", content}});
  for (size_t i = 0; i < archive.size(); ++i) {
    Bytes damaged = archive;
    damaged[i] ^= 0x55;
    const auto read = ReadNpzMember(damaged, "x", kMaxBytes);
    // Bytes that say nothing of the content may change.
    EXPECT_TRUE(!read.ok() || *read == content) << i;
  }
  EXPECT_THAT(
      ReadNpzMember(Bytes(archive.begin(), archive.end() - 30), "x", kMaxBytes),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("fetch it")));
}

}  // namespace
}  // namespace lockstep::worker
