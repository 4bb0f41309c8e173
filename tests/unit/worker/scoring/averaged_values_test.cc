#include "worker/scoring/averaged_values.h"

#include <vector>

#include "common/job/variable_settings.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"
#include "tests/unit/worker/scoring/softmax_checkpoint.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

VariableSpec Named(const std::string& name) {
  VariableSpec variable;
  variable.name = name;
  variable.shape = {2};
  return variable;
}

TEST(AveragedValuesTest, AreThoseOfTheVariablesThatTheJobAverages) {
  const std::vector<VariableSpec> variables = {Named("a/weights"),
                                               Named("a/bias")};
  JobConfig job;
  EXPECT_THAT(NamesUsedAveraged(job, variables), IsOkAndHolds(IsEmpty()));

  job.moving_average.decay = 0.9;
  EXPECT_THAT(NamesUsedAveraged(job, variables),
              IsOkAndHolds(ElementsAre("a/weights", "a/bias")));

  job.moving_average.variables = {"*bias"};
  EXPECT_THAT(NamesUsedAveraged(job, variables),
              IsOkAndHolds(ElementsAre("a/bias")));

  job.moving_average.evaluate = false;
  EXPECT_THAT(NamesUsedAveraged(job, variables), IsOkAndHolds(IsEmpty()));
}

TEST(AveragedValuesTest, TakeThePlaceOfValuesInACheckpoint) {
  const testing::TempDir dir;
  testing::WriteSoftmaxCheckpoint(dir.path(), 7, /*pixels=*/2, /*classes=*/3);
  auto checkpoint = CheckpointReader::Open(dir.path(), 7);
  ASSERT_OK(checkpoint);
  std::vector<float> values(3);
  ASSERT_OK(checkpoint->Read("softmax/bias", absl::MakeSpan(values)));

  ReadAverages({"softmax/bias"}, *checkpoint);

  // This checkpoint has none.
  EXPECT_THAT(checkpoint->Read("softmax/bias", absl::MakeSpan(values)),
              StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace lockstep::worker
