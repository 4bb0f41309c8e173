#include "common/status/status_json.h"

#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;

nlohmann::json Parse(const JobStatus& status) {
  return nlohmann::json::parse(FormatStatusJson(status), nullptr, false);
}

TEST(StatusJsonTest, UnitsAreInTheNames) {
  const JobStatus status = {
      .job_name = "fashion",
      .state = JobState::kTraining,
      .step = 12,
      .training_time = absl::Milliseconds(1500),
      .loss = 0.31234567890123,
      .evaluation =
          Evaluation{.step = 10, .loss = 0.5, .accuracy = 0.75, .auc = 0.875},
      .members = {{.task = "worker 0",
                   .state = MemberState::kAlive,
                   .since_heartbeat = absl::Milliseconds(250),
                   .counts =
                       WorkerCounts{.accepted = 3,
                                    .waiting = absl::Nanoseconds(2044984843),
                                    .activity_age = absl::Seconds(1)},
                   .load = LoadStatus{1000, 4000, 0.5}}},
      .waits = {{"step 13", "worker 0", absl::Seconds(2)}},
      .losses = {.recoveries = 1, .stood_still = absl::Seconds(3)},
      .deaths = {{.task = "worker 1",
                  .redone = "step 12",
                  .since = absl::Seconds(4)}},
      .last_checkpoint_age = absl::Milliseconds(2500),
      .epoch = 2};

  const nlohmann::json json = Parse(status);

  EXPECT_EQ(json["job_name"], "fashion");
  EXPECT_EQ(json["state"], "training");
  EXPECT_EQ(json["global_step"], 12);
  EXPECT_EQ(json["training_seconds"], 1.5);
  EXPECT_EQ(json["loss"], 0.312346);
  EXPECT_EQ(json["chief_epoch"], 2);
  EXPECT_EQ(json["evaluation"]["accuracy"], 0.75);
  EXPECT_EQ(json["evaluation"]["auc"], 0.875);
  const nlohmann::json& worker = json["members"][0];
  EXPECT_EQ(worker["since_heartbeat_seconds"], 0.25);
  EXPECT_EQ(worker["load"]["resident_bytes"], 1000);
  EXPECT_EQ(worker["load"]["memory_limit_bytes"], 4000);
  EXPECT_EQ(worker["load"]["processors"], 0.5);
  EXPECT_EQ(json["last_checkpoint_age_seconds"], 2.5);
  EXPECT_EQ(worker["progress"]["accepted"], 3);
  EXPECT_EQ(worker["progress"]["waiting_seconds"], 2.044985);
  EXPECT_EQ(worker["progress"]["activity_age_seconds"], 1);
  EXPECT_EQ(json["waits"][0]["waits_for"], "worker 0");
  EXPECT_EQ(json["waits"][0]["since_seconds"], 2);
  EXPECT_EQ(json["losses"]["stood_still_seconds"], 3);
  EXPECT_EQ(json["deaths"][0]["redone"], "step 12");
  EXPECT_EQ(json["deaths"][0]["since_seconds"], 4);
}

// Readers need not check if a field exists.
TEST(StatusJsonTest, AllFieldsAreAlwaysThere) {
  const nlohmann::json json =
      Parse({.members = {{.task = "ps 0", .state = MemberState::kMissing}},
             .deaths = {{.task = "worker 1"}}});

  for (const char* name : {"evaluation", "loss", "last_checkpoint_step",
                           "last_checkpoint_age_seconds", "result"}) {
    ASSERT_TRUE(json.contains(name)) << name;
    EXPECT_TRUE(json[name].is_null()) << name;
  }
  EXPECT_EQ(json["checkpoint_trouble"], "");
  EXPECT_TRUE(json["members"][0].at("since_heartbeat_seconds").is_null());
  EXPECT_TRUE(json["members"][0].at("progress").is_null());
  EXPECT_TRUE(json["members"][0].at("load").is_null());
  EXPECT_TRUE(json["deaths"][0].at("stood_still_seconds").is_null());
  EXPECT_TRUE(json["waits"].is_array());
}

TEST(StatusJsonTest, APauseIsAState) {
  EXPECT_EQ(Parse({.state = JobState::kTraining,
                   .settings = {.paused = true}})["state"],
            "paused");
}

TEST(ResultJsonTest, IsReadAsItWasWritten) {
  const RunResult result = {.state = JobState::kDone,
                            .exit_code = 1,
                            .summary = "done: step 7",
                            .ended_at = absl::FromUnixSeconds(1'700'000'000)};

  EXPECT_THAT(ParseResultJson(FormatStatusJson({}, 2, result), "file"),
              IsOkAndHolds(result));
}

TEST(ResultJsonTest, InvalidResultIsRefused) {
  for (const char* text :
       {"", "[]", "{", "{}", R"({"result": null})", R"({"result": {}})",
        R"({"result": {"state": 1, "summary": "", "exit_code": 0,
            "ended_at_unix_seconds": 0}})"}) {
    EXPECT_THAT(ParseResultJson(text, "L/result.json"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         ::testing::HasSubstr("L/result.json")))
        << text;
  }
}

TEST(StatusJsonTest, FiguresThatAreNoNumberAreNull) {
  EXPECT_TRUE(Parse({.step = 1, .loss = std::nan("")})["loss"].is_null());
}

TEST(StatusJsonTest, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(Parse({.job_name = "a\xff"})["job_name"], "a\xef\xbf\xbd");
}

TEST(StatusJsonTest, FiguresOfTheUsersProgramsHaveTheirNames) {
  const JobStatus status = {
      .evaluation = Evaluation{.step = 10, .figures = {{"bleu", 0.5}}},
      .members = {{.task = "worker 0",
                   .counts = WorkerCounts{.figures = {{"norm", 2}}}}}};

  const nlohmann::json json = Parse(status);

  EXPECT_EQ(json["evaluation"]["figures"]["bleu"], 0.5);
  EXPECT_FALSE(json["evaluation"].contains("accuracy"));
  EXPECT_EQ(json["members"][0]["progress"]["figures"]["norm"], 2);
}

}  // namespace
}  // namespace lockstep
