#include "common/checkpoint/format/safetensors_header.h"

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();

std::string WithLength(const std::string& json) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i)
    bytes[i] = static_cast<char>(json.size() >> 8 * i);
  return bytes + json;
}

// Parses `json` as the header of a file with `data_bytes` of data.
absl::StatusOr<SafetensorsHeader> Parse(const std::string& json,
                                        uint64_t data_bytes) {
  const std::string start = WithLength(json);
  return ParseSafetensorsHeader(start, start.size() + data_bytes);
}

std::string OneTensor(const std::string& fields) {
  return R"({"w":{)" + fields + "}}";
}

// --- building ---

TEST(SafetensorsHeaderTest, WhatIsBuiltCanBeParsed) {
  const std::map<std::string, std::string> metadata = {{"format", "lockstep"}};
  auto built =
      BuildSafetensorsHeader({{"hidden1/weights", TensorType::kF32, {2, 3}},
                              {"global_step", TensorType::kI64, {}},
                              {"gr\xc3\xb6\xc3\x9f"
                               "e \"x\"",
                               TensorType::kF16,
                               {5}}},
                             metadata);
  ASSERT_OK(built);

  auto parsed = ParseSafetensorsHeader(
      built->bytes, built->header.data_start + built->header.data_bytes);

  EXPECT_THAT(parsed, IsOkAndHolds(built->header));
  EXPECT_EQ(parsed->metadata, metadata);
  EXPECT_EQ(parsed->data_bytes, 8u + 24u + 10u);
}

TEST(SafetensorsHeaderTest, DataStartsAtAMultipleOf64) {
  for (size_t length = 1; length < 130; ++length) {
    auto built = BuildSafetensorsHeader(
        {{std::string(length, 'n'), TensorType::kF32, {1}}}, {});

    ASSERT_OK(built);
    EXPECT_EQ(built->bytes.size() % 64, 0u);
    EXPECT_EQ(built->header.data_start, built->bytes.size());
    EXPECT_EQ(built->bytes[8], '{');
  }
}

TEST(SafetensorsHeaderTest, WidestElementsComeFirstSoThatAllAreAligned) {
  auto built = BuildSafetensorsHeader({{"a", TensorType::kF16, {3}},
                                       {"b", TensorType::kF32, {3}},
                                       {"c", TensorType::kF64, {1}},
                                       {"d", TensorType::kF32, {1}}},
                                      {});

  ASSERT_OK(built);
  std::vector<std::string> names;
  for (const StoredTensor& tensor : built->header.tensors) {
    names.push_back(tensor.name);
    EXPECT_EQ(tensor.offset % TensorTypeSize(tensor.type), 0u) << tensor.name;
  }
  EXPECT_THAT(names, ElementsAre("c", "b", "d", "a"));
}

TEST(SafetensorsHeaderTest, NoTensorsAreAFileToo) {
  auto built = BuildSafetensorsHeader({}, {});

  ASSERT_OK(built);
  EXPECT_THAT(ParseSafetensorsHeader(built->bytes, built->bytes.size()),
              IsOkAndHolds(built->header));
}

TEST(SafetensorsHeaderTest, BadNamesAreNotWritten) {
  const TensorSpec good = {"w", TensorType::kF32, {1}};
  for (const char* name : {"", "__metadata__", "\xff"}) {
    EXPECT_THAT(
        BuildSafetensorsHeader({good, {name, TensorType::kF32, {1}}}, {}),
        StatusIs(kInvalid, HasSubstr("name")))
        << name;
  }
  EXPECT_THAT(BuildSafetensorsHeader({good, good}, {}),
              StatusIs(kInvalid, HasSubstr("\"w\" is given twice")));
}

TEST(SafetensorsHeaderTest, MetadataThatIsNotUtf8IsNotWritten) {
  EXPECT_THAT(BuildSafetensorsHeader({}, {{"k", "\xff"}}),
              StatusIs(kInvalid, HasSubstr("metadata \"k\"")));
  EXPECT_THAT(BuildSafetensorsHeader({}, {{"\xff", "v"}}), StatusIs(kInvalid));
}

TEST(SafetensorsHeaderTest, SizeOfATensorNeverOverflows) {
  const auto bytes = [](std::vector<int64_t> shape) {
    return TensorBytes({"w", TensorType::kF32, std::move(shape)});
  };
  EXPECT_THAT(bytes({}), IsOkAndHolds(4u));
  EXPECT_THAT(bytes({2, 3}), IsOkAndHolds(24u));
  EXPECT_THAT(bytes({0, kMaxInt}), IsOkAndHolds(0u));
  EXPECT_THAT(bytes({kMaxInt}), StatusIs(kInvalid));
  EXPECT_THAT(bytes({1LL << 32, 1LL << 32}), StatusIs(kInvalid));
  EXPECT_THAT(bytes({2, -1}), StatusIs(kInvalid, HasSubstr("-1 is negative")));
  EXPECT_THAT(bytes(std::vector<int64_t>(33, 1)), StatusIs(kInvalid));
}

TEST(SafetensorsHeaderTest, SumOfTensorsNeverOverflows) {
  EXPECT_THAT(BuildSafetensorsHeader({{"a", TensorType::kF64, {kMaxInt / 8}},
                                      {"b", TensorType::kF64, {kMaxInt / 8}}},
                                     {}),
              StatusIs(kInvalid, HasSubstr("\"b\"")));
}

// --- parsing ---

TEST(SafetensorsHeaderTest, HeaderOfTheReferenceLibraryIsRead) {
  auto header =
      Parse(R"({"__metadata__":{"format":"pt"},)"
            R"("b":{"dtype":"F16","shape":[2],"data_offsets":[8,12]},)"
            R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}    )",
            12);

  ASSERT_OK(header);
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0],
            (StoredTensor{{"a", TensorType::kF32, {2, 1}}, 0, 8}));
  EXPECT_EQ(header->tensors[1],
            (StoredTensor{{"b", TensorType::kF16, {2}}, 8, 4}));
  EXPECT_EQ(header->metadata.at("format"), "pt");
}

TEST(SafetensorsHeaderTest, TensorsOfOtherProgramsHaveOtherTypes) {
  auto header =
      Parse(R"({"mask":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]},)"
            R"("w":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
            12);

  ASSERT_OK(header);
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0],
            (StoredTensor{{"mask", TensorType::kBool, {4}}, 0, 4}));
  EXPECT_THAT(
      Parse(OneTensor(R"("dtype":"BOOL","shape":[4],"data_offsets":[0,16])"),
            16),
      StatusIs(kInvalid, HasSubstr("dtype and shape need 4")));
}

TEST(SafetensorsHeaderTest, EmptyTensorsMayShareAnOffset) {
  EXPECT_OK(Parse(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                  R"("b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                  R"("c":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
                  4));
}

TEST(SafetensorsHeaderTest, EveryTruncationIsRefused) {
  auto built =
      BuildSafetensorsHeader({{"w", TensorType::kF32, {2}}}, {{"k", "v"}});
  ASSERT_OK(built);
  const std::string whole = built->bytes + std::string(8, 'd');

  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(ParseSafetensorsHeader(whole.substr(0, size), size),
                StatusIs(kInvalid))
        << size;
  }
  EXPECT_OK(ParseSafetensorsHeader(whole, whole.size()));
}

TEST(SafetensorsHeaderTest, ImpossibleLengthsAreRefusedWithTheirValue) {
  const std::string huge(8, '\xff');

  EXPECT_THAT(SafetensorsDataStart(huge, 1000),
              StatusIs(kInvalid, AllOf(HasSubstr("18446744073709551615"),
                                       HasSubstr("at most 992"))));
  EXPECT_THAT(SafetensorsDataStart(huge, std::numeric_limits<uint64_t>::max()),
              StatusIs(kInvalid, HasSubstr("at most 100000000")));
  EXPECT_THAT(SafetensorsDataStart("1234567", 7), StatusIs(kInvalid));
}

TEST(SafetensorsHeaderTest, HeaderThatIsNoObjectIsRefused) {
  for (const char* json : {"", "[]", "null", " {}", "{", "{}x", "1"}) {
    EXPECT_THAT(Parse(json, 0), StatusIs(kInvalid)) << json;
  }
}

TEST(SafetensorsHeaderTest, RepeatedTensorIsRefused) {
  EXPECT_THAT(
      Parse(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
            R"("w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
            8),
      StatusIs(kInvalid, HasSubstr("the header has the key \"w\" twice")));
}

struct BadTensor {
  const char* fields;
  const char* message;
};

class BadTensorTest : public ::testing::TestWithParam<BadTensor> {};

TEST_P(BadTensorTest, IsRefusedWithTensorFieldAndValue) {
  EXPECT_THAT(Parse(OneTensor(GetParam().fields), 8),
              StatusIs(kInvalid, AllOf(HasSubstr("\"w\""),
                                       HasSubstr(GetParam().message))));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadTensorTest,
    ::testing::Values(
        BadTensor{R"("dtype":"F32","shape":[2])", "not an object of dtype"},
        BadTensor{R"("dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1)",
                  "not an object of dtype"},
        BadTensor{R"("dtype":"F32","shape":[2],"offsets":[0,8])",
                  "not an object of dtype"},
        BadTensor{R"("dtype":1,"shape":[2],"data_offsets":[0,8])",
                  "dtype is 1"},
        BadTensor{R"("dtype":"F31","shape":[2],"data_offsets":[0,8])",
                  "dtype \"F31\""},
        BadTensor{R"("dtype":"F32","shape":2,"data_offsets":[0,8])",
                  "shape is 2"},
        BadTensor{R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])",
                  "shape is [-2]"},
        BadTensor{R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])",
                  "shape is [2.0]"},
        BadTensor{R"("dtype":"F32","shape":["2"],"data_offsets":[0,8])",
                  "shape is [\"2\"]"},
        BadTensor{
            R"("dtype":"F32","shape":[9223372036854775808],"data_offsets":[0,8])",
            "shape is [9223372036854775808]"},
        BadTensor{
            R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8])",
            "more than 9223372036854775807 bytes"},
        BadTensor{R"("dtype":"F32","shape":[2],"data_offsets":[0])",
                  "data_offsets is [0]"},
        BadTensor{R"("dtype":"F32","shape":[2],"data_offsets":[-8,0])",
                  "data_offsets is [-8,0]"},
        BadTensor{R"("dtype":"F32","shape":[2],"data_offsets":[8,0])",
                  "data_offsets is [8,0]"},
        BadTensor{R"("dtype":"F32","shape":[2],"data_offsets":[0,9])",
                  "data_offsets is [0,9]"},
        BadTensor{R"("dtype":"F32","shape":[3],"data_offsets":[0,8])",
                  "dtype and shape need 12"},
        BadTensor{R"("dtype":"F32","shape":[1],"data_offsets":[4,8])",
                  "begins at 4, want 0 (it leaves a gap)"}));

TEST(SafetensorsHeaderTest, OverlapIsRefused) {
  EXPECT_THAT(
      Parse(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
            R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
            12),
      StatusIs(kInvalid, AllOf(HasSubstr("\"b\""), HasSubstr("overlaps"))));
}

TEST(SafetensorsHeaderTest, BytesAfterTheLastTensorAreRefused) {
  EXPECT_THAT(
      Parse(OneTensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])"), 9),
      StatusIs(kInvalid, HasSubstr("the file has")));
}

TEST(SafetensorsHeaderTest, RankBeyondTheLimitIsRefused) {
  std::string shape = "1";
  for (int i = 0; i < 32; ++i) shape += ",1";

  EXPECT_THAT(Parse(OneTensor("\"dtype\":\"F32\",\"shape\":[" + shape +
                              "],\"data_offsets\":[0,4]"),
                    4),
              StatusIs(kInvalid, HasSubstr("at most 32 dimensions")));
}

TEST(SafetensorsHeaderTest, MetadataMustBeStrings) {
  EXPECT_THAT(Parse(R"({"__metadata__":{"k":1}})", 0),
              StatusIs(kInvalid, HasSubstr("__metadata__ field \"k\" is 1")));
  EXPECT_THAT(Parse(R"({"__metadata__":[]})", 0), StatusIs(kInvalid));
}

TEST(SafetensorsHeaderTest, EmptyNameIsRefused) {
  EXPECT_THAT(
      Parse(R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
      StatusIs(kInvalid, HasSubstr("empty name")));
}

TEST(SafetensorsHeaderTest, DescriptionShowsNameTypeAndShape) {
  EXPECT_EQ(DescribeTensor({"a/b", TensorType::kF16, {2, 3}}),
            "tensor \"a/b\" F16 [2,3]");
}

}  // namespace
}  // namespace lockstep
