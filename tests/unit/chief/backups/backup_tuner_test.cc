#include "chief/backups/backup_tuner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr double kOverhead = 0.001;  // seconds of a step

// FakeSteps makes steps of workers whose passes begin together, and asks a
// tuner after each.
class FakeSteps {
 public:
  // Seconds of a worker's next pass.
  using Draw = std::function<double(int worker, std::mt19937& random)>;

  FakeSteps(int workers, Draw draw, absl::Duration patience = absl::Seconds(2))
      : draw_(std::move(draw)), tuner_(patience), replicas_(workers) {
    for (int i = 0; i < workers; ++i) workers_.push_back(i);
    passes_.resize(static_cast<size_t>(workers));
  }

  // Returns the mean seconds per gradient.
  double Run(int steps) {
    const absl::Time began = now_;
    int64_t gradients = 0;
    for (int i = 0; i < steps; ++i) {
      Step();
      gradients += replicas_;
      Ask();
    }
    return absl::ToDoubleSeconds(now_ - began) / static_cast<double>(gradients);
  }

  int replicas() const { return replicas_; }
  const std::vector<BackupTuner::Change>& changes() const { return changes_; }
  absl::Time now() const { return now_; }
  void set_draw(Draw draw) { draw_ = std::move(draw); }
  void SetDead(int worker, bool dead) {
    dead ? (void)dead_.insert(worker) : (void)dead_.erase(worker);
  }
  // The job goes back by so many steps.
  void GoBack(int64_t steps) { step_ -= steps; }
  void set_tuned(bool tuned) { tuned_ = tuned; }
  void set_replicas(int replicas) { replicas_ = replicas; }
  // The last worker leaves an elastic job in which all count.
  void Leave() {
    workers_.pop_back();
    replicas_ = static_cast<int>(workers_.size());
  }

 private:
  void Step() {
    std::vector<double> times(workers_.size(), 1e9);
    for (const int worker : workers_) {
      const double drawn = draw_(worker, random_);
      if (dead_.count(worker) == 0) times[static_cast<size_t>(worker)] = drawn;
    }
    std::vector<double> sorted = times;
    std::sort(sorted.begin(), sorted.end());
    const double last = sorted[static_cast<size_t>(replicas_ - 1)];
    for (const int worker : workers_) {
      const auto i = static_cast<size_t>(worker);
      const PassTime pass{absl::Seconds(std::min(times[i], last)),
                          times[i] > last};
      const bool alive = dead_.count(worker) == 0;
      if (alive) ++passes_[i];
      tuner_.Hear({worker, 1, alive, passes_[i], {&pass, 1}, {}});
    }
    now_ += absl::Seconds(last + kOverhead);
    ++step_;
  }
  void Ask() {
    if (!tuned_) return;
    const auto change = tuner_.AtBoundary(step_, replicas_, workers_, now_);
    if (!change.has_value()) return;
    replicas_ = change->replicas;
    changes_.push_back(*change);
  }

  Draw draw_;
  BackupTuner tuner_;
  int replicas_;
  bool tuned_ = true;
  std::vector<int> workers_;
  std::vector<int64_t> passes_;
  std::set<int> dead_;
  std::vector<BackupTuner::Change> changes_;
  std::mt19937 random_{7};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  int64_t step_ = 0;
};

FakeSteps::Draw Constant(double seconds) {
  return [=](int, std::mt19937&) { return seconds; };
}
// The last of `workers` workers is slower by a factor.
FakeSteps::Draw OneSlow(int workers, double factor, double sigma = 0) {
  return [=](int worker, std::mt19937& random) {
    std::lognormal_distribution<double> spread(0, std::max(sigma, 1e-9));
    return 0.05 * spread(random) * (worker == workers - 1 ? factor : 1);
  };
}
FakeSteps::Draw Lognormal(double sigma) { return OneSlow(-1, 1, sigma); }

// The least time per gradient of any fixed number.
double BestFixed(int workers, const FakeSteps::Draw& draw) {
  double best = 1e9;
  for (int replicas = workers; replicas >= 1; --replicas) {
    FakeSteps fixed(workers, draw);
    fixed.set_tuned(false);
    fixed.set_replicas(replicas);
    fixed.Run(100);
    best = std::min(best, fixed.Run(800));
  }
  return best;
}

// After 100 steps, the mean of the following ones is within 3 % of the best.
void ExpectNearBest(int workers, const FakeSteps::Draw& draw) {
  FakeSteps steps(workers, draw);
  steps.Run(100);
  const double tuned = steps.Run(800);
  const double best = BestFixed(workers, draw);
  EXPECT_LE(tuned, 1.03 * best)
      << steps.changes().size() << " changes, at the end " << steps.replicas()
      << " of " << workers;
}

TEST(BackupTunerTest, EqualWorkersAllCount) {
  FakeSteps steps(4, Constant(0.05));
  steps.Run(1000);
  EXPECT_EQ(steps.replicas(), 4);
  EXPECT_TRUE(steps.changes().empty());
}

TEST(BackupTunerTest, WorkerThatIsAlwaysSlowBecomesABackup) {
  FakeSteps steps(4, OneSlow(4, 4));
  steps.Run(60);
  EXPECT_EQ(steps.replicas(), 3);
  ASSERT_FALSE(steps.changes().empty());
  EXPECT_THAT(
      steps.changes()[0].why,
      AllOf(HasSubstr("worker 3"), HasSubstr("instead of"), HasSubstr("(-6")));
}

// Three gradients in 50 ms are as many as four in 67 ms.
TEST(BackupTunerTest, SomewhatSlowWorkerStays) {
  FakeSteps steps(4, OneSlow(4, 1.2));
  steps.Run(500);
  EXPECT_EQ(steps.replicas(), 4);
}

TEST(BackupTunerTest, NothingIsDecidedBeforeEachWorkerIsKnown) {
  FakeSteps steps(4, OneSlow(4, 4));
  steps.Run(static_cast<int>(TunedWorkers::kFewPasses) - 1);
  EXPECT_TRUE(steps.changes().empty());
}

TEST(BackupTunerTest, NoiseDoesNotMakeTheNumberFlap) {
  for (const double sigma : {0.3, 1.0}) {
    FakeSteps steps(8, Lognormal(sigma));
    steps.Run(200);
    const size_t before = steps.changes().size();
    steps.Run(800);
    // At most one change in 400 steps.
    EXPECT_LE(steps.changes().size() - before, 4u) << sigma;
  }
}

TEST(BackupTunerTest, WithinThreePercentOfTheBestFixedNumber) {
  ExpectNearBest(4, Constant(0.05));
  ExpectNearBest(4, OneSlow(4, 4));
  ExpectNearBest(5, OneSlow(5, 10));
  ExpectNearBest(8, OneSlow(8, 2, 0.2));
  for (const double sigma : {0.1, 0.5}) ExpectNearBest(4, Lognormal(sigma));
  for (const double sigma : {0.1, 0.5, 1.0}) {
    ExpectNearBest(12, Lognormal(sigma));
  }
}

TEST(BackupTunerTest, RareHangsAreWeighed) {
  const auto hangs = [](double chance) {
    return [chance](int worker, std::mt19937& random) {
      std::bernoulli_distribution hang(chance);
      return worker == 3 && hang(random) ? 1.0 : 0.05;
    };
  };
  ExpectNearBest(4, hangs(0.05));
  ExpectNearBest(4, hangs(0.0005));
}

TEST(BackupTunerTest, WorkerThatGetsSlowIsDroppedThen) {
  FakeSteps steps(4, Constant(0.05));
  steps.Run(300);
  EXPECT_EQ(steps.replicas(), 4);
  steps.set_draw(OneSlow(4, 4));
  steps.Run(60);
  EXPECT_EQ(steps.replicas(), 3);
}

TEST(BackupTunerTest, WorkerThatIsAsFastAsOthersAgainCounts) {
  FakeSteps steps(4, OneSlow(4, 4));
  steps.Run(200);
  EXPECT_EQ(steps.replicas(), 3);
  steps.set_draw(OneSlow(4, 1, 0.01));
  steps.Run(600);
  EXPECT_EQ(steps.replicas(), 4);
}

// It never ends its pass in time, so that only a trial can find it.
TEST(BackupTunerTest, TrialFindsAWorkerThatHasBecomeFaster) {
  FakeSteps steps(4, OneSlow(4, 4));
  steps.Run(200);
  EXPECT_EQ(steps.replicas(), 3);
  steps.set_draw(OneSlow(4, 1.1));
  steps.Run(3000);
  EXPECT_EQ(steps.replicas(), 4);
}

TEST(BackupTunerTest, TrialsCostAboutAHundredthOfTheTime) {
  FakeSteps steps(4, OneSlow(4, 4));
  steps.Run(200);
  const absl::Time began = steps.now();
  steps.Run(5000);
  const double seconds = absl::ToDoubleSeconds(steps.now() - began);
  // 51 ms a step without trials.
  EXPECT_LT(seconds, 5000 * 0.051 * 1.02);
  EXPECT_GT(steps.changes().size(), 2u);
}

TEST(BackupTunerTest, TrialOfAJobThatGoesBackEndsAllTheSame) {
  FakeSteps steps(4, OneSlow(4, 4));
  steps.Run(200);
  for (int i = 0; i < 5000 && steps.replicas() == 3; ++i) steps.Run(1);
  ASSERT_EQ(steps.replicas(), 4);
  ASSERT_THAT(steps.changes().back().why, HasSubstr("a trial"));

  steps.GoBack(150);
  steps.Run(20);

  EXPECT_EQ(steps.replicas(), 3);
}

// A change stops training for a moment.
TEST(BackupTunerTest, TrialThatAWorkerLeavesEndsWithoutAChange) {
  FakeSteps steps(4, OneSlow(4, 4));
  steps.Run(200);
  for (int i = 0; i < 5000 && steps.replicas() == 3; ++i) steps.Run(1);
  ASSERT_EQ(steps.replicas(), 4);
  ASSERT_THAT(steps.changes().back().why, HasSubstr("a trial"));
  const size_t changes = steps.changes().size();

  steps.Leave();
  steps.Run(20);

  EXPECT_EQ(steps.replicas(), 3);
  EXPECT_EQ(steps.changes().size(), changes);
}

TEST(BackupTunerTest, DeadWorkerIsNotWaitedForAndCountsAgainLater) {
  FakeSteps steps(4, Constant(0.05));
  steps.Run(100);
  steps.SetDead(3, true);
  steps.set_replicas(3);  // as WhileWaiting() has it
  steps.Run(100);
  EXPECT_EQ(steps.replicas(), 3);
  steps.SetDead(3, false);
  steps.Run(60);
  EXPECT_EQ(steps.replicas(), 4);
}

// Each loss costs a wait of two seconds where all count.
TEST(BackupTunerTest, FrequentLossesKeepABackup) {
  FakeSteps steps(4, Constant(0.05));
  steps.Run(100);
  for (int i = 0; i < 8; ++i) {  // every 5 seconds
    steps.SetDead(3, true);
    steps.set_replicas(3);
    steps.Run(20);
    steps.SetDead(3, false);
    steps.Run(80);
  }
  EXPECT_EQ(steps.replicas(), 3);
}

TEST(BackupTunerTest, RareLossesDoNot) {
  FakeSteps steps(4, Constant(0.05));
  for (int i = 0; i < 3; ++i) {  // every 50 seconds
    steps.Run(900);
    EXPECT_EQ(steps.replicas(), 4);
    steps.SetDead(3, true);
    steps.set_replicas(3);
    steps.Run(20);
    steps.SetDead(3, false);
    steps.Run(80);
  }
  EXPECT_EQ(steps.replicas(), 4);
}

// A trial of one more says nothing of a second slow worker, whose dropped
// passes look as if they had been about to end.
TEST(BackupTunerTest, TrialDoesNotRaiseTheNumberBeyondWhatItTried) {
  const auto slow = [](double eleventh) {
    return [eleventh](int worker, std::mt19937&) {
      return 0.05 * (worker == 11 ? 8 : worker == 10 ? eleventh : 1);
    };
  };
  FakeSteps steps(12, slow(3));
  steps.Run(200);
  ASSERT_EQ(steps.replicas(), 10);
  steps.set_draw(slow(1.02));
  for (int i = 0; i < 5000 && steps.replicas() == 10; ++i) steps.Run(1);
  ASSERT_EQ(steps.replicas(), 11);
  ASSERT_THAT(steps.changes().back().why, HasSubstr("a trial"));
  const size_t changes = steps.changes().size();

  steps.Run(100);

  EXPECT_EQ(steps.replicas(), 11);
  EXPECT_EQ(steps.changes().size(), changes);
}

// Else nothing would be decided before the job is where it was.
TEST(BackupTunerTest, SteppingBackBeginsTheMeasureAnew) {
  FakeSteps steps(4, Constant(0.05));
  steps.Run(100);
  ASSERT_EQ(steps.replicas(), 4);
  steps.GoBack(90);
  steps.set_draw(OneSlow(4, 4));
  steps.Run(60);
  EXPECT_EQ(steps.replicas(), 3);
}

class WhileWaitingTest : public ::testing::Test {
 protected:
  std::optional<BackupTuner::Change> After(absl::Duration time, int arrived,
                                           int64_t step = 7) {
    now_ += time;
    return tuner_.WhileWaiting(step, 4, arrived, now_);
  }
  BackupTuner tuner_{absl::Seconds(2)};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(WhileWaitingTest, StepGoesOnWithoutThoseThatSendNothing) {
  EXPECT_FALSE(After({}, 3).has_value());
  EXPECT_FALSE(After(absl::Milliseconds(1900), 3).has_value());
  const auto change = After(absl::Milliseconds(200), 3);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->replicas, 3);
  EXPECT_THAT(change->why, HasSubstr("other 1"));
}

TEST_F(WhileWaitingTest, EachArrivalRenewsThePatience) {
  After({}, 2);
  After(absl::Milliseconds(1900), 3);
  EXPECT_FALSE(After(absl::Milliseconds(1900), 3).has_value());
  EXPECT_TRUE(After(absl::Milliseconds(200), 3).has_value());
}

TEST_F(WhileWaitingTest, EachStepRenewsThePatience) {
  After({}, 3, 7);
  EXPECT_FALSE(After(absl::Seconds(3), 3, 8).has_value());
}

// A server was away; the step begins anew with as many gradients at once.
TEST_F(WhileWaitingTest, AStandstillIsNoWaitForGradients) {
  After({}, 3);
  tuner_.StoodStill();
  EXPECT_FALSE(After(absl::Seconds(30), 3).has_value());
  EXPECT_FALSE(After(absl::Milliseconds(1900), 3).has_value());
  EXPECT_TRUE(After(absl::Milliseconds(200), 3).has_value());
}

TEST_F(WhileWaitingTest, WithoutAnyGradientTheStepWaits) {
  After({}, 0);
  EXPECT_FALSE(After(absl::Minutes(3), 0).has_value());
}

TEST_F(WhileWaitingTest, FullSetIsNoMatterOfTheTuner) {
  After({}, 4);
  EXPECT_FALSE(After(absl::Minutes(3), 4).has_value());
}

}  // namespace
}  // namespace lockstep::chief
