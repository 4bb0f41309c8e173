#include "deploy/lockstep/status_json.h"

#include <cmath>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace lockstep {
namespace {

nlohmann::json Parse(const JobStatus& status) {
  return nlohmann::json::parse(FormatStatusJson(status), nullptr, false);
}

TEST(StatusJsonTest, HasTheContractsNames) {
  const JobStatus status = {
      .job_name = "fashion",
      .state = JobState::kTraining,
      .step = 12,
      .training_time = absl::Milliseconds(1500),
      .evaluation =
          Evaluation{.step = 10, .loss = 0.5, .accuracy = 0.75, .auc = 0.875},
      .members = {{.task = "worker 0",
                   .state = "alive",
                   .since_heartbeat = absl::Milliseconds(250),
                   .counts = WorkerCounts{.accepted = 3}}},
      .waits = {{"step 13", "worker 0", absl::Seconds(2)}},
      .deaths = {{.task = "worker 1",
                  .redone = "step 12",
                  .since = absl::Seconds(4)}}};

  const nlohmann::json json = Parse(status);

  EXPECT_EQ(json["job_name"], "fashion");
  EXPECT_EQ(json["state"], "training");
  EXPECT_EQ(json["global_step"], 12);
  EXPECT_EQ(json["training_time"], 1.5);
  EXPECT_EQ(json["evaluation"]["accuracy"], 0.75);
  EXPECT_EQ(json["evaluation"]["auc"], 0.875);
  EXPECT_EQ(json["members"][0]["since_heartbeat"], 0.25);
  EXPECT_EQ(json["members"][0]["progress"]["accepted"], 3);
  EXPECT_EQ(json["waits"][0]["waits_for"], "worker 0");
  EXPECT_EQ(json["deaths"][0]["redone"], "step 12");
  EXPECT_FALSE(json["deaths"][0].contains("stood_still"));
}

TEST(StatusJsonTest, WhatTheChiefLeftOutIsLeftOut) {
  const nlohmann::json json =
      Parse({.members = {{.task = "ps 0", .state = "missing"}}});

  EXPECT_FALSE(json.contains("evaluation"));
  EXPECT_FALSE(json["members"][0].contains("since_heartbeat"));
  EXPECT_FALSE(json["members"][0].contains("progress"));
  EXPECT_TRUE(json["waits"].is_array());
}

TEST(StatusJsonTest, FiguresThatAreNoNumberAreNull) {
  EXPECT_TRUE(Parse({.loss = std::nan("")})["loss"].is_null());
}

TEST(StatusJsonTest, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(Parse({.job_name = "a\xff"})["job_name"], "a\xef\xbf\xbd");
}

}  // namespace
}  // namespace lockstep
