#include "tests/conformance/golden/golden_reader.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::golden {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

std::vector<std::byte> Values(DType dtype, const std::string& data) {
  const Json tensor = {{"shape", {1}}, {"data", Json::parse(data)}};
  return ReadTensor(dtype, tensor).values;
}

std::string WriteFile(const std::string& name, const std::string& text) {
  std::string path = ::testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(GoldenReaderTest, EveryBitMattersButThoseOfNotANumber) {
  for (DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const auto zero = Values(dtype, "[1.5, 0.0]");
    EXPECT_THAT(Difference(dtype, zero, Values(dtype, "[1.5, 0.0]")), "");
    EXPECT_THAT(Difference(dtype, zero, Values(dtype, "[1.5, -0.0]")),
                HasSubstr("element 1"));
    EXPECT_THAT(Difference(dtype, zero, Values(dtype, "[1.501, 0.0]")),
                HasSubstr("element 0"));
    EXPECT_THAT(Difference(dtype, zero, Values(dtype, "[1.5]")),
                HasSubstr("bytes"));
    const auto special = Values(dtype, R"(["nan", "inf", "-inf"])");
    auto other_nan = special;
    other_nan[0] |= std::byte{1};
    EXPECT_THAT(Difference(dtype, special, other_nan), IsEmpty());
    EXPECT_THAT(
        Difference(dtype, special, Values(dtype, R"(["nan", "inf", "inf"])")),
        HasSubstr("element 2"));
  }
}

TEST(GoldenReaderTest, SmallestAndLargestNumbersAreReadExactly) {
  EXPECT_NE(Difference(DType::kFloat32, Values(DType::kFloat32, "[1e-45]"),
                       Values(DType::kFloat32, "[0.0]")),
            "");
  EXPECT_NE(Difference(DType::kFloat64, Values(DType::kFloat64, "[5e-324]"),
                       Values(DType::kFloat64, "[0.0]")),
            "");
}

TEST(GoldenReaderTest, ReadsOneScenarioPerLine) {
  const std::string line =
      R"({"format":1,"file":"f","name":"n","seed":1,"ops":[]})";
  EXPECT_THAT(
      ReadScenarios(WriteFile("two.jsonl", line + "\n" + line + "\n")).value(),
      SizeIs(2));
}

TEST(GoldenReaderTest, RefusesWhatIsNoTrace) {
  EXPECT_THAT(ReadScenarios(::testing::TempDir() + "no/such/file"),
              StatusIs(absl::StatusCode::kNotFound));
  for (const char* text :
       {"", "\n", "{", "[]", "{}",
        R"({"format":2,"file":"f","name":"n","seed":1,"ops":[]})"}) {
    EXPECT_THAT(ReadScenarios(WriteFile("bad.jsonl", text)), StatusIs(kInvalid))
        << text;
  }
}

}  // namespace
}  // namespace lockstep::golden
