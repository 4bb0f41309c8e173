#include "worker/tables/table_gradient_source.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/hooked_pass.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;

class FakeWorkload final : public TableWorkload {
 public:
  const std::vector<VariableSpec>& variables() const override {
    return variables_;
  }
  int64_t num_examples() const override { return 6; }
  absl::Status Prepare(absl::Span<const int64_t> examples, uint64_t seed,
                       ParameterMemory& memory) override {
    seeds.push_back(seed);
    return memory.ChooseRows(0, {examples.begin(), examples.end()});
  }
  absl::StatusOr<GradientResult> Compute(ParameterMemory&) override {
    return GradientResult{0.5, 2};
  }
  absl::StatusOr<std::vector<ScoredExample>> Predict(const CheckpointReader&,
                                                     const OnScored&) override {
    return std::vector<ScoredExample>();
  }

  std::vector<uint64_t> seeds;

 private:
  const std::vector<VariableSpec> variables_ = {
      {"t", {6, 1}, DType::kFloat32, {}, RowCut::kDiv},
      {"b", {1}, DType::kFloat32, {}}};
};

class TableGradientSourceTest : public ::testing::Test {
 protected:
  TableGradientSourceTest()
      : memory_(*ParameterMemory::Make(workload_.variables())),
        source_(workload_,
                *BatchSchedule::Create(
                    {.num_examples = 6, .batch_size = 2, .epochs = 1}),
                7, memory_) {}

  FakeWorkload workload_;
  ParameterMemory memory_;
  TableGradientSource source_;
};

TEST_F(TableGradientSourceTest, RowsAreChosenBeforeTheyArePulled) {
  ASSERT_OK(source_.Prepare({}, 1));
  EXPECT_EQ(memory_.rows(0).ids.size(), 2u);
  std::vector<size_t> reported;
  ASSERT_OK(testing::ComputePass(
      source_, 1,
      {.on_gradient = [&](size_t variable) { reported.push_back(variable); }}));
  EXPECT_THAT(reported, ElementsAre(1, 0));
}

TEST_F(TableGradientSourceTest, ABatchThatWasNotPreparedIsNotComputed) {
  EXPECT_THAT(testing::ComputePass(source_, 0),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(TableGradientSourceTest, TheEndOfInputIsFoundWhenPreparing) {
  EXPECT_THAT(source_.Prepare({}, 3), StatusIs(absl::StatusCode::kOutOfRange));
}

TEST_F(TableGradientSourceTest, DrawsFollowFromTheBatch) {
  for (const int64_t index : {0, 1, 0}) ASSERT_OK(source_.Prepare({}, index));
  EXPECT_EQ(workload_.seeds[0], workload_.seeds[2]);
  EXPECT_NE(workload_.seeds[0], workload_.seeds[1]);
}

}  // namespace
}  // namespace lockstep::worker
