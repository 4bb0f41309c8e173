#include "worker/blocks/block_source.h"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/worker/blocks/recording_pass.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two variables of one float. The gradient of the first is the index of the
// batch; the second has one in even batches only. A third one, if there is, is
// a table: the gradient of row 0 is 1, that of row 1 + index is the index.
class Source final : public GradientSource {
 public:
  explicit Source(ParameterMemory& memory) : memory_(memory) {}

  absl::Status Prepare(const PassId& pass, int64_t index) override {
    calls.push_back(absl::StrCat("prepare ", pass.slot, " of ", index));
    return with_table ? memory_.ChooseRows(2, {0, 1 + index})
                      : absl::OkStatus();
  }
  absl::Status Begin(int64_t index, GradientPass& pass) override {
    index_ = index;
    return pass.NeedValues(0, 2);
  }
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override {
    calls.push_back(absl::StrCat("compute ", index_));
    const auto index = static_cast<float>(index_);
    if (with_table) {
      const std::vector<float> rows = {1, index};
      std::memcpy(memory_.gradient(2).data(), rows.data(), 2 * sizeof(float));
      pass.GradientReady(2);
    }
    const bool even = index_ % 2 == 0;
    StoreGradient(memory_, 1, even ? 10 : 0);
    even ? pass.GradientReady(1) : pass.GradientAbsent(1);
    StoreGradient(memory_, 0, index);
    pass.GradientReady(0);
    return GradientResult{static_cast<double>(index_), 4, 1};
  }

  std::vector<std::string> calls;
  bool with_table = false;

 private:
  ParameterMemory& memory_;
  int64_t index_ = 0;
};

// Steps of seven micro-batches.
class BlockSourceTest : public ::testing::Test {
 protected:
  absl::StatusOr<GradientResult> Run(const PassId& id, int64_t index) {
    if (auto status = block_.Prepare(id, index); !status.ok()) return status;
    if (auto status = block_.Begin(index, pass_); !status.ok()) return status;
    return block_.Finish(pass_);
  }
  GradientClipper::Gradients Gradients() {
    return {memory_.gradient(0), memory_.gradient(1)};
  }
  std::vector<float> Values() { return TwoGradients(memory_); }

  std::vector<VariableSpec> variables_ = {
      {.name = "a"},
      {.name = "b"},
      {.name = "t", .shape = {100, 1}, .row_cut = RowCut::kMod}};
  ParameterMemory memory_ =
      *ParameterMemory::Make(variables_, ParameterMemory::Gradients::kPrivate);
  Source source_{memory_};
  RecordingPass pass_;
  ClippingConfig clipping_;
  GradientClipper clipper_{clipping_, DType::kFloat32,
                           [this] { return Gradients(); }};
  BlockSource block_{source_, variables_, 7, clipper_, memory_};
};

TEST_F(BlockSourceTest, BlockIsComputedOneByOneAndReportedAsASum) {
  const auto result = Run({.step = 1, .slot = 2, .block = 2}, 9);

  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(source_.calls, ElementsAre("prepare 2 of 9", "compute 9",
                                         "prepare 3 of 10", "compute 10"));
  EXPECT_THAT(pass_.reports, ElementsAre("ready 1", "ready 0"));
  EXPECT_THAT(Values(), ElementsAre(19, 10));
  EXPECT_EQ(result->loss, 9.5);
  EXPECT_EQ(result->examples, 8);
  EXPECT_EQ(result->non_finite, 2);
  EXPECT_EQ(pass_.pulls, 1);
}

TEST_F(BlockSourceTest, SumOfATableHasAllRowsAndTheirCounts) {
  source_.with_table = true;

  ASSERT_THAT(Run({.slot = 2, .block = 4}, 20), IsOk());

  const RowSum* const sum = memory_.row_sum(2);
  ASSERT_NE(sum, nullptr);
  EXPECT_THAT(sum->ids, ElementsAre(0, 21, 22, 23, 24));
  EXPECT_THAT(sum->counts, ElementsAre(4, 1, 1, 1, 1));
  std::vector<float> rows(5);
  ASSERT_EQ(sum->gradients.size(), 5 * sizeof(float));
  std::memcpy(rows.data(), sum->gradients.data(), sum->gradients.size());
  EXPECT_THAT(rows, ElementsAre(4, 20, 21, 22, 23));
  EXPECT_THAT(pass_.reports, ElementsAre("ready 2", "ready 1", "ready 0"));
}

TEST_F(BlockSourceTest, SingleMicroBatchOfATableNeedsNoSum) {
  source_.with_table = true;

  ASSERT_THAT(Run({.slot = 6, .block = 2}, 20), IsOk());

  EXPECT_EQ(memory_.row_sum(2), nullptr);
}

TEST_F(BlockSourceTest, LastBlockOfAStepIsShorter) {
  ASSERT_THAT(Run({.slot = 4, .block = 4}, 4), IsOk());

  EXPECT_THAT(Values(), ElementsAre(4 + 5 + 6, 20));
}

TEST_F(BlockSourceTest, SumWithoutAnyGradientIsAbsent) {
  ASSERT_THAT(Run({.slot = 6, .block = 2}, 13), IsOk());

  EXPECT_THAT(pass_.reports, ElementsAre("absent 1", "ready 0"));
}

TEST_F(BlockSourceTest, PassThatIsNotWantedEndsBetweenTwoMicroBatches) {
  ASSERT_THAT(block_.Prepare({.slot = 0, .block = 4}, 0), IsOk());
  ASSERT_THAT(block_.Begin(0, pass_), IsOk());
  pass_.wanted = false;

  EXPECT_THAT(block_.Finish(pass_), StatusIs(absl::StatusCode::kAborted));

  EXPECT_THAT(source_.calls, ElementsAre("prepare 0 of 0", "compute 0"));
  EXPECT_THAT(pass_.reports, ElementsAre());
  pass_.wanted = true;
  ASSERT_THAT(Run({.slot = 2, .block = 2}, 2), IsOk());
  EXPECT_THAT(Values(), ElementsAre(5, 10));
}

TEST_F(BlockSourceTest, GradientsAreClippedBeforeTheyAreAdded) {
  clipping_ = {ClippingConfig::Kind::kGlobalNorm, 5};
  GradientClipper clipper(clipping_, DType::kFloat32,
                          [this] { return Gradients(); });
  BlockSource block(source_, variables_, 7, clipper, memory_);
  ASSERT_THAT(block.Prepare({.slot = 0, .block = 2}, 5), IsOk());
  ASSERT_THAT(block.Begin(5, pass_), IsOk());

  ASSERT_THAT(block.Finish(pass_), IsOk());

  // 5 stays; 6 and 10 have a norm of 11.7.
  EXPECT_NEAR(Values()[0], 5 + 6 * 5 / 11.6619, 1e-4);
  EXPECT_NEAR(Values()[1], 10 * 5 / 11.6619, 1e-4);
}

// Where a variable is absent, its memory gets the sum of the micro-batches
// before, which must neither count nor be clipped.
TEST_F(BlockSourceTest, SumOfTheOnesBeforeIsNotClippedWhereAVariableIsAbsent) {
  constexpr double kLimit = 5;
  clipping_ = {ClippingConfig::Kind::kGlobalNorm, kLimit};
  GradientClipper clipper(clipping_, DType::kFloat32,
                          [this] { return Gradients(); });
  BlockSource block(source_, variables_, 8, clipper, memory_);
  for (const int count : {2, 4}) {
    pass_.reports.clear();
    ASSERT_THAT(block.Prepare({.slot = 0, .block = count}, 20), IsOk());
    ASSERT_THAT(block.Begin(20, pass_), IsOk());

    ASSERT_THAT(block.Finish(pass_), IsOk());

    double a = 0;
    double b = 0;
    for (int index = 20; index < 20 + count; ++index) {
      const double of_b = index % 2 == 0 ? 10 : 0;
      const double norm = std::hypot(index, of_b);
      a += index * kLimit / norm;
      b += of_b * kLimit / norm;
    }
    EXPECT_NEAR(Values()[0], a, 1e-4);
    EXPECT_NEAR(Values()[1], b, 1e-4);
    EXPECT_THAT(pass_.reports, ElementsAre("ready 1", "ready 0"));
  }
}

TEST_F(BlockSourceTest, VariableWhoseSumIsNotTheServersIsNamed) {
  variables_[1].dtype = DType::kBFloat16;
  BlockSource block(source_, variables_, 7, clipper_, memory_);

  EXPECT_THAT(block.Prepare({.slot = 0, .block = 2}, 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("b is of bfloat16")));
  EXPECT_THAT(block.Prepare({.slot = 0}, 0), IsOk());
}

}  // namespace
}  // namespace lockstep::worker
