#include "deploy/cli/spans/explanation_text.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "deploy/cli/spans/explanation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/testing/status_matchers.h"
#include "tests/unit/deploy/cli/spans/made_job.h"

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Explanation Explained(const JobTrace& trace, int64_t steps = 50) {
  absl::StatusOr<Explanation> explanation = Explain(trace, steps);
  EXPECT_OK(explanation);
  return explanation.ok() ? *explanation : Explanation();
}

// 19 steps of 2290 us, and a slowest one.
JobTrace SomeTrace() {
  MadeJob job(3);
  job.workers[1].backward = 2000;
  job.Run(11);
  job.workers[1].backward = 9000;
  job.Run();
  job.workers[1].backward = 2000;
  job.Run(9);
  return job.Trace();
}

TEST(ExplanationTextTest, HasTenLinesAtMost) {
  const std::string text = ExplanationText(Explained(SomeTrace()));
  const std::vector<std::string> lines =
      absl::StrSplit(text, '\n', absl::SkipEmpty());
  EXPECT_LE(lines.size(), 10u);
  EXPECT_THAT(lines[0],
              "steps 102 to 121, 3 workers, 1 server, clocks within 0.001 ms");
  EXPECT_THAT(lines[1], AllOf(HasSubstr("median step"), HasSubstr("2.2 ms"),
                              HasSubstr("worker 1"), HasSubstr("compute")));
  EXPECT_THAT(lines[2],
              AllOf(HasSubstr("slowest step 112"), HasSubstr("9.2 ms")));
  EXPECT_THAT(text, HasSubstr("last in 20 of 20 steps"));
  EXPECT_THAT(text, HasSubstr("would help most"));
  EXPECT_THAT(text, HasSubstr("another backup worker, or a faster machine for "
                              "worker 1"));
}

TEST(ExplanationTextTest, NamesTasksWithoutSpans) {
  JobTrace trace = SomeTrace();
  trace.silent = {"worker 7"};
  EXPECT_THAT(ExplanationText(Explained(trace)),
              HasSubstr("no spans from worker 7"));
}

TEST(ExplanationTextTest, WorkersThatHandNoSpansInAreThere) {
  MadeJob job(2);
  for (auto& worker : job.workers) worker.recorded = false;
  job.workers[1].backward = 2000;
  job.Run(20);
  JobTrace trace = job.Trace();
  trace.silent = {"worker 0", "worker 1"};
  const std::string text = ExplanationText(Explained(trace));
  EXPECT_THAT(text, HasSubstr("worker 1 no spans 2.1 ms"));
  EXPECT_THAT(text,
              HasSubstr("worker not there 0 %, of workers without spans"));
  EXPECT_THAT(text, HasSubstr("a faster machine for worker 1"));
}

TEST(ExplanationJsonTest, SaysTheSameForPrograms) {
  const auto json =
      nlohmann::json::parse(ExplanationJson(Explained(SomeTrace())));
  EXPECT_EQ(json.at("first_step"), 102);
  EXPECT_EQ(json.at("last_step"), 121);
  EXPECT_NEAR(json.at("slowest").at("seconds").get<double>(), 9.19e-3, 1e-9);
  EXPECT_EQ(json.at("advice")[0].at("remedy"), "backup");
  EXPECT_EQ(json.at("advice")[0].at("worker"), 1);
  double sum = 0;
  for (const auto& [part, share] : json.at("shares").items()) {
    sum += share.get<double>();
  }
  EXPECT_NEAR(sum, 1, 1e-9);
}

TEST(AdviceTextTest, EveryRemedyHasATextAndAName) {
  for (int i = 0; i <= static_cast<int>(Remedy::kMoreCompute); ++i) {
    const Advice advice{
        .remedy = static_cast<Remedy>(i), .worker = 1, .server = 0};
    EXPECT_NE(AdviceText(advice, Explanation()), "") << i;
    EXPECT_NE(RemedyName(advice.remedy), "") << i;
  }
}

TEST(AdviceTextTest, AWorkerThatStaysAloneIsNotAskedForMore) {
  const Advice advice{.remedy = Remedy::kMoreCompute};
  Explanation alone;
  alone.workers = 1;
  EXPECT_THAT(AdviceText(advice, alone), HasSubstr("on more workers"));
  alone.limits.no_backups = true;  // as under ONE_DEVICE and MIRRORED
  EXPECT_THAT(AdviceText(advice, alone), Not(HasSubstr("more workers")));
}

}  // namespace
}  // namespace lockstep::cli
