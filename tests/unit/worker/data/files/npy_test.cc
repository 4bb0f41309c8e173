#include "worker/data/files/npy.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/data/files/npy_bytes.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Bytes;
using ::lockstep::testing::NpyBytes;
using ::lockstep::testing::NpyText;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(NpyTest, HeaderOfNumPyIsRead) {
  const Bytes bytes = NpyBytes(NpyText("<f4", "(2, 1)"), Bytes(8));

  const auto header = ParseNpyHeader(bytes);

  ASSERT_OK(header);
  EXPECT_EQ(header->type, NumberType::kFloat32);
  EXPECT_THAT(header->dimensions, ElementsAre(2, 1));
  EXPECT_EQ(header->size, bytes.size() - 8);
}

TEST(NpyTest, HeaderThatIsMadeIsRead) {
  for (const std::vector<int64_t>& dimensions :
       std::vector<std::vector<int64_t>>{{2}, {1, 1000000}, {1, 1, 1, 1}}) {
    const std::string made = MakeNpyHeader(NumberType::kFloat64, dimensions);
    EXPECT_EQ(made.size() % 64, 0U);
    Bytes bytes(made.begin(), made.end());
    size_t values = 8;
    for (const int64_t dimension : dimensions) values *= dimension;
    bytes.resize(bytes.size() + values);

    const auto header = ParseNpyHeader(bytes);

    ASSERT_OK(header);
    EXPECT_EQ(header->type, NumberType::kFloat64);
    EXPECT_EQ(header->dimensions, dimensions);
  }
}

TEST(NpyTest, EveryVersionAndEveryOrderOfEntriesIsRead) {
  for (const uint8_t version : {1, 2, 3}) {
    const auto header = ParseNpyHeader(
        NpyBytes("{\"shape\":(3,),\"fortran_order\":False,\"descr\":\"<i8\"}\n",
                 Bytes(24), version));
    ASSERT_OK(header) << int{version};
    EXPECT_EQ(header->type, NumberType::kInt64);
    EXPECT_THAT(header->dimensions, ElementsAre(3));
  }
}

TEST(NpyTest, TypeThatIsNoLittleEndianNumberIsNamed) {
  for (const char* type : {">f4", "|O", "<U5", "<c8", "<f16", ""}) {
    EXPECT_THAT(ParseNpyHeader(NpyBytes(NpyText(type, "(1,)"), Bytes(4))),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("\"" + std::string(type) + "\"")));
  }
}

TEST(NpyTest, MessageHasNoBytesOfAnotherCharacterSet) {
  EXPECT_THAT(ParseNpyHeader(NpyBytes(NpyText("\xFC\x1B", "(1,)"), Bytes(4))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("type \"\\xfc\\x1b\", not")));
}

TEST(NpyTest, RecordsAreRefused) {
  EXPECT_THAT(
      ParseNpyHeader(NpyBytes("{'descr': [('x', '<f4')], 'fortran_order': "
                              "False, 'shape': (1,), }\n",
                              Bytes(4))),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("plain array")));
}

TEST(NpyTest, FortranOrderIsRefusedWhereItMatters) {
  const std::string begin = "{'descr': '<f4', 'fortran_order': True, 'shape': ";

  EXPECT_OK(ParseNpyHeader(NpyBytes(begin + "(2,), }\n", Bytes(8))));
  EXPECT_THAT(ParseNpyHeader(NpyBytes(begin + "(2, 1), }\n", Bytes(8))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("ascontiguousarray")));
}

TEST(NpyTest, ValuesMustBeAsManyAsTheShapeSays) {
  for (const size_t size : {0, 7, 9}) {
    EXPECT_THAT(ParseNpyHeader(NpyBytes(NpyText("<f4", "(2,)"), Bytes(size))),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("8 bytes")));
  }
  EXPECT_THAT(ParseNpyHeader(NpyBytes(
                  NpyText("<f4", "(4611686018427387904, 4)"), Bytes(0))),
              StatusIs(absl::StatusCode::kDataLoss));
}

TEST(NpyTest, NumbersOfDimensionsHaveBounds) {
  EXPECT_THAT(
      ParseNpyHeader(NpyBytes(NpyText("<f4", "()"), Bytes(4))),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 dimensions")));
  EXPECT_OK(ParseNpyHeader(
      NpyBytes(NpyText("<f4", "(1, 1, 1, 1, 1, 1, 1, 1)"), Bytes(4))));
  EXPECT_THAT(ParseNpyHeader(NpyBytes(
                  NpyText("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)"), Bytes(4))),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(NpyTest, HeaderThatIsCutOffIsRefusedAtEveryByte) {
  const Bytes whole = NpyBytes(NpyText("<f4", "(1,)"), Bytes(4));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(
        ParseNpyHeader(Bytes(whole.begin(), whole.begin() + size)).ok())
        << size;
  }
}

TEST(NpyTest, TextsThatAreNoHeaderAreRefused) {
  for (const char* text :
       {"", "{", "{}", "()", "{'shape': (1,), }", "{'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x",
        "{'descr': '<f4', 'fortran_order': None, 'shape': (1,), }",
        "{'other': '<f4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': "
        "(99999999999999999999,), }"}) {
    EXPECT_THAT(ParseNpyHeader(NpyBytes(text, Bytes(4))),
                StatusIs(absl::StatusCode::kInvalidArgument))
        << text;
  }
}

TEST(NpyTest, OtherVersionsAndLongHeadersAreRefused) {
  EXPECT_THAT(
      ParseNpyHeader(NpyBytes(NpyText("<f4", "(1,)"), Bytes(4), 4)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version 4")));
  EXPECT_THAT(
      ParseNpyHeader(NpyBytes(std::string(5000, ' '), {})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("5000 bytes")));
}

}  // namespace
}  // namespace lockstep::worker
