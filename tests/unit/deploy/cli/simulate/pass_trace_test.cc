#include "deploy/cli/simulate/pass_trace.h"

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string ErrorOf(absl::string_view text) {
  const auto trace = ParsePassTrace(text, "times.json");
  EXPECT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(trace.status().message());
}

TEST(PassTraceTest, EachWorkerHasItsTimes) {
  const auto trace =
      ParsePassTrace(R"({"pass_seconds": [[0.05, 1], [2e-1]]})", "times.json");
  ASSERT_OK(trace);
  EXPECT_THAT(*trace, ElementsAre(ElementsAre(0.05, 1), ElementsAre(0.2)));
}

TEST(PassTraceTest, OtherFormsAreRefused) {
  for (const char* text :
       {"[]", "{}", "7", R"({"pass_seconds": 7})", R"({"pass_seconds": []})",
        R"({"pass_seconds": {}})"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("pass_seconds")) << text;
  }
  EXPECT_THAT(ErrorOf("{"), StartsWith("times.json"));
}

TEST(PassTraceTest, WorkerWithoutTimesIsNamed) {
  EXPECT_THAT(ErrorOf(R"({"pass_seconds": [[1], []]})"),
              HasSubstr("pass_seconds[1]"));
  EXPECT_THAT(ErrorOf(R"({"pass_seconds": [1]})"),
              HasSubstr("pass_seconds[0]"));
}

TEST(PassTraceTest, TimeThatIsNoneIsNamed) {
  for (const char* time : {"0", "-1", "1e7", "\"1\"", "null", "[1]"}) {
    EXPECT_THAT(ErrorOf(absl::string_view(
                    std::string(R"({"pass_seconds": [[1, )") + time + "]]}")),
                AllOf(HasSubstr("pass_seconds[0][1]"), HasSubstr("above 0")))
        << time;
  }
}

}  // namespace
}  // namespace lockstep::cli
