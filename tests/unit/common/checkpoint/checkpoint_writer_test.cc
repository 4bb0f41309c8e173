#include "common/checkpoint/checkpoint_writer.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/checkpoint/files/sha256.h"
#include "common/checkpoint/step_directory.h"
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
using ::testing::SizeIs;

constexpr char kStepSeven[] = "step-00000007";

class CheckpointWriterTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<CheckpointWriter>> Create() {
    return CheckpointWriter::Create(scratch_.path(), 7, SampleTensors());
  }
  // A writer with every byte written.
  std::unique_ptr<CheckpointWriter> CreateFilled() {
    auto writer = Create();
    EXPECT_OK(writer);
    if (!writer.ok()) return nullptr;
    FillSample(**writer, 7);
    return *std::move(writer);
  }
  // The files below the directory that this process has open.
  std::vector<std::string> OpenFiles() const {
    const std::string scratch = fs::canonical(scratch_.path()).string();
    std::vector<std::string> files;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code ignored;  // the iterator's own descriptor
      const std::string file = fs::read_symlink(entry.path(), ignored).string();
      if (file.starts_with(scratch) && fs::is_regular_file(file)) {
        files.push_back(file);
      }
    }
    return files;
  }

  ScratchDirectory scratch_;
};

TEST_F(CheckpointWriterTest, CommittedCheckpointIsThreeFilesAndNothingElse) {
  ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), 7));

  EXPECT_THAT(scratch_.Names(), ElementsAre(kStepSeven));
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(scratch_ / kStepSeven)) {
    files.insert(entry.path().filename().string());
  }
  EXPECT_THAT(files, ElementsAre("manifest.json", "model.safetensors",
                                 "optimizer.safetensors"));
}

TEST_F(CheckpointWriterTest, ManifestHasStepLengthsAndHashes) {
  ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), 7));

  auto manifest = ReadCompleteManifest(scratch_.path(), 7);

  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->global_step, 7);
  EXPECT_EQ(manifest->metrics, SampleManifest().metrics);
  ASSERT_EQ(manifest->files.size(), 2u);
  for (const CheckpointFile& file : manifest->files) {
    const std::string path = scratch_ / kStepSeven + "/" + file.name;
    EXPECT_EQ(file.bytes, fs::file_size(path));
    EXPECT_THAT(Sha256OfFile(path), IsOkAndHolds(file.sha256));
  }
}

TEST_F(CheckpointWriterTest, NothingAppearsBeforeCommit) {
  auto writer = CreateFilled();
  ASSERT_NE(writer, nullptr);

  EXPECT_FALSE(fs::exists(scratch_ / kStepSeven));
  writer.reset();
  EXPECT_THAT(scratch_.Names(), IsEmpty());
}

TEST_F(CheckpointWriterTest, MissingPartIsNamedAndCommitCanBeRepeated) {
  auto writer = Create();
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->model().WriteAt("hidden1/weights", 0,
                                       BytesOf(kSampleWeights)));
  ASSERT_OK((*writer)->optimizer().WriteInt64("global_step", 7));

  EXPECT_THAT((*writer)->Commit(SampleManifest()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("hidden1/weights/Momentum")));
  EXPECT_FALSE(fs::exists(scratch_ / kStepSeven));

  ASSERT_OK((*writer)->optimizer().WriteAt("hidden1/weights/Momentum", 0,
                                           BytesOf(kSampleMomentum)));
  EXPECT_OK((*writer)->Commit(SampleManifest()));
  EXPECT_THAT((*writer)->Commit(SampleManifest()),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_OK(ReadCompleteManifest(scratch_.path(), 7));
}

TEST_F(CheckpointWriterTest, BadManifestIsRefusedBeforeAnythingAppears) {
  auto writer = CreateFilled();
  ASSERT_NE(writer, nullptr);
  Manifest bad = SampleManifest();
  bad.mode = "loose";

  EXPECT_THAT(writer->Commit(bad),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mode")));
  EXPECT_FALSE(fs::exists(scratch_ / kStepSeven));
  EXPECT_OK(writer->Commit(SampleManifest()));
}

TEST_F(CheckpointWriterTest, CompleteCheckpointIsNotReplaced) {
  ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), 7));

  EXPECT_THAT(Create(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("step 7")));
}

TEST_F(CheckpointWriterTest, CheckpointThatCameInBetweenIsNotReplaced) {
  auto slow = CreateFilled();
  ASSERT_NE(slow, nullptr);
  ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), 7));
  const std::string before = ReadText(scratch_ / kStepSeven + "/manifest.json");

  EXPECT_THAT(slow->Commit(SampleManifest()),
              StatusIs(absl::StatusCode::kAlreadyExists));

  slow.reset();
  EXPECT_THAT(scratch_.Names(), ElementsAre(kStepSeven));
  EXPECT_EQ(ReadText(scratch_ / kStepSeven + "/manifest.json"), before);
}

TEST_F(CheckpointWriterTest, FilesAreClosedBeforeTheyGetTheirName) {
  auto writer = CreateFilled();
  ASSERT_NE(writer, nullptr);
  EXPECT_THAT(OpenFiles(), SizeIs(2));
  ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), 7));

  // Nothing has been renamed.
  EXPECT_THAT(writer->Commit(SampleManifest()),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(OpenFiles(), IsEmpty());

  fs::remove_all(scratch_ / kStepSeven);
  EXPECT_OK(writer->Commit(SampleManifest()));
  EXPECT_OK(ReadCompleteManifest(scratch_.path(), 7));
}

TEST_F(CheckpointWriterTest, DamagedCheckpointIsReplaced) {
  ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), 7));
  fs::resize_file(scratch_ / kStepSeven + "/model.safetensors", 10);
  auto writer = CreateFilled();
  ASSERT_NE(writer, nullptr);

  EXPECT_OK(writer->Commit(SampleManifest()));

  EXPECT_OK(ReadCompleteManifest(scratch_.path(), 7));
  writer.reset();
  EXPECT_THAT(scratch_.Names(), ElementsAre(kStepSeven));
}

TEST_F(CheckpointWriterTest, CheckpointOfANewerFormatIsNotReplaced) {
  ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), 7));
  WriteText(scratch_ / kStepSeven + "/manifest.json",
            R"({"format_version": 2})");

  EXPECT_THAT(Create(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(CheckpointWriterTest, FailedRenameLeavesNothing) {
  auto writer = CreateFilled();
  ASSERT_NE(writer, nullptr);
  WriteText(scratch_ / kStepSeven, "a file in the way");

  const absl::Status refused = writer->Commit(SampleManifest());

  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.message()), HasSubstr(kStepSeven));
  writer.reset();
  EXPECT_THAT(scratch_.Names(), ElementsAre(kStepSeven));
  EXPECT_EQ(ReadText(scratch_ / kStepSeven), "a file in the way");
}

TEST_F(CheckpointWriterTest, AsideDirectoryThatVanishedIsAnError) {
  auto writer = CreateFilled();
  ASSERT_NE(writer, nullptr);
  for (const std::string& name : scratch_.Names()) {
    fs::remove_all(scratch_ / name);
  }

  EXPECT_THAT(writer->Commit(SampleManifest()),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(scratch_.Names(), IsEmpty());
}

TEST_F(CheckpointWriterTest, BadRequestsLeaveNothing) {
  CheckpointTensors twice = SampleTensors();
  twice.optimizer.push_back(twice.model[0]);
  CheckpointTensors bad = SampleTensors();
  bad.optimizer[0].shape = {-1};

  EXPECT_THAT(CheckpointWriter::Create(scratch_.path(), 7, twice),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("hidden1/weights"),
                             HasSubstr("in the model and in the optimizer"))));
  EXPECT_THAT(CheckpointWriter::Create(scratch_.path(), 7, bad),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(CheckpointWriter::Create(scratch_.path(), -1, SampleTensors()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("-1")));
  EXPECT_THAT(scratch_.Names(), IsEmpty());
}

}  // namespace
}  // namespace lockstep
