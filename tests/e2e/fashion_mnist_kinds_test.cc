// The job of deploy/examples/jobs/fashion_mnist as it is shipped, under each
// kind of strategy, by the commands of deploy/README.md.

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/child_process.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

constexpr char kShippedJob[] = LOCKSTEP_JOBS "/fashion_mnist";

struct ShippedKind {
  const char* name;
  std::vector<std::string> args;  // of `lockstep run`

  friend void PrintTo(const ShippedKind& kind, std::ostream* out) {
    *out << kind.name;
  }
};

std::vector<std::string> WithoutBackup(std::vector<std::string> args) {
  args.insert(args.end(), {"--set", "replicas_to_aggregate=0", "--set",
                           "total_num_replicas=0"});
  return args;
}

class FashionMnistKindTest : public ::testing::TestWithParam<ShippedKind> {
 protected:
  // Runs `lockstep` to its end, which must be in good order; returns what it
  // has printed.
  std::string Lockstep(const std::vector<std::string>& args) {
    const auto process = ChildProcess::Start(
        {.program = ProgramPath("lockstep"),
         .args = args,
         .log_path = directory_.Join(absl::StrCat(args[0], ".out"))});
    EXPECT_THAT(process, IsOk());
    if (!process.ok()) return "";
    EXPECT_THAT((*process)->Wait(3 * kPatience), IsOkAndHolds(cli::TaskExit{}))
        << (*process)->LastWords();
    return (*process)->ReadLog();
  }

  const TempDir directory_;
};

INSTANTIATE_TEST_SUITE_P(
    All, FashionMnistKindTest,
    ::testing::Values(
        ShippedKind{"PARAMETER_SERVER",
                    {"--cluster", absl::StrCat(kShippedJob, "/cluster.json")}},
        ShippedKind{"ONE_DEVICE", WithoutBackup({})},
        ShippedKind{"MIRRORED",
                    WithoutBackup({"--set", "strategy.replicas_per_worker=2"})},
        ShippedKind{"MULTI_WORKER_MIRRORED",
                    WithoutBackup({"--workers", "2"})}),
    [](const auto& info) { return info.param.name; });

TEST_P(FashionMnistKindTest, ReachesTheAccuracyOfTheQuickstart) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: install "
                    "dataset-fashion-mnist";
  }
  const std::string job = absl::StrCat(kShippedJob, "/job.textproto");
  const std::string checkpoints = directory_.Join("checkpoints");
  std::vector<std::string> args = {
      "run",
      "--job",
      job,
      "--log_dir",
      directory_.Join("logs"),
      "--set",
      absl::StrCat("checkpoint.directory=", checkpoints),
      "--set",
      absl::StrCat("strategy.kind=", GetParam().name)};
  args.insert(args.end(), GetParam().args.begin(), GetParam().args.end());

  EXPECT_THAT(Lockstep(args), ::testing::HasSubstr("done: step 1500"));

  EXPECT_THAT(
      Lockstep({"evaluate", "--job", job, "--checkpoints", checkpoints}),
      ::testing::ContainsRegex("step 1500: accuracy (0\\.(8[89]|9)|1)"));
}

}  // namespace
}  // namespace lockstep::testing
