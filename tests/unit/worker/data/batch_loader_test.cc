#include "worker/data/batch_loader.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "worker/data/batch.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Dataset ThreeImages() {
  Dataset dataset;
  dataset.num_examples = 3;
  dataset.height = 1;
  dataset.width = 2;
  dataset.classes = 10;
  dataset.bytes = {0, 51, 102, 153, 204, 255};
  dataset.labels = {7, 8, 9};
  return dataset;
}

TEST(BatchLoaderTest, ExamplesComeInTheOrderOfTheirIds) {
  const auto batch = LoadBatch(ThreeImages(), {2, 0});

  ASSERT_OK(batch);
  EXPECT_EQ(batch->size, 2);
  EXPECT_THAT(batch->images, ElementsAre(0.8f, 1.0f, 0.0f, 0.2f));
  EXPECT_THAT(batch->labels, ElementsAre(9, 7));
}

TEST(BatchLoaderTest, ValuesAreNotScaled) {
  Dataset dataset;
  dataset.num_examples = 2;
  dataset.height = 1;
  dataset.width = 2;
  dataset.values = {1, 2, -3, 400};
  dataset.labels = {0, 1};

  const auto batch = LoadBatch(dataset, {1});

  ASSERT_OK(batch);
  EXPECT_THAT(batch->images, ElementsAre(-3, 400));
}

TEST(BatchLoaderTest, EveryByteOfAnImageOfAnySizeIsDividedBy255) {
  for (size_t size : {1u, 15u, 16u, 17u, 33u, 256u}) {
    Dataset dataset;
    dataset.num_examples = 1;
    dataset.height = 1;
    dataset.width = static_cast<int64_t>(size);
    dataset.labels = {0};
    for (size_t i = 0; i < size; ++i) {
      dataset.bytes.push_back(static_cast<uint8_t>(i));
    }

    const auto batch = LoadBatch(dataset, {0});

    ASSERT_OK(batch);
    ASSERT_EQ(batch->images.size(), size);
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(batch->images[i], static_cast<float>(i) / 255.0f);
    }
  }
}

TEST(BatchLoaderTest, ChannelsBelongToTheImage) {
  Dataset dataset = ThreeImages();
  dataset.width = 1;
  dataset.channels = 2;

  const auto batch = LoadBatch(dataset, {1});

  ASSERT_OK(batch);
  EXPECT_THAT(batch->images, ElementsAre(0.4f, 0.6f));
}

TEST(BatchLoaderTest, SameExampleMayComeTwice) {
  const auto batch = LoadBatch(ThreeImages(), {1, 1});

  ASSERT_OK(batch);
  EXPECT_THAT(batch->labels, ElementsAre(8, 8));
}

TEST(BatchLoaderTest, NoIdsGiveAnEmptyBatch) {
  const auto batch = LoadBatch(ThreeImages(), {});

  ASSERT_OK(batch);
  EXPECT_EQ(batch->size, 0);
  EXPECT_THAT(batch->images, IsEmpty());
}

TEST(BatchLoaderTest, IdsOutsideTheSetAreRefused) {
  EXPECT_THAT(LoadBatch(ThreeImages(), {0, 3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("id 3"), HasSubstr("[0, 3)"))));
  EXPECT_THAT(LoadBatch(ThreeImages(), {-1}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(BatchLoaderTest, SourceLoadsWhatTheScheduleChooses) {
  const Dataset dataset = ThreeImages();
  BatchSchedule::Options options;
  options.num_examples = 3;
  options.batch_size = 1;
  options.epochs = 1;
  auto schedule = BatchSchedule::Create(options);
  ASSERT_OK(schedule);
  const auto ids = schedule->Batch(1);
  ASSERT_OK(ids);

  const BatchSource source = MakeBatchSource(*std::move(schedule), dataset);
  const auto batch = source(1);

  ASSERT_OK(batch);
  EXPECT_THAT(batch->labels,
              ElementsAre(dataset.labels[static_cast<size_t>(ids->front())]));
  EXPECT_THAT(source(3), StatusIs(absl::StatusCode::kOutOfRange));
}

}  // namespace
}  // namespace lockstep::worker
