// The metrics of all processes of a job: a sum over a name counts each thing
// once, and every line has the labels of its job and task.

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/scrape.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Returns the name in a line of metrics.
std::string NameOf(absl::string_view line) {
  return std::string(line.substr(0, line.find_first_of("{ ")));
}

// Returns the last answer to a probe, which is repeated while it tells of a
// server that does not answer in time: that of a busy machine.
std::string HealthOf(TrainingJob& job, const std::string& task, int index) {
  const absl::Time end = absl::Now() + kPatience;
  std::string answer = Get(job, task, index, "/healthz");
  while (absl::StrContains(answer, " 503 ") && absl::Now() < end) {
    answer = Get(job, task, index, "/healthz");
  }
  return answer;
}

// A probe has no certificate: the process asks its own server with its own.
TEST(HealthTest, ProbeIsToldWhetherTheServerOfTheTaskServes) {
  for (const bool tls : {false, true}) {
    TrainingJob::Options options;
    options.set = {"train_steps=1000000"};
    options.tls = tls;
    const auto job = TrainingJob::Make(options);
    for (const auto& [task, index] : job->Tasks()) {
      job->cluster().AddArgument(task, index, "--status_address=127.0.0.1:0");
    }
    ASSERT_OK(job->StartAll());
    ASSERT_OK(job->WaitForStep(3));
    for (const auto& [task, index] : job->Tasks()) {
      EXPECT_THAT(HealthOf(*job, task, index),
                  AllOf(HasSubstr("HTTP/1.1 200 OK"), HasSubstr("\r\n\r\nok")))
          << task << " " << index;
      EXPECT_EQ(
          absl::StrContains(Scrape(*job, task, index),
                            "lockstep_certificate_expiry_timestamp_seconds{"),
          tls);
    }
  }
}

class MetricsTest : public ::testing::TestWithParam<bool> {};

TEST_P(MetricsTest, EachFigureHasOneSourceAndNamesItsTask) {
  const auto job =
      TrainingJob::Make({.chief = GetParam(), .set = {"train_steps=1000000"}});
  ASSERT_NE(job, nullptr);
  for (const auto& [task, index] : job->Tasks()) {
    job->cluster().AddArgument(task, index, "--status_address=127.0.0.1:0");
  }
  ASSERT_OK(job->StartAll());
  ASSERT_OK(job->WaitForStep(3));

  std::map<std::string, std::set<std::string>> sources;  // tasks, by name
  std::map<std::string, int> lines;
  for (const auto& [task, index] : job->Tasks()) {
    const std::string labels =
        absl::StrCat("task=\"", task, "\",index=\"", index, "\"");
    for (const absl::string_view line :
         absl::StrSplit(Scrape(*job, task, index), '\n', absl::SkipEmpty())) {
      if (absl::StartsWith(line, "#")) continue;
      const std::string name = NameOf(line);
      EXPECT_THAT(std::string(line), HasSubstr("{job=\"")) << task;
      EXPECT_THAT(std::string(line),
                  AllOf(HasSubstr(",task=\""), HasSubstr(",index=\"")));
      // Only the chief reports on other tasks.
      if (!absl::StartsWith(name, "lockstep_member_")) {
        EXPECT_THAT(std::string(line), HasSubstr(labels));
      }
      sources[name].insert(task);
      ++lines[name];
    }
  }
  for (const auto& [name, tasks] : sources) {
    // Each process times the calls that it makes and serves, by method.
    if (absl::StartsWith(name, "lockstep_rpc_")) continue;
    const bool of_all = absl::StartsWith(name, "process_") ||
                        absl::StartsWith(name, "lockstep_process_") ||
                        name == "lockstep_build_info";
    EXPECT_EQ(tasks.size(), of_all ? (GetParam() ? 3u : 2u) : 1u) << name;
  }
  EXPECT_EQ(lines["lockstep_worker_passes_total"], 2);
  EXPECT_EQ(lines["lockstep_member_passes_total"], 2);
  EXPECT_EQ(lines["lockstep_build_info"], GetParam() ? 5 : 4);
}

INSTANTIATE_TEST_SUITE_P(ChiefTaskOrHosted, MetricsTest, ::testing::Bool());

}  // namespace
}  // namespace lockstep::testing
