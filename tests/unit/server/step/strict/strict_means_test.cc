// The servers of a mirrored job: each sums some parts and takes the means of
// the others from the servers that sum them.

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/step/strict/strict_engine.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/server/step/fake_part_updater.h"

namespace lockstep::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Update = FakePartUpdater::Update_;

constexpr int kAttempt = 1;

StrictEngine::Options Options(bool limit_mean, std::vector<bool> copied) {
  StrictEngine::Options options;
  options.replicas_to_aggregate = 2;
  options.total_num_replicas = 2;
  options.limit_mean = limit_mean;
  options.has_all_parts = true;
  options.copied = std::move(copied);
  return options;
}

// Part 0 is summed by mirror a, part 1 by mirror b.
struct Mirrors {
  explicit Mirrors(bool limit_mean = false)
      : a(Options(limit_mean, {false, true}), of_a),
        b(Options(limit_mean, {true, false}), of_b) {}

  FakePartUpdater of_a{2};
  FakePartUpdater of_b{2};
  StrictEngine a;
  StrictEngine b;
};

ShardAnswers Add(StrictEngine& engine, int part, int worker, float value,
                 int64_t attempt = kAttempt) {
  absl::StatusOr<ShardAnswers> answers = engine.AddPush(
      worker, PushOf({worker, 1, 0, 1, 0}, attempt, part, 1, value));
  EXPECT_OK(answers);
  return answers.ok() ? *std::move(answers) : ShardAnswers();
}

// Both gradients of a part. The mean is 3.
ShardAnswers Collect(StrictEngine& engine, int part,
                     int64_t attempt = kAttempt) {
  Add(engine, part, 0, 2, attempt);
  return Add(engine, part, 1, 4, attempt);
}

ShardAnswers Exchange(StrictEngine& from, StrictEngine& to, int part,
                      int64_t attempt = kAttempt) {
  auto means = from.Means(0, attempt, part, 1);
  EXPECT_OK(means);
  EXPECT_TRUE(means.ok() && means->has_value());
  absl::StatusOr<ShardAnswers> answers =
      to.AddMeans(0, attempt, part, **std::move(means));
  EXPECT_OK(answers);
  return answers.ok() ? *std::move(answers) : ShardAnswers();
}

TEST(StrictMeansTest, StepIsPreparedWhenAllMeansAreThere) {
  Mirrors mirrors;
  EXPECT_FALSE(Collect(mirrors.a, 0).prepared.has_value());
  Collect(mirrors.b, 1);

  EXPECT_TRUE(Exchange(mirrors.b, mirrors.a, 1).prepared.has_value());
  EXPECT_TRUE(Exchange(mirrors.a, mirrors.b, 0).prepared.has_value());

  EXPECT_THAT(mirrors.of_a.updates(),
              UnorderedElementsAre(Update{0, 0, {3, 0}}, Update{1, 0, {3, 0}}));
  EXPECT_THAT(mirrors.of_b.updates(),
              UnorderedElementsAre(Update{0, 0, {3, 0}}, Update{1, 0, {3, 0}}));
}

TEST(StrictMeansTest, MeansAreLentWhenAllGradientsAreInAndNotBefore) {
  Mirrors mirrors;
  Add(mirrors.a, 0, 0, 2);
  const auto early = mirrors.a.Means(0, kAttempt, 0, 1);
  ASSERT_OK(early);
  EXPECT_FALSE(early->has_value());

  EXPECT_TRUE(Add(mirrors.a, 0, 1, 4).means_changed);

  const auto means = mirrors.a.Means(0, kAttempt, 0, 1);
  ASSERT_OK(means);
  ASSERT_TRUE(means->has_value());
  EXPECT_EQ(ValueOf((**means)[0]), 3);
}

TEST(StrictMeansTest, MeansOfAnAttemptThatHasNotBegunHereAreWaitedFor) {
  Mirrors mirrors;
  Collect(mirrors.a, 0);

  for (const auto& [step, attempt] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {1, 1}}) {
    const auto means = mirrors.a.Means(step, attempt, 0, 1);
    ASSERT_OK(means);
    EXPECT_FALSE(means->has_value());
  }
}

TEST(StrictMeansTest, MeansOfAnOlderAttemptAreOver) {
  Mirrors mirrors;
  Collect(mirrors.a, 0);
  const auto old = mirrors.a.Means(0, kAttempt, 0, 1);
  ASSERT_OK(old);

  EXPECT_TRUE(mirrors.a.StartAttempt(0, 2).means_changed);
  EXPECT_TRUE(absl::IsAborted(mirrors.a.Means(0, kAttempt, 0, 1).status()));

  // A late answer changes nothing, and the newer attempt needs its own means.
  mirrors.b.StartAttempt(0, 2);
  ASSERT_OK(mirrors.b.AddMeans(0, kAttempt, 0, **old));
  EXPECT_THAT(mirrors.b.means_wanted().parts, ElementsAre(0));
  EXPECT_EQ(mirrors.b.means_wanted().attempt, 2);
  EXPECT_THAT(mirrors.of_b.updates(), IsEmpty());
}

// Its memory is that of a mirror which has begun a newer attempt.
TEST(StrictMeansTest, MeanThatChangedWhileItWasAppliedWaitsForTheNextAttempt) {
  Mirrors mirrors;
  Collect(mirrors.a, 0);
  Collect(mirrors.b, 1);
  mirrors.of_b.on_apply_mean = absl::AbortedError("written meanwhile");
  ASSERT_OK(mirrors.b.Take(/*ticket=*/7, 0));

  const ShardAnswers torn = Exchange(mirrors.a, mirrors.b, 0);
  EXPECT_FALSE(torn.prepared.has_value());
  // An error would end the job.
  EXPECT_THAT(torn.takes, IsEmpty());
  EXPECT_THAT(mirrors.b.CheckCommit(1, kAttempt).message(),
              HasSubstr("commit of step 1"));

  mirrors.of_b.on_apply_mean = absl::OkStatus();
  for (StrictEngine* engine : {&mirrors.a, &mirrors.b}) {
    engine->StartAttempt(0, 2);
  }
  Collect(mirrors.a, 0, 2);
  Collect(mirrors.b, 1, 2);
  EXPECT_TRUE(Exchange(mirrors.a, mirrors.b, 0, 2).prepared.has_value());
  EXPECT_OK(mirrors.b.CheckCommit(1, 2));
}

TEST(StrictMeansTest, MeanIsWantedAgainWhenItsOldUpdateEnds) {
  Mirrors mirrors;
  Collect(mirrors.a, 0);
  mirrors.of_b.while_mean_is_applied = [&] {
    mirrors.b.StartAttempt(0, 2);
    EXPECT_THAT(mirrors.b.means_wanted().parts, IsEmpty());
  };

  EXPECT_TRUE(Exchange(mirrors.a, mirrors.b, 0).means_changed);

  EXPECT_THAT(mirrors.b.means_wanted().parts, ElementsAre(0));
}

TEST(StrictMeansTest, MeanIsWantedAgainWhenReadersHeldItsOldUpdateUp) {
  Mirrors mirrors;
  Collect(mirrors.a, 0);
  {
    const LentBytes reader = mirrors.of_b.LendNext(0);
    EXPECT_FALSE(Exchange(mirrors.a, mirrors.b, 0).means_changed);
  }
  mirrors.b.StartAttempt(0, 2);
  EXPECT_THAT(mirrors.b.means_wanted().parts, IsEmpty());

  EXPECT_TRUE(mirrors.b.PartReturned(0).means_changed);

  EXPECT_THAT(mirrors.b.means_wanted().parts, ElementsAre(0));
}

TEST(StrictMeansTest, RepeatedMeansCountOnce) {
  Mirrors mirrors;
  Collect(mirrors.a, 0);
  Exchange(mirrors.a, mirrors.b, 0);
  Exchange(mirrors.a, mirrors.b, 0);

  EXPECT_THAT(mirrors.of_b.updates(), SizeIs(1));
  EXPECT_THAT(mirrors.b.means_wanted().parts, IsEmpty());
}

TEST(StrictMeansTest, GradientsAndMeansOfOthersPartsAreRefused) {
  Mirrors mirrors;
  EXPECT_TRUE(absl::IsFailedPrecondition(
      mirrors.a.AddPush(1, PushOf({0, 1, 0, 1, 0}, kAttempt, 1, 1, 2))
          .status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      mirrors.a.AddMeans(0, kAttempt, 0, {GradientOf(3)}).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(mirrors.a.Means(0, kAttempt, 1, 1).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(mirrors.a.Means(0, kAttempt, -1, 1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      mirrors.a.Means(0, kAttempt, 0, 1 << 30).status()));
}

TEST(StrictMeansTest, ServersThatAreNoMirrorsRefuseTheExchange) {
  FakePartUpdater updater(2);
  StrictEngine::Options options = Options(false, {});
  StrictEngine engine(options, updater);

  EXPECT_TRUE(
      absl::IsFailedPrecondition(engine.Means(0, kAttempt, 0, 1).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      engine.AddMeans(0, kAttempt, 0, {GradientOf(3)}).status()));
  EXPECT_THAT(engine.means_wanted().parts, IsEmpty());
}

TEST(StrictMeansTest, PartsOfOthersAreNoGradientsThatLack) {
  Mirrors mirrors;
  EXPECT_EQ(mirrors.a.arrivals().open_parts, 1);
  Collect(mirrors.a, 0);

  EXPECT_EQ(mirrors.a.arrivals().open_parts, 0);
  EXPECT_THAT(mirrors.a.WaitsFor(), HasSubstr("means of 1 part"));
}

TEST(StrictMeansTest, EachMirrorLimitsTheNormOfAllMeansItself) {
  Mirrors mirrors(/*limit_mean=*/true);
  Collect(mirrors.a, 0);
  EXPECT_THAT(mirrors.of_a.updates(), IsEmpty());
  Collect(mirrors.b, 1);

  EXPECT_TRUE(Exchange(mirrors.b, mirrors.a, 1).prepared.has_value());

  const float norm = std::sqrt(18.0F);
  EXPECT_THAT(
      mirrors.of_a.updates(),
      UnorderedElementsAre(Update{0, 0, {3, norm}}, Update{1, 0, {3, norm}}));
}

TEST(StrictMeansTest, CommitTellsThatOtherMeansAreWanted) {
  FakePartUpdater updater(2);
  StrictEngine::Options options = Options(false, {false, true});
  int commits = 0;
  options.on_commit = [&commits] { ++commits; };
  StrictEngine engine(options, updater);
  Collect(engine, 0);
  ASSERT_OK(engine.AddMeans(0, kAttempt, 1, {GradientOf(3)}));
  EXPECT_EQ(commits, 0);

  ASSERT_OK(engine.Commit(1, kAttempt));

  EXPECT_EQ(commits, 1);
  EXPECT_EQ(engine.means_wanted().step, 1);
  EXPECT_THAT(engine.means_wanted().parts, ElementsAre(1));
}

}  // namespace
}  // namespace lockstep::server
