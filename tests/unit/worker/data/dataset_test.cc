#include "worker/data/dataset.h"

#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/files/idx_bytes.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::Gzip;
using ::lockstep::testing::IdxBytes;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::lockstep::testing::WriteFile;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NumberArray Bytes(std::vector<int64_t> dimensions, std::vector<uint8_t> bytes) {
  return {NumberType::kUint8, std::move(dimensions), std::move(bytes)};
}

NumberArray Floats(std::vector<int64_t> dimensions,
                   const std::vector<float>& values) {
  NumberArray array{NumberType::kFloat32, std::move(dimensions), {}};
  array.bytes.resize(values.size() * sizeof(float));
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

NumberArray TwoImages() { return Bytes({2, 1, 3}, {1, 2, 3, 4, 5, 6}); }

TEST(DatasetTest, ImagesMeetTheirLabels) {
  const auto dataset = MakeDataset(TwoImages(), Bytes({2}, {4, 0}));

  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->num_examples, 2);
  EXPECT_EQ(dataset->height, 1);
  EXPECT_EQ(dataset->width, 3);
  EXPECT_EQ(dataset->channels, 1);
  EXPECT_EQ(dataset->example_size(), 3);
  EXPECT_EQ(dataset->classes, 5);
  EXPECT_THAT(dataset->bytes, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(dataset->labels, ElementsAre(4, 0));
}

TEST(DatasetTest, FourthDimensionIsTheChannels) {
  const auto dataset =
      MakeDataset(Bytes({1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}), Bytes({1}, {0}));

  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->channels, 3);
  EXPECT_EQ(dataset->example_size(), 6);
}

TEST(DatasetTest, LargestLabelOfAByteIsAClass) {
  const auto dataset = MakeDataset(TwoImages(), Bytes({2}, {255, 3}));

  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->classes, 256);
  EXPECT_THAT(dataset->labels, ElementsAre(255, 3));
}

TEST(DatasetTest, ClassesMayBeMoreThanTheLabelsShow) {
  const auto dataset = MakeDataset(TwoImages(), Bytes({2}, {3, 0}), 6);

  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->classes, 6);
  EXPECT_EQ(dataset->empty_classes, 4);
  EXPECT_EQ(dataset->first_empty_class, 1);
}

TEST(DatasetTest, LabelBeyondTheClassesIsRefused) {
  EXPECT_THAT(MakeDataset(TwoImages(), Bytes({2}, {9, 255}), 10),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("label 255 of example 1"),
                             HasSubstr("[0, 10)"), HasSubstr("data.classes"))));
}

TEST(DatasetTest, ClassesOfAFileOfLabelsAreCounted) {
  const testing::TempDir dir;
  WriteFile(dir.Join("labels"), IdxBytes({3}, {1, 7, 0}));
  WriteFile(dir.Join("none"), IdxBytes({0}, {}));

  EXPECT_THAT(CountClasses(dir.Join("labels")), IsOkAndHolds(8));
  EXPECT_THAT(CountClasses(dir.Join("none")),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DatasetTest, DifferentCountsAreRefused) {
  EXPECT_THAT(MakeDataset(TwoImages(), Bytes({3}, {0, 1, 2})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("2 examples"), HasSubstr("3 labels"))));
}

TEST(DatasetTest, RowsOfNumbersHaveAHeightOfOne) {
  const auto dataset =
      MakeDataset(Bytes({2, 3}, {1, 2, 3, 4, 5, 6}), Bytes({2}, {0, 1}));

  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->height, 1);
  EXPECT_EQ(dataset->width, 3);
  EXPECT_EQ(dataset->num_examples, 2);
}

TEST(DatasetTest, FloatsStandForThemselves) {
  const auto dataset =
      MakeDataset(Floats({2, 1}, {-3.5F, 1000}), Floats({2}, {1, 0}));

  ASSERT_OK(dataset);
  EXPECT_THAT(dataset->values, ElementsAre(-3.5F, 1000));
  EXPECT_THAT(dataset->bytes, IsEmpty());
  EXPECT_THAT(dataset->labels, ElementsAre(1, 0));
}

TEST(DatasetTest, FeatureThatIsNotFiniteIsRefused) {
  const float nan = std::numeric_limits<float>::quiet_NaN();

  EXPECT_THAT(MakeDataset(Floats({2, 1}, {0, nan}), Bytes({2}, {0, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("features: element 1 is nan")));
}

TEST(DatasetTest, LabelThatIsNoClassIsRefused) {
  EXPECT_THAT(MakeDataset(TwoImages(), Floats({2}, {0, 0.5F})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("labels: element 1 is 0.5")));
  EXPECT_THAT(MakeDataset(TwoImages(), Floats({2}, {0, -1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("label -1 of example 1")));
  EXPECT_THAT(MakeDataset(TwoImages(), Floats({2}, {0, 1e10F})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("label 10000000000 of example 1")));
}

TEST(DatasetTest, OtherDimensionsAreRefused) {
  EXPECT_THAT(MakeDataset(Bytes({2}, {1, 2}), Bytes({2}, {0, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("features have the dimensions 2;")));
  EXPECT_THAT(MakeDataset(TwoImages(), Bytes({2, 1}, {0, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("labels have the dimensions 2 x 1")));
}

TEST(DatasetTest, EmptySetAndEmptyImagesAreRefused) {
  EXPECT_THAT(
      MakeDataset(Bytes({0, 28, 28}, {}), Bytes({0}, {})),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 x 28 x 28")));
  EXPECT_THAT(MakeDataset(Bytes({2, 0, 28}, {}), Bytes({2}, {0, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DatasetTest, PairOfFilesIsLoaded) {
  const testing::TempDir dir;
  WriteFile(dir.Join("images"), Gzip(IdxBytes({2, 1, 1}, {8, 9})));
  WriteFile(dir.Join("labels"), IdxBytes({2}, {1, 0}));

  const auto dataset = LoadDataset(dir.Join("images"), dir.Join("labels"));

  ASSERT_OK(dataset);
  EXPECT_THAT(dataset->bytes, ElementsAre(8, 9));
  EXPECT_THAT(dataset->labels, ElementsAre(1, 0));
}

TEST(DatasetTest, MismatchedPairNamesBothFiles) {
  const testing::TempDir dir;
  WriteFile(dir.Join("images"), IdxBytes({2, 1, 1}, {8, 9}));
  WriteFile(dir.Join("labels"), IdxBytes({1}, {1}));

  EXPECT_THAT(LoadDataset(dir.Join("images"), dir.Join("labels")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(dir.Join("images")),
                             HasSubstr(dir.Join("labels")))));
}

TEST(DatasetTest, MissingFileOfAPairIsNamed) {
  const testing::TempDir dir;
  WriteFile(dir.Join("labels"), IdxBytes({1}, {1}));

  EXPECT_THAT(
      LoadDataset(dir.Join("images"), dir.Join("labels")),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.Join("images"))));
}

}  // namespace
}  // namespace lockstep::worker
