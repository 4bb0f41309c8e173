#include "common/records/tf_example.h"

#include "common/records/tfrecord.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/data/data_file.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One feature "x" whose message is `feature`.
std::string WithFeature(const std::string& feature) {
  const auto wrap = [](char tag, const std::string& bytes) {
    return std::string{tag, static_cast<char>(bytes.size())} + bytes;
  };
  return wrap(0x0a, wrap(0x0a, wrap(0x0a, "x") + wrap(0x12, feature)));
}

TEST(TfExampleTest, WhatTensorFlowWroteIsRead) {
  const auto bytes = ReadDataFile(LOCKSTEP_RECORDS_DATA "/tensorflow.tfrecord");
  ASSERT_OK(bytes);
  TfRecordReader reader(
      {reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  for (int64_t i = 0; i < 3; ++i) {
    const auto record = reader.Next();
    ASSERT_OK(record);
    const auto example = ParseTfExample(**record);
    ASSERT_OK(example);
    EXPECT_THAT(example->at("ids").ints, ElementsAre(i, -1, int64_t{1} << 40));
    EXPECT_THAT(example->at("x").floats,
                ElementsAre(0.5f * static_cast<float>(i), -2.25f));
    EXPECT_THAT(example->at("name").bytes,
                ElementsAre("row " + std::to_string(i)));
    EXPECT_THAT(example->at("none").bytes, IsEmpty());
  }
}

TEST(TfExampleTest, NumbersNeedNotBePacked) {
  // int64_list { value: 3 value: 300 }
  const auto ints = ParseTfExample(
      WithFeature(std::string("\x1a\x05\x08\x03\x08\xac\x02", 7)));
  ASSERT_OK(ints);
  EXPECT_THAT(ints->at("x").ints, ElementsAre(3, 300));
  // float_list { value: 1 }
  const auto floats =
      ParseTfExample(WithFeature(std::string("\x12\x05\x0d\0\0\x80\x3f", 7)));
  ASSERT_OK(floats);
  EXPECT_THAT(floats->at("x").floats, ElementsAre(1));
}

TEST(TfExampleTest, UnknownFieldsArePassedOver) {
  const auto example = ParseTfExample(std::string("\x18\x01\x25zzzz", 7));
  ASSERT_OK(example);
  EXPECT_THAT(*example, IsEmpty());
}

TEST(TfExampleTest, WhatIsCutOffIsRefused) {
  const std::string whole =
      WithFeature(std::string("\x1a\x05\x0a\x03\x01\xac\x02", 7));
  ASSERT_OK(ParseTfExample(whole));
  for (size_t size = 1; size < whole.size(); ++size) {
    EXPECT_THAT(ParseTfExample(whole.substr(0, size)),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
  EXPECT_THAT(ParseTfExample(WithFeature(std::string("\x12\x03\x0a\x01z", 5))),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ParseTfExample("\x0b"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace lockstep
