#include "tests/testing/process_search.h"

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/temp_dir.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Returns those that there are once there is one: for a moment, a program that
// has been started has no arguments.
std::vector<std::string> AwaitProcessesWith(const std::string& text) {
  const absl::Time deadline = absl::Now() + absl::Minutes(1);
  while (ProcessesWith(text).empty() && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  return ProcessesWith(text);
}

TEST(ProcessSearchTest, AProcessIsFoundByArgumentsAndEnvironmentWhileItLives) {
  const TempDir directory;
  ChildProcess::Options options;
  options.program = "/bin/sleep";
  options.args = {"1000"};
  options.environment["PLACE"] = directory.path();
  options.log_path = directory.Join("log");
  const auto by_environment = ChildProcess::Start(options);
  ASSERT_OK(by_environment);
  options.program = "/usr/bin/tail";
  options.args = {"-f", options.log_path};
  options.environment.clear();
  const auto by_argument = ChildProcess::Start(options);
  ASSERT_OK(by_argument);

  EXPECT_THAT(AwaitProcessesWith(options.log_path),
              ElementsAre("/usr/bin/tail -f " + options.log_path + " "));
  EXPECT_THAT(AwaitProcessesWith("PLACE=" + directory.path()),
              ElementsAre("/bin/sleep 1000 "));

  (*by_argument)->Kill();
  (*by_environment)->Kill();
  EXPECT_THAT(ProcessesWith(directory.path()), IsEmpty());
}

}  // namespace
}  // namespace lockstep::testing
