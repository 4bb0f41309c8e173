#include "server/state/file/state_header.h"

#include <array>
#include <cstddef>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

const StateHeader kHeader = {"mnist-17", 2, 0xfeedfacecafebeef, 1 << 21};

class StateHeaderTest : public ::testing::Test {
 protected:
  StateHeaderTest() { EncodeStateHeader(kHeader, absl::MakeSpan(bytes_)); }

  std::array<std::byte, StateHeader::kSize> bytes_ = {};
};

TEST_F(StateHeaderTest, ComesBackAsItWas) {
  EXPECT_THAT(DecodeStateHeader(bytes_), IsOkAndHolds(kHeader));
}

TEST_F(StateHeaderTest, LongestJobIdFits) {
  StateHeader header = kHeader;
  header.job_id = std::string(StateHeader::kMaxJobIdLength, 'j');

  EncodeStateHeader(header, absl::MakeSpan(bytes_));

  EXPECT_THAT(DecodeStateHeader(bytes_), IsOkAndHolds(header));
}

TEST_F(StateHeaderTest, AnyDamagedByteIsNoticed) {
  for (size_t i = 0; i < 140; ++i) {
    bytes_[i] ^= std::byte{0x40};
    EXPECT_FALSE(DecodeStateHeader(bytes_).ok()) << i;
    bytes_[i] ^= std::byte{0x40};
  }
  EXPECT_OK(DecodeStateHeader(bytes_));
}

TEST_F(StateHeaderTest, TruncatedIsDataLoss) {
  EXPECT_THAT(
      DecodeStateHeader(absl::MakeSpan(bytes_).first(bytes_.size() - 1)),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("255 of 256 bytes")));
  EXPECT_THAT(DecodeStateHeader({}), StatusIs(absl::StatusCode::kDataLoss));
}

TEST_F(StateHeaderTest, ForeignBytesAreDataLoss) {
  bytes_.fill(std::byte{0x7f});

  EXPECT_THAT(
      DecodeStateHeader(bytes_),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("not a state file")));
}

TEST_F(StateHeaderTest, OtherVersionIsNamed) {
  bytes_[8] = std::byte{9};

  EXPECT_THAT(DecodeStateHeader(bytes_),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("version 9"), HasSubstr("needs 4"))));
}

TEST(CheckStateHeaderTest, DifferenceIsNamed) {
  const auto expect_refused = [](const StateHeader& found,
                                 const std::string& message) {
    EXPECT_THAT(
        CheckStateHeader(found, kHeader),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr(message)));
  };
  StateHeader found = kHeader;
  found.job_id = "other";
  expect_refused(found, "job other, not mnist-17");
  found = kHeader;
  found.task_index = 3;
  expect_refused(found, "ps task 3, not 2");
  found = kHeader;
  found.layout_hash = 1;
  expect_refused(found, "layout 1, not feedfacecafebeef");
  found = kHeader;
  found.file_size = 5;
  expect_refused(found, "size 5, not 2097152");
  EXPECT_OK(CheckStateHeader(kHeader, kHeader));
}

TEST(ValidateJobIdTest, FileNamesAreAccepted) {
  for (const char* id : {"j", "mnist-17", "A.b_c-9", "7"}) {
    EXPECT_OK(ValidateJobId(id)) << id;
  }
}

TEST(ValidateJobIdTest, OtherNamesAreRefused) {
  for (const std::string& id :
       {std::string(), std::string("../x"), std::string("a/b"),
        std::string(".hidden"), std::string("-x"), std::string("a b"),
        std::string("a\0b", 3), std::string("\xc3\xa4"),
        std::string(StateHeader::kMaxJobIdLength + 1, 'j')}) {
    EXPECT_THAT(ValidateJobId(id), StatusIs(absl::StatusCode::kInvalidArgument,
                                            HasSubstr("job_id")));
  }
}

}  // namespace
}  // namespace lockstep::server
