#include "common/checkpoint/format/safetensors_file.h"

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/checkpoint/scratch_directory.h"

namespace lockstep {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::vector<TensorSpec> kTensors = {
    {"a", TensorType::kF32, {4}},
    {"global_step", TensorType::kI64, {}},
    {"empty", TensorType::kF32, {0}},
};

class SafetensorsFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<SafetensorsWriter> Create() {
    auto writer = SafetensorsWriter::Create(path_, kTensors, {{"k", "v"}});
    EXPECT_OK(writer);
    return writer.ok() ? *std::move(writer) : nullptr;
  }

  void WriteSampleFile() {
    auto writer = Create();
    ASSERT_NE(writer, nullptr);
    ASSERT_OK(writer->WriteAt("a", 0, absl::string_view("0123456789abcdef")));
    ASSERT_OK(writer->WriteInt64("global_step", 1500));
    ASSERT_OK(writer->Finish());
  }

  bool Exists() const { return std::filesystem::exists(path_); }

  ScratchDirectory scratch_;
  const std::string path_ = scratch_ / "model.safetensors";
};

TEST_F(SafetensorsFileTest, PartsInAnyOrderMakeTheWholeTensor) {
  auto writer = Create();
  ASSERT_NE(writer, nullptr);
  ASSERT_OK(writer->WriteAt("a", 12, absl::string_view("cdef")));
  ASSERT_OK(writer->WriteInt64("global_step", 1500));
  ASSERT_OK(writer->WriteAt("a", 0, absl::string_view("0123")));
  ASSERT_OK(writer->WriteAt("a", 4, absl::string_view("456789ab")));

  ASSERT_OK(writer->Finish());

  auto reader = SafetensorsReader::Open(path_);
  ASSERT_OK(reader);
  std::string back(16, '?');
  ASSERT_OK(reader->ReadAt("a", 0, absl::MakeSpan(back)));
  EXPECT_EQ(back, "0123456789abcdef");
  EXPECT_EQ(reader->header(), writer->header());
  EXPECT_EQ(reader->header().data_start + reader->header().data_bytes,
            std::filesystem::file_size(path_));
}

TEST_F(SafetensorsFileTest, RepeatedPartCountsOnceAndTheLastWins) {
  auto writer = Create();
  ASSERT_NE(writer, nullptr);
  ASSERT_OK(writer->WriteAt("a", 0, absl::string_view("xxxxxxxxxxxxxxxx")));
  ASSERT_OK(writer->WriteAt("a", 0, absl::string_view("0123456789abcdef")));
  ASSERT_OK(writer->WriteInt64("global_step", 1));
  ASSERT_OK(writer->Finish());

  auto reader = SafetensorsReader::Open(path_);
  ASSERT_OK(reader);
  std::string back(16, '?');
  ASSERT_OK(reader->ReadAt("a", 0, absl::MakeSpan(back)));
  EXPECT_EQ(back, "0123456789abcdef");
}

TEST_F(SafetensorsFileTest, MissingByteIsNamedAndCanStillBeWritten) {
  auto writer = Create();
  ASSERT_NE(writer, nullptr);
  ASSERT_OK(writer->WriteInt64("global_step", 1));
  ASSERT_OK(writer->WriteAt("a", 0, absl::string_view("0123456789abcde")));

  EXPECT_THAT(writer->Finish(),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("\"a\""), HasSubstr("byte 15 of 16"))));

  ASSERT_OK(writer->WriteAt("a", 15, absl::string_view("f")));
  EXPECT_OK(writer->Finish());
  EXPECT_OK(writer->Finish());
}

TEST_F(SafetensorsFileTest, WriteOutsideTheTensorChangesNothing) {
  auto writer = Create();
  ASSERT_NE(writer, nullptr);

  EXPECT_THAT(writer->WriteAt("a", 13, absl::string_view("4444")),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("16 bytes")));
  EXPECT_THAT(writer->WriteAt("a", ~uint64_t{0}, absl::string_view("44")),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(writer->WriteAt("b", 0, absl::string_view("4444")),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("\"b\"")));
  EXPECT_EQ(ReadText(path_).substr(writer->header().data_start),
            std::string(24, '\0'));
}

TEST_F(SafetensorsFileTest, FinishedFileTakesNoMoreBytes) {
  auto writer = Create();
  ASSERT_NE(writer, nullptr);
  ASSERT_OK(writer->WriteAt("a", 0, absl::string_view("0123456789abcdef")));
  ASSERT_OK(writer->WriteInt64("global_step", 1));
  ASSERT_OK(writer->Finish());

  const std::string before = ReadText(path_);
  EXPECT_THAT(writer->WriteAt("a", 0, absl::string_view("x")),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("is finished")));
  EXPECT_EQ(ReadText(path_), before);
}

TEST_F(SafetensorsFileTest, UnfinishedFileIsRemoved) {
  auto writer = Create();
  ASSERT_TRUE(Exists());

  writer.reset();

  EXPECT_FALSE(Exists());
}

TEST_F(SafetensorsFileTest, ExistingFileIsLeftAlone) {
  WriteText(path_, "kept");

  EXPECT_THAT(SafetensorsWriter::Create(path_, kTensors, {}),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(ReadText(path_), "kept");
}

TEST_F(SafetensorsFileTest, BadTensorsMakeNoFile) {
  EXPECT_THAT(
      SafetensorsWriter::Create(path_, {{"w", TensorType::kF32, {-1}}}, {}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(path_)));
  EXPECT_FALSE(Exists());
}

TEST_F(SafetensorsFileTest, FileThatNoDiskCanHoldIsRefusedAndLeavesNothing) {
  auto refused = SafetensorsWriter::Create(
      path_, {{"w", TensorType::kF64, {int64_t{1} << 59}}}, {});

  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr(path_));
  EXPECT_FALSE(Exists());
}

TEST_F(SafetensorsFileTest, OnlyIntegerScalarsTakeAnInteger) {
  auto writer = Create();
  ASSERT_NE(writer, nullptr);

  EXPECT_THAT(
      writer->WriteInt64("a", 1),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("\"a\""), HasSubstr("is not an I64 scalar"))));
}

TEST_F(SafetensorsFileTest, ThreadsMayWriteTogether) {
  std::vector<TensorSpec> tensors = {{"w", TensorType::kF32, {4096}}};
  auto writer = SafetensorsWriter::Create(path_, tensors, {});
  ASSERT_OK(writer);
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = t; i < 256; i += 4) {
        EXPECT_OK((*writer)->WriteAt("w", i * 64,
                                     std::string(64, static_cast<char>(i))));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  ASSERT_OK((*writer)->Finish());

  const std::string data =
      ReadText(path_).substr((*writer)->header().data_start);
  ASSERT_EQ(data.size(), 256u * 64);
  for (size_t i = 0; i < data.size(); ++i) {
    ASSERT_EQ(data[i], static_cast<char>(i / 64)) << i;
  }
}

TEST_F(SafetensorsFileTest, TensorsAreFoundByName) {
  ASSERT_NO_FATAL_FAILURE(WriteSampleFile());
  auto reader = SafetensorsReader::Open(path_);
  ASSERT_OK(reader);

  ASSERT_NE(reader->Find("a"), nullptr);
  EXPECT_EQ(reader->Find("a")->shape, std::vector<int64_t>{4});
  EXPECT_NE(reader->Find("empty"), nullptr);
  EXPECT_EQ(reader->Find("b"), nullptr);
  EXPECT_EQ(reader->header().metadata.at("k"), "v");
}

TEST_F(SafetensorsFileTest, OnlyTheReadOfAnotherTypeIsRefused) {
  auto writer = SafetensorsWriter::Create(
      path_, {{"w", TensorType::kF32, {1}}, {"mask", TensorType::kBool, {4}}},
      {});
  ASSERT_OK(writer);
  ASSERT_OK((*writer)->WriteAt("w", 0, absl::string_view("0123")));
  ASSERT_OK((*writer)->WriteAt("mask", 0, absl::string_view("\1\1\1\1")));
  ASSERT_OK((*writer)->Finish());

  auto reader = SafetensorsReader::Open(path_);

  ASSERT_OK(reader);
  std::string back(4, '?');
  ASSERT_OK(reader->ReadAt("w", 0, absl::MakeSpan(back)));
  EXPECT_EQ(back, "0123");
  EXPECT_THAT(reader->ReadAt("mask", 0, absl::MakeSpan(back)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"mask\""),
                             HasSubstr("dtype BOOL is not supported"))));
  EXPECT_EQ(back, "0123");
}

TEST_F(SafetensorsFileTest, ReadOutsideTheTensorIsRefused) {
  ASSERT_NO_FATAL_FAILURE(WriteSampleFile());
  auto reader = SafetensorsReader::Open(path_);
  ASSERT_OK(reader);
  std::string back(4, '?');

  EXPECT_THAT(reader->ReadAt("a", 13, absl::MakeSpan(back)),
              StatusIs(absl::StatusCode::kOutOfRange));
  EXPECT_THAT(reader->ReadAt("b", 0, absl::MakeSpan(back)),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(back, "????");
}

TEST_F(SafetensorsFileTest, AFileOfAnotherKindIsRefusedAsSuch) {
  // The begin of a zip archive, as torch.save writes one.
  WriteText(path_, "PK\x03\x04" + std::string(100, 'x'));

  EXPECT_THAT(SafetensorsReader::Open(path_),
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr("or no safetensors file")));
}

TEST_F(SafetensorsFileTest, EveryTruncatedFileIsRefusedByName) {
  ASSERT_NO_FATAL_FAILURE(WriteSampleFile());
  const std::string whole = ReadText(path_);

  for (size_t size = 0; size < whole.size(); size += 7) {
    WriteText(path_, whole.substr(0, size));
    EXPECT_THAT(
        SafetensorsReader::Open(path_),
        StatusIs(absl::StatusCode::kDataLoss,
                 AllOf(HasSubstr(path_), HasSubstr("use another checkpoint"))))
        << size;
  }
}

TEST_F(SafetensorsFileTest, FileCutOffAfterOpeningIsAnErrorNotASignal) {
  ASSERT_NO_FATAL_FAILURE(WriteSampleFile());
  auto reader = SafetensorsReader::Open(path_);
  ASSERT_OK(reader);
  std::filesystem::resize_file(path_, reader->header().data_start + 10);

  std::string back(16, '?');

  EXPECT_THAT(reader->ReadAt("a", 0, absl::MakeSpan(back)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("cut off")));
}

TEST_F(SafetensorsFileTest, MissingFileIsNotFound) {
  EXPECT_THAT(SafetensorsReader::Open(path_),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace lockstep
