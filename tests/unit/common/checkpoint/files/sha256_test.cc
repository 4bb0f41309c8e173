#include "common/checkpoint/files/sha256.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;

TEST(Sha256Test, PublishedExamplesAgree) {
  ScratchDirectory scratch;
  WriteText(scratch / "empty", "");
  WriteText(scratch / "abc", "abc");
  WriteText(scratch / "million", std::string(1'000'000, 'a'));

  EXPECT_THAT(
      Sha256OfFile(scratch / "empty"),
      IsOkAndHolds(
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
  EXPECT_THAT(
      Sha256OfFile(scratch / "abc"),
      IsOkAndHolds(
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
  EXPECT_THAT(
      Sha256OfFile(scratch / "million"),
      IsOkAndHolds(
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
}

TEST(Sha256Test, EveryPieceOfALongFileCounts) {
  ScratchDirectory scratch;
  WriteText(scratch / "f", std::string(3 << 20, 'a') + "tail");
  const auto before = Sha256OfFile(scratch / "f");
  ASSERT_OK(before);

  for (size_t position : {size_t{0}, size_t{1} << 20, (size_t{3} << 20) + 3}) {
    FlipBit(scratch / "f", position);
    const auto changed = Sha256OfFile(scratch / "f");
    FlipBit(scratch / "f", position);

    ASSERT_OK(changed);
    EXPECT_NE(*changed, *before) << position;
  }
  EXPECT_THAT(Sha256OfFile(scratch / "f"), IsOkAndHolds(*before));
}

TEST(Sha256Test, MissingFileAndDirectoryAreErrors) {
  ScratchDirectory scratch;

  EXPECT_THAT(Sha256OfFile(scratch / "none"),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Sha256OfFile(scratch.path()),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(Sha256Test, OnlyLowerCaseHexOfTheRightLengthIsAHash) {
  EXPECT_TRUE(IsSha256Hex(std::string(64, 'a')));
  EXPECT_TRUE(IsSha256Hex(std::string(64, '0')));
  EXPECT_FALSE(IsSha256Hex(""));
  EXPECT_FALSE(IsSha256Hex(std::string(63, 'a')));
  EXPECT_FALSE(IsSha256Hex(std::string(65, 'a')));
  EXPECT_FALSE(IsSha256Hex(std::string(64, 'A')));
  EXPECT_FALSE(IsSha256Hex(std::string(64, 'g')));
}

}  // namespace
}  // namespace lockstep
