// A peer that sends or holds without limit costs a process no more than its
// share: the job goes on, and memory and descriptors are bounded.

#include <sys/resource.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/http2_peer.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::testing {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

int PortOf(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(
      std::vector<std::string>(absl::StrSplit(address, ':')).back(), &port));
  return port;
}

// Returns the resident memory of a process without its files.
size_t ResidentBytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::string word;
  size_t kibibytes = 0;
  while (file >> word) {
    if (word == "RssAnon:") file >> kibibytes;
  }
  return kibibytes << 10;
}

TEST(FloodTest, JobGoesOnBesideMessagesThatNeverEnd) {
  const auto job = TrainingJob::Make({.set = {"train_steps=100000"}});
  ASSERT_OK(job->StartAll());
  ASSERT_OK(job->WaitForStep(10));
  for (const auto& [task, index] : job->Tasks()) {
    SCOPED_TRACE(absl::StrCat(task, " ", index));
    const auto process = job->cluster().Process(task, index);
    ASSERT_OK(process);
    const size_t before = ResidentBytes((*process)->pid());
    const int port = PortOf(*job->cluster().Address(task, index));

    Http2Peer peer(port);
    const uint32_t call = peer.Open("/lockstep.v1.ParameterService/Push");
    EXPECT_TRUE(peer.BeginMessage(call, 1 << 30));
    EXPECT_FALSE(peer.SendBytes(call, 900 * kMebibyte));

    EXPECT_LT(ResidentBytes((*process)->pid()), before + 500 * kMebibyte);
  }
  const auto status = job->GetStatus();
  ASSERT_OK(status);
  EXPECT_OK(job->WaitForStep(status->step + 20));
}

TEST(FloodTest, ServerServesAgainWhenConnectionsAreGone) {
  const auto job = TrainingJob::Make({.set = {"train_steps=100000"}});
  ASSERT_OK(job->StartAll());
  ASSERT_OK(job->WaitForStep(1));
  const auto server = job->cluster().Process("ps", 0);
  ASSERT_OK(server);
  const rlimit few = {512, 512};
  ASSERT_EQ(prlimit((*server)->pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  const int port = PortOf(*job->cluster().Address("ps", 0));
  {
    std::vector<RawSocket> idle;
    for (int i = 0; i < 600; ++i) idle.emplace_back(port);
    absl::SleepFor(absl::Seconds(1));
  }
  // Its workers register again.
  ASSERT_OK(job->cluster().Kill("worker", 1));
  ASSERT_OK(job->cluster().Start("worker", 1));
  const auto status = job->GetStatus();
  ASSERT_OK(status);

  EXPECT_OK(job->WaitForStep(status->step + 20));
}

}  // namespace
}  // namespace lockstep::testing
