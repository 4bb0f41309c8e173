#include "common/records/tfrecord.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/data/files/data_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;

std::string Record(const std::string& data) {
  std::string file;
  AppendTfRecord(data, file);
  return file;
}

// The examples of RFC 3720, B.4.
TEST(TfRecordTest, ChecksAreThoseOfTheStandard) {
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
}

TEST(TfRecordTest, RecordsComeInOrder) {
  const std::string bytes = Record("first") + Record("") + Record("third");
  TfRecordReader reader(bytes);
  for (const char* expected : {"first", "", "third"}) {
    const auto record = reader.Next();
    ASSERT_OK(record);
    ASSERT_TRUE(record->has_value());
    EXPECT_EQ(**record, expected);
  }
  const auto end = reader.Next();
  ASSERT_OK(end);
  EXPECT_FALSE(end->has_value());
}

TEST(TfRecordTest, EveryDamagedOrMissingByteIsFound) {
  const std::string whole = Record("data of a record");
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 4);
    EXPECT_THAT(TfRecordReader(damaged).Next(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("at byte")));
    if (i == 0) continue;
    EXPECT_THAT(TfRecordReader(whole.substr(0, i)).Next(),
                StatusIs(absl::StatusCode::kDataLoss));
  }
}

TEST(TfRecordTest, WhatTensorFlowWroteIsReadAndWrittenAgain) {
  const auto bytes =
      worker::ReadDataFile(LOCKSTEP_RECORDS_DATA "/tensorflow.tfrecord");
  ASSERT_OK(bytes);
  const std::string file(bytes->begin(), bytes->end());
  TfRecordReader reader(file);
  std::string again;
  for (int i = 0; i < 3; ++i) {
    const auto record = reader.Next();
    ASSERT_OK(record);
    ASSERT_TRUE(record->has_value());
    AppendTfRecord(**record, again);
  }
  const auto end = reader.Next();
  ASSERT_OK(end);
  EXPECT_FALSE(end->has_value());
  EXPECT_EQ(again, file);
}

}  // namespace
}  // namespace lockstep
