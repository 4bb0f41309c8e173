#include "worker/blocks/pass_series.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Story = std::vector<std::string>;

// Tells what is called; reports variable 0.
class Source final : public GradientSource {
 public:
  explicit Source(Story& story) : story_(story) {}

  absl::Status Prepare(const PassId& pass, int64_t index) override {
    story_.push_back(absl::StrCat("prepare slot ", pass.slot, " of ", index));
    return absl::OkStatus();
  }
  absl::Status Begin(int64_t index, GradientPass& /*pass*/) override {
    story_.push_back(absl::StrCat("begin ", index));
    return absl::OkStatus();
  }
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override {
    pass.GradientReady(0);
    return GradientResult{.loss = 3, .examples = 1};
  }

 private:
  Story& story_;
};

class Pass final : public GradientPass {
 public:
  explicit Pass(Story& story) : story_(story) {}
  absl::Status PullRows() override {
    story_.push_back("pull rows");
    return absl::OkStatus();
  }
  absl::Status PullNextBatch() override {
    story_.push_back("pull");
    return absl::OkStatus();
  }
  void GradientReady(size_t /*variable*/) override {
    story_.push_back("ready");
  }
  void GradientAbsent(size_t /*variable*/) override {
    story_.push_back("absent");
  }

 private:
  Story& story_;
};

// Batch `number` of pass `index` is batch 10 x index + number, in slot number.
class Series final : public PassSeries {
 public:
  Series(GradientSource& source, GradientClipper& clipper, Story& story)
      : PassSeries(source, clipper), story_(story) {}

  absl::StatusOr<int> batches = 3;
  bool has_gradient = true;

 protected:
  absl::StatusOr<int> Open(const PassId& /*pass*/, int64_t /*index*/) override {
    return batches;
  }
  Part PartOf(const PassId& pass, int64_t index, int number) const override {
    Part part = {pass, 10 * index + number};
    part.pass.slot = number;
    return part;
  }
  void Reset() override { story_.push_back("reset"); }
  bool Add(size_t /*variable*/, bool /*absent*/) override {
    story_.push_back(absl::StrCat("add ", number(), " of ", count()));
    return has_gradient;
  }
  GradientResult Joined(
      const std::vector<GradientResult>& results) const override {
    return {.examples = static_cast<int64_t>(results.size())};
  }

 private:
  Story& story_;
};

class PassSeriesTest : public ::testing::Test {
 protected:
  absl::StatusOr<GradientResult> Run() {
    if (auto status = series_.Prepare({}, 4); !status.ok()) return status;
    if (auto status = series_.Begin(4, pass_); !status.ok()) return status;
    return series_.Finish(pass_);
  }

  Story story_;
  Source source_{story_};
  Pass pass_{story_};
  GradientClipper clipper_{ClippingConfig{}, DType::kFloat32,
                           [] { return GradientClipper::Gradients(1); }};
  Series series_{source_, clipper_, story_};
};

TEST_F(PassSeriesTest, BatchesFollowEachOtherAndOnlyTheLastOneIsReported) {
  const auto result = Run();

  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->examples, 3);
  EXPECT_THAT(story_, ElementsAre("prepare slot 0 of 40", "reset", "begin 40",
                                  "add 0 of 3",  //
                                  "prepare slot 1 of 41", "pull", "begin 41",
                                  "add 1 of 3",  //
                                  "prepare slot 2 of 42", "pull", "begin 42",
                                  "add 2 of 3", "ready"));
}

TEST_F(PassSeriesTest, SeriesWithoutAGradientReportsItAbsent) {
  series_.has_gradient = false;

  ASSERT_THAT(Run(), IsOk());

  EXPECT_EQ(story_.back(), "absent");
}

TEST_F(PassSeriesTest, SingleBatchNeedsNoSum) {
  series_.batches = 1;

  ASSERT_THAT(Run(), IsOk());

  EXPECT_THAT(story_, ElementsAre("prepare slot 0 of 40", "reset", "begin 40",
                                  "ready"));
}

TEST_F(PassSeriesTest, SeriesThatCannotBeAddedUpIsNotPrepared) {
  series_.batches = absl::InvalidArgumentError("no sum");

  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kInvalidArgument));

  EXPECT_THAT(story_, IsEmpty());
}

}  // namespace
}  // namespace lockstep::worker
