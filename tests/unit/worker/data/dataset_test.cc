#include "worker/data/dataset.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/data/idx_bytes.h"

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

IdxArray TwoImages() { return {{2, 1, 3}, {1, 2, 3, 4, 5, 6}}; }

TEST(DatasetTest, ImagesMeetTheirLabels) {
  const auto dataset = MakeImageDataset(TwoImages(), {{2}, {4, 0}});

  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->num_examples, 2);
  EXPECT_EQ(dataset->height, 1);
  EXPECT_EQ(dataset->width, 3);
  EXPECT_EQ(dataset->channels, 1);
  EXPECT_EQ(dataset->image_size(), 3);
  EXPECT_EQ(dataset->classes, 5);
  EXPECT_THAT(dataset->images, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(dataset->labels, ElementsAre(4, 0));
}

TEST(DatasetTest, FourthDimensionIsTheChannels) {
  const auto dataset =
      MakeImageDataset({{1, 2, 1, 3}, {1, 2, 3, 4, 5, 6}}, {{1}, {0}});

  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->channels, 3);
  EXPECT_EQ(dataset->image_size(), 6);
}

TEST(DatasetTest, LargestLabelOfAByteIsAClass) {
  const auto dataset = MakeImageDataset(TwoImages(), {{2}, {255, 3}});

  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->classes, 256);
  EXPECT_THAT(dataset->labels, ElementsAre(255, 3));
}

TEST(DatasetTest, ClassesMayBeMoreThanTheLabelsShow) {
  const auto dataset = MakeImageDataset(TwoImages(), {{2}, {3, 0}}, 6);

  ASSERT_OK(dataset);
  EXPECT_EQ(dataset->classes, 6);
  EXPECT_EQ(dataset->empty_classes, 4);
  EXPECT_EQ(dataset->first_empty_class, 1);
}

TEST(DatasetTest, LabelBeyondTheClassesIsRefused) {
  EXPECT_THAT(MakeImageDataset(TwoImages(), {{2}, {9, 255}}, 10),
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
  EXPECT_THAT(MakeImageDataset(TwoImages(), {{3}, {0, 1, 2}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("2 images"), HasSubstr("3 labels"))));
}

TEST(DatasetTest, OtherDimensionsAreRefused) {
  EXPECT_THAT(MakeImageDataset({{2, 3}, {1, 2, 3, 4, 5, 6}}, {{2}, {0, 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("images have the dimensions 2 x 3")));
  EXPECT_THAT(MakeImageDataset(TwoImages(), {{2, 1}, {0, 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("labels have the dimensions 2 x 1")));
}

TEST(DatasetTest, EmptySetAndEmptyImagesAreRefused) {
  EXPECT_THAT(
      MakeImageDataset({{0, 28, 28}, {}}, {{0}, {}}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 x 28 x 28")));
  EXPECT_THAT(MakeImageDataset({{2, 0, 28}, {}}, {{2}, {0, 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(DatasetTest, PairOfFilesIsLoaded) {
  const testing::TempDir dir;
  WriteFile(dir.Join("images"), Gzip(IdxBytes({2, 1, 1}, {8, 9})));
  WriteFile(dir.Join("labels"), IdxBytes({2}, {1, 0}));

  const auto dataset = LoadImageDataset(dir.Join("images"), dir.Join("labels"));

  ASSERT_OK(dataset);
  EXPECT_THAT(dataset->images, ElementsAre(8, 9));
  EXPECT_THAT(dataset->labels, ElementsAre(1, 0));
}

TEST(DatasetTest, MismatchedPairNamesBothFiles) {
  const testing::TempDir dir;
  WriteFile(dir.Join("images"), IdxBytes({2, 1, 1}, {8, 9}));
  WriteFile(dir.Join("labels"), IdxBytes({1}, {1}));

  EXPECT_THAT(LoadImageDataset(dir.Join("images"), dir.Join("labels")),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(dir.Join("images")),
                             HasSubstr(dir.Join("labels")))));
}

TEST(DatasetTest, MissingFileOfAPairIsNamed) {
  const testing::TempDir dir;
  WriteFile(dir.Join("labels"), IdxBytes({1}, {1}));

  EXPECT_THAT(
      LoadImageDataset(dir.Join("images"), dir.Join("labels")),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr(dir.Join("images"))));
}

}  // namespace
}  // namespace lockstep::worker
