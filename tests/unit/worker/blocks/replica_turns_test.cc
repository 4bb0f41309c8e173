#include "worker/blocks/replica_turns.h"

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
using ::testing::IsEmpty;

// Two variables of one float. The gradient of the first is the index of the
// batch; the second has one, 12, in batches that three divides.
class Source final : public GradientSource {
 public:
  explicit Source(ParameterMemory& memory) : memory_(memory) {}

  absl::Status Prepare(const PassId& pass, int64_t index) override {
    calls.push_back(absl::StrCat("step ", pass.step, " batch ", index));
    return index == input_ends ? absl::OutOfRangeError("end of input")
                               : absl::OkStatus();
  }
  absl::Status Begin(int64_t index, GradientPass& pass) override {
    index_ = index;
    return pass.NeedValues(0, 2);
  }
  absl::StatusOr<GradientResult> Finish(GradientPass& pass) override {
    const bool has_second = index_ % 3 == 0 && !none_has_second;
    StoreGradient(memory_, 1, has_second ? 12 : 0);
    has_second ? pass.GradientReady(1) : pass.GradientAbsent(1);
    StoreGradient(memory_, 0, static_cast<float>(index_));
    pass.GradientReady(0);
    return GradientResult{static_cast<double>(index_), 4, 1};
  }

  std::vector<std::string> calls;
  bool none_has_second = false;
  int64_t input_ends = -1;

 private:
  ParameterMemory& memory_;
  int64_t index_ = 0;
};

// Three replicas.
class ReplicaTurnsTest : public ::testing::Test {
 protected:
  absl::StatusOr<GradientResult> Run(int64_t index) {
    if (auto status = turns_.Prepare({.step = index}, index); !status.ok()) {
      return status;
    }
    if (auto status = turns_.Begin(index, pass_); !status.ok()) return status;
    return turns_.Finish(pass_);
  }
  std::vector<float> Gradients() { return TwoGradients(memory_); }

  std::vector<VariableSpec> variables_ = {{.name = "a"}, {.name = "b"}};
  ParameterMemory memory_ =
      *ParameterMemory::Make(variables_, ParameterMemory::Gradients::kPrivate);
  Source source_{memory_};
  RecordingPass pass_;
  ClippingConfig clipping_;
  GradientClipper clipper_{clipping_, DType::kFloat32, [this] {
                             return GradientClipper::Gradients{
                                 memory_.gradient(0), memory_.gradient(1)};
                           }};
  ReplicaTurns turns_{source_, variables_, 3, clipper_, memory_};
};

TEST_F(ReplicaTurnsTest, ReplicasComputeInTurnAndTheMeanIsReportedOnce) {
  const auto result = Run(5);

  ASSERT_THAT(result, IsOk());
  EXPECT_THAT(source_.calls, ElementsAre("step 5 batch 15", "step 5 batch 16",
                                         "step 5 batch 17"));
  EXPECT_THAT(pass_.reports, ElementsAre("ready 1", "ready 0"));
  // Only one replica has a gradient of the second: the others count as zeros.
  EXPECT_THAT(Gradients(), ElementsAre(16, 4));
  EXPECT_EQ(result->loss, 16);
  EXPECT_EQ(result->examples, 12);
  EXPECT_EQ(result->non_finite, 3);
}

TEST_F(ReplicaTurnsTest, VariableIsAbsentIfNoReplicaHasAGradient) {
  source_.none_has_second = true;

  ASSERT_THAT(Run(5), IsOk());

  EXPECT_THAT(pass_.reports, ElementsAre("absent 1", "ready 0"));
  EXPECT_THAT(Gradients(), ElementsAre(16, 0));
}

TEST_F(ReplicaTurnsTest, UnwantedPassEndsBetweenTurns) {
  ASSERT_THAT(turns_.Prepare({}, 1), IsOk());
  ASSERT_THAT(turns_.Begin(1, pass_), IsOk());
  pass_.wanted = false;

  EXPECT_THAT(turns_.Finish(pass_),
              StatusIs(absl::StatusCode::kAborted, HasSubstr("dropped")));

  EXPECT_THAT(source_.calls, ElementsAre("step 0 batch 3"));
  EXPECT_THAT(pass_.reports, IsEmpty());
}

TEST_F(ReplicaTurnsTest, PassAfterADroppedOneHasItsOwnGradientsOnly) {
  ASSERT_THAT(turns_.Prepare({}, 1), IsOk());
  ASSERT_THAT(turns_.Begin(1, pass_), IsOk());
  pass_.wanted = false;
  ASSERT_FALSE(turns_.Finish(pass_).ok());
  pass_.wanted = true;

  ASSERT_THAT(Run(2), IsOk());

  EXPECT_THAT(Gradients(), ElementsAre(7, 4));
}

TEST_F(ReplicaTurnsTest, EndOfInputOfAnyReplicaEndsTheWorkersInput) {
  source_.input_ends = 8;

  EXPECT_THAT(Run(2), StatusIs(absl::StatusCode::kOutOfRange,
                               HasSubstr("end of input")));
}

// To a norm of 4: the mean of 3, 4 and 4. Their mean, 4, needs no clipping.
TEST(ReplicaTurnsClippingTest, EachReplicasGradientsAreClippedByThemselves) {
  const std::vector<VariableSpec> variables = {{.name = "a"}, {.name = "b"}};
  ParameterMemory memory =
      *ParameterMemory::Make(variables, ParameterMemory::Gradients::kPrivate);
  Source source(memory);
  source.none_has_second = true;
  ClippingConfig clipping;
  clipping.kind = ClippingConfig::Kind::kGlobalNorm;
  clipping.limit = 4;
  GradientClipper clipper(clipping, DType::kFloat32, [&] {
    return GradientClipper::Gradients{memory.gradient(0), memory.gradient(1)};
  });
  ReplicaTurns turns(source, variables, 3, clipper, memory);
  RecordingPass pass;

  ASSERT_THAT(turns.Prepare({}, 1), IsOk());
  ASSERT_THAT(turns.Begin(1, pass), IsOk());
  ASSERT_THAT(turns.Finish(pass), IsOk());

  float mean = 0;
  std::memcpy(&mean, memory.gradient(0).data(), sizeof(mean));
  EXPECT_FLOAT_EQ(mean, (3.F + 4.F + 4.F) / 3);
  EXPECT_THAT(pass.reports, ElementsAre("absent 1", "ready 0"));
}

}  // namespace
}  // namespace lockstep::worker
