#include "deploy/cli/spans/chrome_trace.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/unit/deploy/cli/spans/made_job.h"

namespace lockstep::cli {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::UnorderedElementsAre;

JobTrace SomeTrace() {
  MadeJob job(2, 2);
  job.workers[1].read = 30;
  job.Run(4);
  job.Died(1);
  return job.Trace();
}

std::vector<Json> EventsOf(const Json& json, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : json.at("traceEvents")) {
    if (event.at("ph") == phase) events.push_back(event);
  }
  return events;
}

TEST(ChromeTraceTest, EveryTaskIsAProcess) {
  const Json json = Json::parse(ChromeTraceJson(SomeTrace()));
  std::map<int, std::string> names;
  for (const Json& event : EventsOf(json, "M")) {
    if (event.at("name") != "process_name") continue;
    names[event.at("pid").get<int>()] =
        event.at("args").at("name").get<std::string>();
  }
  std::vector<std::string> tasks;
  for (const auto& [pid, name] : names) tasks.push_back(name);
  EXPECT_THAT(tasks, UnorderedElementsAre("chief 0 on host", "ps 0 on host",
                                          "ps 1 on host", "worker 0 on host",
                                          "worker 1 on host"));
}

TEST(ChromeTraceTest, EverySpanIsACompleteEvent) {
  const JobTrace trace = SomeTrace();
  const Json json = Json::parse(ChromeTraceJson(trace));
  size_t spans = 0;
  for (const TaskTrace& task : trace.tasks) spans += task.spans.size();
  const std::vector<Json> events = EventsOf(json, "X");
  EXPECT_EQ(events.size(), spans);
  double first = 1e18;
  for (const Json& event : events) {
    EXPECT_TRUE(event.at("name").is_string());
    EXPECT_TRUE(event.at("cat").is_string());
    EXPECT_TRUE(event.at("pid").is_number_integer());
    EXPECT_TRUE(event.at("tid").is_number_integer());
    EXPECT_GE(event.at("dur").get<double>(), 0);
    first = std::min(first, event.at("ts").get<double>());
  }
  EXPECT_EQ(first, 0);
}

// Perfetto draws spans of one row that overlap without containing one another
// in wrong places.
TEST(ChromeTraceTest, SpansOfARowDoNotOverlap) {
  JobTrace trace = SomeTrace();
  for (int i = 0; i < 5; ++i) {
    trace.tasks[1].spans.push_back({.kind = SpanKind::kUpdate,
                                    .part = i,
                                    .step = 100,
                                    .begin = 1'000'000'000 + i,
                                    .end = 1'000'010'000 + i});
  }
  const Json json = Json::parse(ChromeTraceJson(trace));
  std::map<std::pair<int, int>, double> free_at;
  std::set<std::pair<int, int>> named;
  std::set<std::pair<int, int>> rows_of_updates;
  for (const Json& event : EventsOf(json, "M")) {
    named.insert({event.at("pid").get<int>(), event.at("tid").get<int>()});
  }
  for (const Json& event : EventsOf(json, "X")) {
    const std::pair<int, int> row{event.at("pid").get<int>(),
                                  event.at("tid").get<int>()};
    EXPECT_THAT(named, Contains(row));
    const double begin = event.at("ts").get<double>();
    EXPECT_GE(begin, free_at[row] - 1e-6) << event;
    free_at[row] = begin + event.at("dur").get<double>();
    if (event.at("name") == "update" && event.at("dur") == 10) {
      rows_of_updates.insert(row);
    }
  }
  EXPECT_GE(rows_of_updates.size(), 5u);
}

TEST(ChromeTraceTest, ArgumentsSayStepPartAndPeer) {
  const Json json = Json::parse(ChromeTraceJson(SomeTrace()));
  bool found = false;
  for (const Json& event : EventsOf(json, "X")) {
    if (event.at("name") != "receive") continue;
    found = true;
    const Json& args = event.at("args");
    EXPECT_GE(args.at("step").get<int>(), 101);
    EXPECT_EQ(args.at("attempt"), 1);
    EXPECT_EQ(args.at("part"), 0);
    EXPECT_LE(args.at("worker").get<int>(), 1);
    EXPECT_EQ(args.at("shared_memory"), true);
    EXPECT_EQ(args.at("bfloat16"), false);
  }
  EXPECT_TRUE(found);
}

TEST(ChromeTraceTest, SaysHowWellClocksAgreeAndWhichTasksAreSilent) {
  JobTrace trace = SomeTrace();
  trace.silent = {"worker 9"};
  const Json other = Json::parse(ChromeTraceJson(trace)).at("otherData");
  EXPECT_EQ(other.at("clock_error_us"), 1.0);
  EXPECT_EQ(other.at("silent_tasks"), Json({"worker 9"}));
}

TEST(ChromeTraceTest, AHostNameThatIsNoTextDoesNotSpoilTheFile) {
  JobTrace trace = SomeTrace();
  trace.tasks[0].host = "\xff\xfe\"";
  EXPECT_FALSE(
      Json::parse(ChromeTraceJson(trace), nullptr, false).is_discarded());
}

TEST(ChromeTraceTest, AnEmptyTraceIsAFile) {
  EXPECT_EQ(Json::parse(ChromeTraceJson(JobTrace())).at("traceEvents").size(),
            0u);
}

}  // namespace
}  // namespace lockstep::cli
