#include "common/checkpoint/step_directory.h"

#include <filesystem>
#include <limits>
#include <string>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/sample_checkpoint.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

TEST(StepDirectoryTest, NameIsEightDigitsOrMore) {
  EXPECT_EQ(StepDirectoryName(0), "step-00000000");
  EXPECT_EQ(StepDirectoryName(1500), "step-00001500");
  EXPECT_EQ(StepDirectoryName(123456789012), "step-123456789012");
}

TEST(StepDirectoryTest, NameIsParsedBack) {
  for (int64_t step : {int64_t{0}, int64_t{1500}, int64_t{123456789012},
                       std::numeric_limits<int64_t>::max()}) {
    EXPECT_EQ(ParseStepDirectoryName(StepDirectoryName(step)), step);
  }
}

TEST(StepDirectoryTest, OtherNamesAreNoSteps) {
  for (const char* name :
       {"", "step-", "step-1500", "step-000001500", "step--0000001",
        "step-00001500x", "step-0000150 ", "xstep-00001500", "STEP-00001500",
        "step-99999999999999999999", ".tmp-step-00001500-0"}) {
    EXPECT_EQ(ParseStepDirectoryName(name), std::nullopt) << name;
  }
}

TEST(StepDirectoryTest, StepsAreListedInOrderAndNothingElse) {
  ScratchDirectory scratch;
  for (const char* name : {"step-00000200", "step-00000030", "other",
                           ".tmp-step-00000300-0", "step-123456789"}) {
    fs::create_directory(scratch / name);
  }

  EXPECT_THAT(ListStepDirectories(scratch.path()),
              IsOkAndHolds(ElementsAre(30, 200, 123456789)));
}

TEST(StepDirectoryTest, MissingDirectoryHoldsNoSteps) {
  ScratchDirectory scratch;

  EXPECT_THAT(ListStepDirectories(scratch / "none"), IsOkAndHolds(IsEmpty()));
}

TEST(StepDirectoryTest, FileInPlaceOfTheDirectoryCannotBeListed) {
  ScratchDirectory scratch;
  WriteText(scratch / "f", "x");

  const auto listed = ListStepDirectories(scratch / "f");

  ASSERT_FALSE(listed.ok());
  EXPECT_THAT(std::string(listed.status().message()),
              AllOf(HasSubstr(scratch / "f"), HasSubstr("name a directory")));
}

class ReadCompleteManifestTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), 7));
  }
  absl::StatusOr<Manifest> Read() const {
    return ReadCompleteManifest(scratch_.path(), 7);
  }
  void EditManifest(const std::string& from, const std::string& to) {
    const std::string text = ReadText(manifest_);
    const std::string edited = absl::StrReplaceAll(text, {{from, to}});
    ASSERT_NE(edited, text) << "nothing was replaced";
    WriteText(manifest_, edited);
  }

  ScratchDirectory scratch_;
  const std::string place_ = scratch_ / "step-00000007";
  const std::string manifest_ = place_ + "/manifest.json";
};

TEST_F(ReadCompleteManifestTest, CompleteCheckpointIsRead) {
  const auto manifest = Read();

  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->global_step, 7);
  EXPECT_EQ(manifest->job_name, "mnist");
}

TEST_F(ReadCompleteManifestTest, MissingStepIsNotFound) {
  EXPECT_THAT(ReadCompleteManifest(scratch_.path(), 8),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("step 8")));
}

TEST_F(ReadCompleteManifestTest, MissingManifestIsDamage) {
  fs::remove(manifest_);

  EXPECT_THAT(Read(), StatusIs(kDataLoss, AllOf(HasSubstr(manifest_),
                                                HasSubstr("is missing"))));
}

TEST_F(ReadCompleteManifestTest, UnreadableManifestIsDamageWithFileAndField) {
  EditManifest("\"strict\"", "\"loose\"");

  EXPECT_THAT(Read(), StatusIs(kDataLoss, AllOf(HasSubstr(manifest_),
                                                HasSubstr("mode is \"loose\""),
                                                HasSubstr("use another"))));
}

TEST_F(ReadCompleteManifestTest, HugeManifestIsDamage) {
  WriteText(manifest_, std::string(kMaxManifestBytes + 1, ' '));

  EXPECT_THAT(Read(), StatusIs(kDataLoss));
}

TEST_F(ReadCompleteManifestTest, ManifestOfAnotherStepIsDamage) {
  EditManifest("\"global_step\": 7", "\"global_step\": 8");

  EXPECT_THAT(Read(), StatusIs(kDataLoss, HasSubstr("global_step is 8")));
}

TEST_F(ReadCompleteManifestTest, ManifestWithoutAFileIsDamage) {
  EditManifest("\"optimizer.safetensors\"", "\"other.safetensors\"");

  EXPECT_THAT(Read(),
              StatusIs(kDataLoss, HasSubstr("lacks optimizer.safetensors")));
}

TEST_F(ReadCompleteManifestTest, FileOfAnotherLengthIsDamage) {
  fs::resize_file(place_ + "/model.safetensors", 100);

  EXPECT_THAT(Read(), StatusIs(kDataLoss, AllOf(HasSubstr("model.safetensors"),
                                                HasSubstr("has 100 bytes"))));
}

TEST_F(ReadCompleteManifestTest, MissingFileIsDamage) {
  fs::remove(place_ + "/optimizer.safetensors");

  EXPECT_THAT(Read(), StatusIs(kDataLoss, HasSubstr("optimizer.safetensors")));
}

TEST_F(ReadCompleteManifestTest, NameThatIsNoFileIsDamage) {
  const std::string model = place_ + "/model.safetensors";
  fs::remove(model);
  fs::create_directory(model);
  EXPECT_THAT(Read(),
              StatusIs(kDataLoss, AllOf(HasSubstr(model),
                                        HasSubstr("is not a regular file"))));

  fs::remove(model);
  fs::create_symlink(model, model);
  EXPECT_THAT(Read(), StatusIs(kDataLoss, HasSubstr(model)));
}

TEST_F(ReadCompleteManifestTest, NewerFormatIsNotDamage) {
  EditManifest("\"format_version\": 1", "\"format_version\": 2");

  EXPECT_THAT(Read(), StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr(manifest_)));
}

}  // namespace
}  // namespace lockstep
