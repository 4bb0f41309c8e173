#include "common/checkpoint/checkpoint_reader.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/sample_checkpoint.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), 7));
    auto reader = CheckpointReader::Open(scratch_.path(), 7);
    ASSERT_OK(reader);
    reader_ = std::make_unique<CheckpointReader>(*std::move(reader));
  }

  ScratchDirectory scratch_;
  const std::string place_ = scratch_ / "step-00000007";
  std::unique_ptr<CheckpointReader> reader_;
};

TEST_F(CheckpointReaderTest, VariablesSlotsAndScalarsComeBack) {
  std::vector<float> values(6);

  ASSERT_OK(reader_->Read("hidden1/weights", absl::MakeSpan(values)));
  EXPECT_EQ(values, kSampleWeights);
  ASSERT_OK(reader_->Read("hidden1/weights/Momentum", absl::MakeSpan(values)));
  EXPECT_EQ(values, kSampleMomentum);
  EXPECT_THAT(reader_->ReadInt64("global_step"), IsOkAndHolds(7));
  EXPECT_EQ(reader_->manifest().job_name, "mnist");
  EXPECT_EQ(reader_->model().header().tensors.size(), 1u);
}

TEST_F(CheckpointReaderTest, AnotherTensorIsReadInPlaceOfAVariable) {
  std::vector<float> values(6);
  reader_->ReadInPlaceOf("hidden1/weights", "hidden1/weights/Momentum");
  EXPECT_OK(
      reader_->CheckVariable({"hidden1/weights", {2, 3}, DType::kFloat32, {}}));
  ASSERT_OK(reader_->Read("hidden1/weights", absl::MakeSpan(values)));
  EXPECT_EQ(values, kSampleMomentum);
  ASSERT_OK(reader_->ReadRange("hidden1/weights", 0, absl::MakeSpan(values)));
  EXPECT_EQ(values, kSampleMomentum);

  reader_->ReadInPlaceOf("hidden1/weights", "none");
  EXPECT_THAT(reader_->Read("hidden1/weights", absl::MakeSpan(values)),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"none\"")));
}

TEST_F(CheckpointReaderTest, RangesAreReadForAnyPartition) {
  for (size_t size = 1; size <= 6; ++size) {
    for (size_t first = 0; first + size <= 6; ++first) {
      std::vector<float> values(size);

      ASSERT_OK(reader_->ReadRange("hidden1/weights",
                                   static_cast<int64_t>(first),
                                   absl::MakeSpan(values)));

      EXPECT_EQ(values[0], static_cast<float>(first));
      EXPECT_EQ(values.back(), static_cast<float>(first + size - 1));
    }
  }
}

TEST_F(CheckpointReaderTest, RangeBeyondTheTensorIsRefusedUnread) {
  std::vector<float> values(2, -1);

  for (int64_t first : {int64_t{-1}, int64_t{5}, int64_t{7}, INT64_MAX}) {
    EXPECT_THAT(
        reader_->ReadRange("hidden1/weights", first, absl::MakeSpan(values)),
        StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("6 elements")))
        << first;
  }
  EXPECT_THAT(values, ElementsAre(-1, -1));
}

TEST_F(CheckpointReaderTest, WrongSizeOrTypeOrNameIsRefused) {
  std::vector<float> values(5);

  EXPECT_THAT(reader_->Read("hidden1/weights", absl::MakeSpan(values)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("6 elements"), HasSubstr("5 are"))));
  EXPECT_THAT(
      reader_->Read("global_step", absl::MakeSpan(values).first(1)),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ReadInt64")));
  EXPECT_THAT(reader_->ReadInt64("hidden1/weights"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not an I64 scalar")));
  EXPECT_THAT(
      reader_->Read("hidden2/weights", absl::MakeSpan(values)),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"hidden2/weights\"")));
}

TEST_F(CheckpointReaderTest, HalvesAndDoublesAreConverted) {
  CheckpointTensors tensors;
  tensors.model = {{"half", TensorType::kF16, {3}},
                   {"double", TensorType::kF64, {2}}};
  auto writer = CheckpointWriter::Create(scratch_.path(), 8, tensors);
  ASSERT_OK(writer);
  const uint16_t halves[] = {0x3c00, 0xc000, 0x3800};
  const double doubles[] = {0.1, -3.0};
  ASSERT_OK((*writer)->model().WriteAt(
      "half", 0, {reinterpret_cast<const char*>(halves), sizeof(halves)}));
  ASSERT_OK((*writer)->model().WriteAt(
      "double", 0, {reinterpret_cast<const char*>(doubles), sizeof(doubles)}));
  ASSERT_OK((*writer)->Commit(SampleManifest()));
  auto reader = CheckpointReader::Open(scratch_.path(), 8);
  ASSERT_OK(reader);

  std::vector<float> three(3);
  std::vector<float> one(1);

  ASSERT_OK(reader->Read("half", absl::MakeSpan(three)));
  EXPECT_THAT(three, ElementsAre(1.0f, -2.0f, 0.5f));
  ASSERT_OK(reader->ReadRange("half", 2, absl::MakeSpan(one)));
  EXPECT_THAT(one, ElementsAre(0.5f));
  ASSERT_OK(reader->ReadRange("double", 0, absl::MakeSpan(one)));
  EXPECT_THAT(one, ElementsAre(0.1f));
}

TEST_F(CheckpointReaderTest, ATypeThatNoVariableHasIsNotConverted) {
  auto writer = CheckpointWriter::Create(
      scratch_.path(), 8, {{{"mask", TensorType::kBool, {2}}}, {}});
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->model().WriteAt("mask", 0, {"\1\1", 2}));
  ASSERT_OK((*writer)->Commit(SampleManifest()));
  auto reader = CheckpointReader::Open(scratch_.path(), 8);
  ASSERT_OK(reader);
  std::vector<float> two(2);

  EXPECT_THAT(reader->Read("mask", absl::MakeSpan(two)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("dtype BOOL is not supported")));
}

TEST_F(CheckpointReaderTest, KeysOfAGrowingTableAscend) {
  CheckpointTensors tensors;
  tensors.model = {{"t", TensorType::kF32, {0, 2}},
                   {"t/keys", TensorType::kI64, {3}},
                   {"u/keys", TensorType::kI64, {3}},
                   {"v/keys", TensorType::kI64, {}}};
  auto writer = CheckpointWriter::Create(scratch_.path(), 8, tensors);
  ASSERT_OK(writer);
  const int64_t keys[] = {0, 7, int64_t{1} << 62};
  const int64_t damaged[] = {0, 7, 7};
  SafetensorsWriter& model = (*writer)->model();
  ASSERT_OK(model.WriteAt("t/keys", 0,
                          {reinterpret_cast<const char*>(keys), sizeof(keys)}));
  ASSERT_OK(model.WriteAt(
      "u/keys", 0, {reinterpret_cast<const char*>(damaged), sizeof(damaged)}));
  ASSERT_OK(model.WriteInt64("v/keys", 1));
  ASSERT_OK((*writer)->Commit(SampleManifest()));
  auto reader = CheckpointReader::Open(scratch_.path(), 8);
  ASSERT_OK(reader);

  EXPECT_THAT(reader->ReadKeys("t"),
              IsOkAndHolds(ElementsAre(0, 7, int64_t{1} << 62)));
  EXPECT_THAT(reader->ReadKeys("u"), StatusIs(absl::StatusCode::kDataLoss,
                                              HasSubstr("does not ascend")));
  EXPECT_THAT(
      reader->ReadKeys("v"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"v/keys\"")));
  EXPECT_THAT(reader->ReadKeys("w"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"w/keys\"")));
  // Three keys, and no row.
  EXPECT_THAT(
      reader->CheckVariable({"t", {9, 2}, DType::kFloat32, {}, RowCut::kKey}),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(CheckpointReaderTest, LongTensorIsConvertedInPieces) {
  constexpr int64_t kElements = 200'001;
  CheckpointTensors tensors;
  tensors.model = {{"double", TensorType::kF64, {kElements}}};
  std::vector<double> doubles(kElements);
  for (int64_t i = 0; i < kElements; ++i) doubles[i] = static_cast<double>(i);
  auto writer = CheckpointWriter::Create(scratch_.path(), 8, tensors);
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->model().WriteAt(
      "double", 0,
      {reinterpret_cast<const char*>(doubles.data()), doubles.size() * 8}));
  ASSERT_OK((*writer)->Commit(SampleManifest()));
  auto reader = CheckpointReader::Open(scratch_.path(), 8);
  ASSERT_OK(reader);

  std::vector<float> values(kElements);
  ASSERT_OK(reader->Read("double", absl::MakeSpan(values)));

  for (int64_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(values[i], static_cast<float>(i));
  }
}

TEST_F(CheckpointReaderTest, VariableOfTheJobIsComparedWithTheStoredOne) {
  VariableSpec variable;
  variable.name = "hidden1/weights";
  variable.shape = {2, 3};
  EXPECT_OK(reader_->CheckVariable(variable));

  variable.shape = {3, 2};
  EXPECT_THAT(reader_->CheckVariable(variable),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("[2,3]"), HasSubstr("[3,2]"))));
  variable.shape = {2, 3};
  variable.dtype = DType::kFloat64;
  EXPECT_THAT(reader_->CheckVariable(variable),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("F32"), HasSubstr("F64"))));
  variable.name = "hidden1/weights/Adam";
  EXPECT_THAT(reader_->CheckVariable(variable),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointReaderTest, BytesCanBeReadAsTheyAre) {
  auto file = reader_->FileOf("hidden1/weights/Momentum");

  ASSERT_OK(file);
  EXPECT_EQ(*file, &reader_->optimizer());
}

TEST_F(CheckpointReaderTest, CheckpointRemovedMeanwhileStaysReadable) {
  std::filesystem::remove_all(place_);
  std::vector<float> values(6);

  ASSERT_OK(reader_->Read("hidden1/weights", absl::MakeSpan(values)));

  EXPECT_EQ(values, kSampleWeights);
  EXPECT_THAT(CheckpointReader::Open(scratch_.path(), 7),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(CheckpointReaderTest, FilesOfDifferentStepsAreRefused) {
  ASSERT_NO_FATAL_FAILURE(WriteSample(scratch_.path(), 8));
  const auto overwrite = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(scratch_ / "step-00000008/optimizer.safetensors",
                             place_ + "/optimizer.safetensors", overwrite);

  EXPECT_THAT(CheckpointReader::Open(scratch_.path(), 7),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("global_step is 8"),
                             HasSubstr("the manifest says 7"))));
}

TEST_F(CheckpointReaderTest, DamagedHeaderIsRefusedByFileAndField) {
  const std::string path = place_ + "/model.safetensors";
  WriteText(path, absl::StrReplaceAll(ReadText(path), {{"[2,3]", "[2,4]"}}));

  EXPECT_THAT(CheckpointReader::Open(scratch_.path(), 7),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr(path), HasSubstr("data_offsets"),
                             HasSubstr("use another checkpoint"))));
}

}  // namespace
}  // namespace lockstep
