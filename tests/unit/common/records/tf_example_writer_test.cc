#include "common/records/tf_example_writer.h"

#include "common/records/tfrecord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/data/data_file.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TfExampleWriterTest, WhatIsWrittenIsRead) {
  const TfExample example = {
      {"", {}},
      {"f", {.floats = {1.5f, -0.0f}}},
      {"i", {.ints = {0, -1, int64_t{1} << 40, 127, 128}}},
      {"t", {.bytes = {"", std::string(300, 'x')}}},
  };

  const auto again = ParseTfExample(SerializeTfExample(example));

  ASSERT_OK(again);
  EXPECT_EQ(again->size(), 4u);
  EXPECT_THAT(again->at("").bytes, IsEmpty());
  EXPECT_THAT(again->at("f").floats, ElementsAre(1.5f, -0.0f));
  EXPECT_THAT(again->at("i").ints,
              ElementsAre(0, -1, int64_t{1} << 40, 127, 128));
  EXPECT_THAT(again->at("t").bytes, ElementsAre("", std::string(300, 'x')));
}

TEST(TfExampleWriterTest, BytesAreThoseOfTensorFlow) {
  const auto bytes = ReadDataFile(LOCKSTEP_RECORDS_DATA "/tensorflow.tfrecord");
  ASSERT_OK(bytes);
  TfRecordReader reader(
      {reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  for (int i = 0; i < 3; ++i) {
    const auto record = reader.Next();
    ASSERT_OK(record);
    const auto example = ParseTfExample(**record);
    ASSERT_OK(example);
    EXPECT_EQ(SerializeTfExample(*example), **record);
  }
}

}  // namespace
}  // namespace lockstep
