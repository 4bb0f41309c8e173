#ifndef LOCKSTEP_TESTS_E2E_UNDISTURBED_FIXTURE_H_
#define LOCKSTEP_TESTS_E2E_UNDISTURBED_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {

// Holds the values of an undisturbed run, made once for all tests of a program,
// and compares them with runs in which processes died.
class UndisturbedFixture : public ::testing::Test {
 protected:
  // Enough steps to kill a task meanwhile, more than once.
  static constexpr int64_t kSteps = 400;

  static std::vector<std::string> Steps() {
    return {absl::StrCat("train_steps=", kSteps)};
  }

  static void SetUpTestSuite() {
    undisturbed_ = TrainingJob::Make({.set = Steps()});
    ASSERT_THAT(undisturbed_->Run(), IsOk());
  }
  static void TearDownTestSuite() { undisturbed_.reset(); }

  // Expects the job to end in order, with the same bits.
  static void ExpectSameEnd(TrainingJob& job) {
    ASSERT_THAT(job.cluster().WaitAllSucceed(kPatience), IsOk());
    ExpectSameBits(undisturbed_->checkpoints(), job.checkpoints(), kSteps);
    EXPECT_THAT(job.StateFiles(), ::testing::IsEmpty());
  }

 private:
  static inline std::unique_ptr<TrainingJob> undisturbed_;
};

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_E2E_UNDISTURBED_FIXTURE_H_
