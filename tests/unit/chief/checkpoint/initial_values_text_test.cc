#include "chief/checkpoint/initial_values_text.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::chief {
namespace {

using ::testing::EndsWith;

class InitialValuesTextTest : public ::testing::Test {
 protected:
  // The text for a file with "a" and "b", and variables of these names.
  std::string TextFor(const std::vector<std::string>& names) {
    const std::string path = directory_.Join("values");
    auto file = SafetensorsWriter::Create(
        path, {{"a", TensorType::kF32, {}}, {"b", TensorType::kF32, {}}}, {});
    EXPECT_THAT(file, testing::IsOk());
    const std::vector<char> value(4);
    for (const char* name : {"a", "b"}) {
      EXPECT_THAT((*file)->WriteAt(name, 0, value), testing::IsOk());
    }
    EXPECT_THAT((*file)->Finish(), testing::IsOk());
    const auto reader = SafetensorsReader::Open(path);
    EXPECT_THAT(reader, testing::IsOk());
    std::vector<VariableSpec> variables;
    for (const std::string& name : names) variables.push_back({.name = name});
    return InitialValuesText(*reader, variables);
  }

 private:
  const testing::TempDir directory_;
};

TEST_F(InitialValuesTextTest, WhereAllAreThereTheFileIsNamedAlone) {
  EXPECT_THAT(TextFor({"a", "b"}), EndsWith("/values"));
}

TEST_F(InitialValuesTextTest, AVariableThatIsNotInTheFileIsNamed) {
  EXPECT_THAT(TextFor({"a", "c"}),
              EndsWith("/values; \"c\" is not in it and begins as without it"));
}

TEST_F(InitialValuesTextTest, OfManyTheFirstAreNamed) {
  EXPECT_THAT(TextFor({"c", "a", "d", "e", "f", "g"}),
              EndsWith("/values; \"c\", \"d\", \"e\", 2 more are not in it and "
                       "begin as without it"));
}

}  // namespace
}  // namespace lockstep::chief
