#include "chief/job/job_settings.h"

#include "chief/operators/settings_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep::chief {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Optional;

class JobSettingsTest : public ::testing::Test {
 protected:
  JobSettingsTest() {
    job_.replicas_to_aggregate = 2;
    job_.total_num_replicas = 3;
  }
  static ServerReport Of(const RunSettings& settings) {
    ServerReport report;
    report.settings = settings;
    return report;
  }

  JobConfig job_;
};

TEST_F(JobSettingsTest, FileCountsAtFirst) {
  const JobSettings settings(job_);
  EXPECT_EQ(settings.now().replicas_to_aggregate, 2);
  EXPECT_EQ(settings.num_workers(), 3);
  EXPECT_FALSE(settings.ToChange());
}

TEST_F(JobSettingsTest, WantedSettingsCountOnceTheyAreApplied) {
  JobSettings settings(job_);
  RunSettings wanted = settings.now();
  wanted.revision = 1;
  wanted.replicas_to_aggregate = 3;
  settings.Want(wanted);
  EXPECT_TRUE(settings.ToChange());
  EXPECT_EQ(settings.Apply().replicas_to_aggregate, 2);
  EXPECT_EQ(settings.now(), wanted);
  EXPECT_FALSE(settings.ToChange());
}

TEST_F(JobSettingsTest, ServersWithoutAChangeLeaveTheFileInEffect) {
  JobSettings settings(job_);
  settings.Adopt({Of({}), Of({.revision = 5})});
  EXPECT_EQ(settings.now().revision, 0);
  settings.Adopt({Of({.revision = 3, .replicas_to_aggregate = 1}), Of({})});
  EXPECT_EQ(settings.now().replicas_to_aggregate, 1);
}

TEST_F(JobSettingsTest, RateThatServersKeepIsNamedBesideTheFiles) {
  job_.learning_rate.base = 0.2;
  JobSettings settings(job_);
  EXPECT_EQ(settings.Adopt({Of({.revision = 1, .paused = true})}),
            std::nullopt);
  EXPECT_THAT(
      settings.Adopt({Of({.revision = 2, .learning_rate_scale = 0.25})}),
      Optional(AllOf(HasSubstr("learning_rate is 0.05,"),
                     HasSubstr("0.25 times the 0.2 of the job's file"))));
}

TEST_F(JobSettingsTest, MirrorThatLostItsStateDoesNotTakeTheSettingsAlong) {
  const auto at = [](int64_t step, const RunSettings& of) {
    ServerReport report = Of(of);
    report.committed_step = step;
    return report;
  };
  const ServerReport lost = at(-1, {});
  const ServerReport older = at(4, {.revision = 1, .paused = true});
  const ServerReport newer = at(4, {.revision = 2, .paused = true});
  const ServerReport unheard = at(-1, {.revision = 3});
  JobSettings settings(job_);
  settings.Adopt({lost, older, newer, unheard});
  EXPECT_EQ(settings.now(), newer.settings);

  // With its state, ps 0 decides.
  JobSettings others(job_);
  others.Adopt({older, newer});
  EXPECT_EQ(others.now(), older.settings);
}

TEST_F(JobSettingsTest, SumsOfOtherSettingsDoNotCount) {
  JobSettings settings(job_);
  const RunSettings changed{.revision = 1, .replicas_to_aggregate = 1};
  EXPECT_FALSE(settings.SumsOtherwise({Of({}), Of({})}));
  EXPECT_TRUE(settings.SumsOtherwise({Of({}), Of(changed)}));
  ServerReport without = Of(changed);
  without.has_parts = false;
  EXPECT_FALSE(settings.SumsOtherwise({Of({}), without}));
}

TEST_F(JobSettingsTest, ManifestRestoresWhatTheJobCanHave) {
  JobSettings settings(job_);
  EXPECT_FALSE(settings.Restore({}).has_value());
  EXPECT_TRUE(settings
                  .Restore({{"learning_rate_scale", 0.25},
                            {"replicas_to_aggregate", 3},
                            {"paused", 1}})
                  .has_value());
  EXPECT_EQ(settings.now().replicas_to_aggregate, 3);
  EXPECT_EQ(settings.now().learning_rate_scale, 0.25);
  EXPECT_TRUE(settings.now().paused);
}

TEST_F(JobSettingsTest, ManifestHasWhatWasChanged) {
  JobSettings settings(job_);
  EXPECT_TRUE(settings.ForManifest().empty());
  RunSettings wanted = settings.now();
  wanted.revision = 1;
  wanted.paused = true;
  wanted.learning_rate_scale = 0.5;
  settings.Want(wanted);
  settings.Apply();
  JobSettings restored(job_);
  restored.Restore(settings.ForManifest());
  EXPECT_EQ(restored.now(), wanted);
}

TEST_F(JobSettingsTest, AJobFileThatWasChangedSinceTheCheckpointCounts) {
  job_.learning_rate.base = 0.01;
  JobSettings settings(job_);
  RunSettings wanted = settings.now();
  wanted.revision = 1;
  wanted.learning_rate_scale = 5;
  wanted.replicas_to_aggregate = 3;
  settings.Want(wanted);
  settings.Apply();
  const std::map<std::string, double> manifest = settings.ForManifest();

  job_.learning_rate.base = 0.2;
  JobSettings other_rate(job_);
  EXPECT_THAT(other_rate.Restore(manifest),
              Optional(AllOf(HasSubstr("replicas_to_aggregate 2 -> 3"),
                             HasSubstr("learning_rate is 0.2 "),
                             HasSubstr("the change to 0.05"))));
  EXPECT_EQ(other_rate.now().learning_rate_scale, 1);
  EXPECT_EQ(other_rate.now().replicas_to_aggregate, 3);

  job_.replicas_to_aggregate = 1;
  JobSettings other_both(job_);
  other_both.Restore(manifest);
  EXPECT_EQ(other_both.now(), InitialSettings(job_));
}

TEST_F(JobSettingsTest, ManifestOfMoreWorkersOrANegativeRateIsNotBelieved) {
  JobSettings settings(job_);
  settings.Restore({{"learning_rate_scale", -1}, {"replicas_to_aggregate", 4}});
  EXPECT_EQ(settings.now().replicas_to_aggregate, 2);
  EXPECT_EQ(settings.now().learning_rate_scale, 1);
}

TEST_F(JobSettingsTest, ManifestOfMoreGradientsThanAFileCanHaveIsNotBelieved) {
  job_.mode = SyncMode::kCompatible;
  JobSettings settings(job_);
  for (const double replicas : {1'000'001.0, 1e300}) {
    settings.Restore({{"replicas_to_aggregate", replicas}});
    EXPECT_EQ(settings.now().replicas_to_aggregate, 2) << replicas;
  }
  settings.Restore({{"replicas_to_aggregate", 1'000'000}});
  EXPECT_EQ(settings.now().replicas_to_aggregate, 1'000'000);
}

}  // namespace
}  // namespace lockstep::chief
