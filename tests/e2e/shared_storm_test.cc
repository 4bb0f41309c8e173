// Workers, servers and the chief of jobs with shared steps are killed, or hang
// for a while, at random instants. A job of one worker, of two and of five ends
// with the bytes of one that was not disturbed. LOCKSTEP_STORM_SEED
// sets the random seed; for the number of kills of each job see KillsOfAStorm.

#include <cstdint>
#include <iostream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/storm.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/process_search.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

struct Size {
  int workers = 0;
  int kills = 0;    // its share of all
  int pass_ms = 0;  // so that no size is done before its last kill
};
constexpr Size kSizes[] = {{1, 16, 1}, {2, 17, 2}, {5, 17, 4}};
static_assert(kSizes[0].kills + kSizes[1].kills + kSizes[2].kills == 50);

// The weather of one job; all make the same number of steps.
Weather WeatherOf(const Size& size) {
  Weather weather;
  weather.steps_between_kills = 20;
  weather.pause_ms = 60;
  weather.steps_per_kill = 55;
  weather.calm = 300;
  weather.kills = KillsOfAStorm(kSizes[2].kills);
  const int64_t steps = weather.steps();
  weather.kills = KillsOfAStorm(size.kills);
  weather.seed += size.workers;
  weather.train_steps = steps;
  return weather;
}

// A program of a user computes: its gradients follow from the number and hardly
// from the values, so that a step that is lost, made twice or summed otherwise
// shows in all values after it. Five workers are more than the numbers: one of
// them always repeats a number of another one.
TrainingJob::Options JobOf(int workers, int pass_ms) {
  TrainingJob::Options options;
  options.workers = workers;
  options.set = WeatherOf(kSizes[0]).Settings();
  options.set.insert(
      options.set.end(),
      {"work=SHARED", "micro_batches_per_step=4", "batch_size=48"});
  UseProgram(options);
  options.worker_program.args = {"--by_share",
                                 absl::StrCat("--pass_ms=", pass_ms)};
  return options;
}

class SharedStormTest : public ::testing::TestWithParam<Size> {
 protected:
  static void SetUpTestSuite() {
    undisturbed_ = TrainingJob::Make(JobOf(1, 0));
    Weather calm = WeatherOf(kSizes[0]);
    calm.kills = 0;
    ASSERT_NO_FATAL_FAILURE(Storm(*undisturbed_, calm).Pass());
  }
  static void TearDownTestSuite() { undisturbed_.reset(); }

  static inline std::unique_ptr<TrainingJob> undisturbed_;
};
INSTANTIATE_TEST_SUITE_P(All, SharedStormTest, ::testing::ValuesIn(kSizes),
                         [](const auto& info) {
                           return absl::StrCat("Workers", info.param.workers);
                         });

TEST_P(SharedStormTest, EndsWithTheBytesOfAnUndisturbedJob) {
  const Weather weather = WeatherOf(GetParam());
  auto job = TrainingJob::Make(JobOf(GetParam().workers, GetParam().pass_ms));
  Storm storm(*job, weather);

  ASSERT_NO_FATAL_FAILURE(storm.Pass());

  std::cout << "seed " << weather.seed << ": " << storm.kills("worker")
            << " kills of workers, " << storm.kills("ps") << " of servers, "
            << storm.kills("chief") << " of the chief; step " << storm.step()
            << " of " << weather.steps() << " by then" << std::endl;
  EXPECT_GE(storm.kills(), weather.kills);
  for (const char* task : {"worker", "ps", "chief"}) {
    EXPECT_GT(storm.kills(task), 0) << task;
  }
  ExpectSameBits(undisturbed_->checkpoints(), job->checkpoints(),
                 weather.steps());
  const auto address = job->cluster().Address("chief", 0);
  ASSERT_THAT(address, IsOk());
  EXPECT_THAT(ProcessesWith(*address), ::testing::IsEmpty());
}

}  // namespace
}  // namespace lockstep::testing
