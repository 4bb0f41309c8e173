#include "chief/page/story.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using Kind = StoryEvent::Kind;
using ::testing::ElementsAre;

absl::Time At(double seconds) {
  return absl::UnixEpoch() + absl::Seconds(seconds);
}

SummarySample SampleAt(double seconds, int64_t step) {
  SummarySample sample;
  sample.now = At(seconds);
  sample.job.state = JobState::kTraining;
  sample.job.global_step = step;
  sample.job.settings.replicas_to_aggregate = 2;
  return sample;
}

// The texts after the first event, which is that training goes on.
std::vector<std::string> Texts(const Story& story) {
  std::vector<std::string> texts;
  for (const StoryEvent& event : story.Events()) texts.push_back(event.text);
  texts.erase(texts.begin());
  return texts;
}

TEST(StoryTest, ADeathIsToldOnceWithItsTimeAndThenTheReturn) {
  Story story;
  SummarySample sample = SampleAt(10, 5);
  story.Add(sample);
  sample.job.deaths = {{.task = "worker 1",
                        .reason = "silent",
                        .held = "a token",
                        .redone = "step 6",
                        .at = At(12)}};
  sample.members = {{.task = {TaskType::kWorker, 1},
                     .state = MembershipTable::State::kDead,
                     .since = At(12)}};
  story.Add(sample);
  story.Add(sample);
  sample.members[0].state = MembershipTable::State::kAlive;
  sample.members[0].since = At(15);
  story.Add(sample);
  story.Add(sample);
  EXPECT_THAT(Texts(story),
              ElementsAre("worker 1 died (silent); it held a token; redone: "
                          "step 6",
                          "worker 1 is back, 3.0 s after its death was found"));
  EXPECT_EQ(story.Events()[1].unix_seconds, 12);
  EXPECT_EQ(story.Events()[1].kind, Kind::kDeath);
}

// The processes of a machine that was lost.
TEST(StoryTest, DeathsOfOneMomentAreAllTold) {
  Story story;
  SummarySample sample = SampleAt(10, 5);
  story.Add(sample);
  for (const char* task : {"ps 0", "ps 1"}) {
    sample.job.deaths.push_back(
        {.task = task, .reason = "silent", .held = "a share", .at = At(12)});
  }
  story.Add(sample);
  story.Add(sample);
  for (const int index : {0, 1}) {
    sample.members.push_back({.task = {TaskType::kPs, index},
                              .state = MembershipTable::State::kAlive,
                              .since = At(15)});
  }
  story.Add(sample);
  EXPECT_THAT(Texts(story),
              ElementsAre("ps 0 died (silent); it held a share",
                          "ps 1 died (silent); it held a share",
                          "ps 0 is back, 3.0 s after its death was found",
                          "ps 1 is back, 3.0 s after its death was found"));
}

TEST(StoryTest, ATaskThatDiesAgainAtOnceIsToldTwice) {
  Story story;
  SummarySample sample = SampleAt(10, 5);
  story.Add(sample);
  for (const int second : {12, 14}) {
    sample.job.deaths.push_back({.task = "worker 1",
                                 .reason = "replaced",
                                 .held = "nothing",
                                 .at = At(second)});
    story.Add(sample);
  }
  EXPECT_THAT(Texts(story),
              ElementsAre("worker 1 died (replaced); it held nothing",
                          "worker 1 died (replaced); it held nothing"));
}

TEST(StoryTest, SettingsAndPausesAreToldAsTheyChange) {
  Story story;
  SummarySample sample = SampleAt(10, 5);
  sample.learning_rate = 0.1;
  story.Add(sample);
  sample.job.settings.replicas_to_aggregate = 3;
  sample.job.settings.learning_rate_scale = 0.5;
  sample.learning_rate = 0.05;
  story.Add(sample);
  sample.job.settings.paused = true;
  story.Add(sample);
  sample.job.settings.paused = false;
  story.Add(sample);
  EXPECT_THAT(
      Texts(story),
      ElementsAre("an operator changes replicas_to_aggregate 2 to 3, the "
                  "learning rate times 0.5, now 0.05 at step 5",
                  "an operator pauses training at step 5",
                  "training goes on after a pause at step 5"));
}

// A chief that starts has the settings of the job file first, and then those of
// an earlier chief.
TEST(StoryTest, SettingsThatAChiefFindsAreNotTold) {
  Story story;
  SummarySample sample = SampleAt(10, 0);
  sample.job.state = JobState::kStarting;
  story.Add(sample);
  sample = SampleAt(11, 5);
  sample.job.settings.replicas_to_aggregate = 3;
  sample.job.settings.learning_rate_scale = 0.5;
  sample.job.settings.paused = true;
  story.Add(sample);
  story.Add(sample);
  EXPECT_THAT(Texts(story), ElementsAre("training begins at step 5"));
  sample.job.settings.paused = false;
  story.Add(sample);
  EXPECT_EQ(Texts(story).back(), "training goes on after a pause at step 5");
}

TEST(StoryTest, NoOperatorIsNamedForWorkersThatJoinByThemselves) {
  Story story;
  SummarySample sample = SampleAt(10, 5);
  sample.job.settings.replicas_to_aggregate = 3;
  sample.job.settings.workers = {0, 1, 2};
  story.Add(sample);
  sample.job.settings.replicas_to_aggregate = 4;
  sample.job.settings.workers = {0, 1, 2, 3};
  story.Add(sample);
  sample.job.settings.workers = {0, 1, 2};
  sample.job.settings.learning_rate_scale = 0.5;
  sample.learning_rate = 0.05;
  story.Add(sample);
  EXPECT_THAT(Texts(story),
              ElementsAre("the workers of the job change: 3 workers to 4, "
                          "replicas_to_aggregate 3 to 4 at step 5",
                          "the workers of the job change: 4 workers to 3 at "
                          "step 5",
                          "an operator changes the learning rate times 0.5, "
                          "now 0.05 at step 5"));
}

TEST(StoryTest, NoOperatorIsNamedForABackupThatTheJobTunes) {
  Story story;
  SummarySample sample = SampleAt(10, 5);
  sample.tunes_backups = true;
  story.Add(sample);
  sample.job.settings.replicas_to_aggregate = 3;
  sample.job.notices = {{11'000'000, "AUTO: after step 5, 1 backup"}};
  story.Add(sample);
  EXPECT_THAT(Texts(story), ElementsAre("AUTO: after step 5, 1 backup"));

  sample.job.settings.learning_rate_scale = 0.5;
  sample.learning_rate = 0.05;
  story.Add(sample);
  EXPECT_THAT(Texts(story).back(),
              "an operator changes the learning rate "
              "times 0.5, now 0.05 at step 5");
}

TEST(StoryTest, NoticesHaveTheirTimeAndOnlyTheNewestCheckpointStays) {
  Story story;
  SummarySample sample = SampleAt(10, 5);
  story.Add(sample);
  sample.job.notices = {{11'000'000, "the disk is full"}};
  story.Add(sample);
  for (const int step : {10, 20, 30}) {
    sample.job.last_checkpoint_step = step;
    sample.job.last_checkpoint_at = At(step);
    story.Add(sample);
  }
  EXPECT_THAT(Texts(story),
              ElementsAre("the disk is full", "checkpoint of step 30"));
  EXPECT_EQ(story.Events()[1].unix_seconds, 11);
}

TEST(StoryTest, AChiefThatIsStartedAgainTellsNoDeathTwice) {
  SummarySample sample = SampleAt(10, 5);
  sample.job.deaths = {
      {.task = "ps 0", .reason = "silent", .held = "its state", .at = At(8)}};
  Story first;
  first.Add(sample);
  Story second(first.Events());
  sample.job.deaths[0].at = At(8.5);  // by its age
  second.Add(sample);
  int deaths = 0;
  for (const StoryEvent& event : second.Events()) {
    if (event.kind == Kind::kDeath) ++deaths;
  }
  EXPECT_EQ(deaths, 1);
  // The deaths of another task, and of the same one later.
  sample.job.deaths.push_back(
      {.task = "ps 01", .reason = "silent", .held = "nothing", .at = At(9)});
  sample.job.deaths.push_back(
      {.task = "ps 0", .reason = "silent", .held = "nothing", .at = At(30)});
  second.Add(sample);
  const std::vector<StoryEvent> events = second.Events();
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events[events.size() - 2].text,
            "ps 01 died (silent); it held nothing");
  EXPECT_EQ(events.back().text, "ps 0 died (silent); it held nothing");
}

TEST(StoryTest, AChiefThatIsStartedAgainTellsItsCheckpointsOnly) {
  SummarySample sample = SampleAt(10, 5);
  sample.job.last_checkpoint_step = 4;
  sample.job.last_checkpoint_at = At(9);
  Story first;
  first.Add(sample);
  sample.job.state = JobState::kFinishing;
  first.Add(sample);
  Story second(first.Events());
  sample = SampleAt(20, 5);
  sample.job.last_checkpoint_step = 4;
  sample.job.last_checkpoint_at = At(8.9);  // when its writing began
  second.Add(sample);
  sample.job.state = JobState::kFinishing;
  sample.job.last_checkpoint_step = 5;
  sample.job.last_checkpoint_at = At(21);
  second.Add(sample);
  std::vector<std::string> checkpoints;
  for (const StoryEvent& event : second.Events()) {
    if (event.kind == Kind::kCheckpoint) checkpoints.push_back(event.text);
  }
  EXPECT_THAT(checkpoints,
              ElementsAre("checkpoint of step 4", "checkpoint of step 5"));
}

TEST(StoryTest, AWorkerThatDiesForeverTakesBoundedMemory) {
  Story story;
  for (int i = 0; i < 1000; ++i) {
    SummarySample sample = SampleAt(10 * i, i);
    sample.job.deaths = {{.task = "worker 1",
                          .reason = std::string(5000, 'x'),
                          .held = "nothing",
                          .at = At(10 * i)}};
    story.Add(sample);
  }
  EXPECT_EQ(story.Events().size(), Story::kMostEvents);
  EXPECT_LT(story.Events().back().text.size(), 1100u);
}

TEST(StoryTest, KindsHaveNames) {
  for (const Kind kind : {Kind::kState, Kind::kDeath, Kind::kReturn,
                          Kind::kNotice, Kind::kCheckpoint, Kind::kSettings}) {
    EXPECT_EQ(ParseStoryKind(StoryKindName(kind)), kind);
  }
  EXPECT_EQ(ParseStoryKind("miracle"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::chief
