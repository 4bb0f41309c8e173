// A peer that sends or holds without limit costs a process no more than its
// share: the job goes on, and memory and descriptors are bounded.

#include <sys/resource.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
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
#include "tests/testing/tls_tunnel.h"

namespace lockstep::testing {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;
// Far less than the 900 MiB that a peer sends. The address sanitizer keeps
// freed memory in its quarantine, and for some seconds in pages of its own.
constexpr size_t kMostBytes = 500 * kMebibyte + kQuarantine * 3 / 2;

int PortOf(const std::string& address) {
  int port = 0;
  EXPECT_TRUE(absl::SimpleAtoi(
      std::vector<std::string>(absl::StrSplit(address, ':')).back(), &port));
  return port;
}

// Returns the largest resident memory that a process has had.
size_t PeakBytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::string word;
  size_t kibibytes = 0;
  while (file >> word) {
    if (word == "VmHWM:") file >> kibibytes;
  }
  return kibibytes << 10;
}

// Begins the peak of a process's memory anew, and returns it in bytes.
size_t BeginPeak(pid_t pid) {
  std::ofstream(absl::StrCat("/proc/", pid, "/clear_refs")) << "5";
  return PeakBytes(pid);
}

int64_t DescriptorsOf(pid_t pid) {
  return std::distance(
      std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd")),
      {});
}

// True: the peer is a member of the job, with the certificate of worker 0.
class FloodTest : public ::testing::TestWithParam<bool> {
 protected:
  std::unique_ptr<TrainingJob> MakeJob() const {
    return TrainingJob::Make(
        {.set = {"train_steps=100000"}, .tls = GetParam()});
  }

  // Where connections to a task begin.
  int Entrance(TrainingJob& job, const std::string& task, int index) {
    const int port = PortOf(*job.cluster().Address(task, index));
    if (!GetParam()) return port;
    return tunnel_.emplace(port, job.tls_dir("worker-0")).port();
  }

  // On a busy machine the first of many may take seconds.
  void AwaitHandshake() const {
    const absl::Time end = absl::Now() + kPatience;
    while (tunnel_->handshakes() == 0 && absl::Now() < end) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    EXPECT_GT(tunnel_->handshakes(), 0);
  }

  std::optional<TlsTunnel> tunnel_;
};

TEST_P(FloodTest, JobGoesOnBesideMessagesThatNeverEnd) {
  const auto job = MakeJob();
  ASSERT_OK(job->StartAll());
  ASSERT_OK(job->WaitForStep(10));
  for (const auto& [task, index] : job->Tasks()) {
    SCOPED_TRACE(absl::StrCat(task, " ", index));
    const auto process = job->cluster().Process(task, index);
    ASSERT_OK(process);
    const size_t before = BeginPeak((*process)->pid());

    Http2Peer peer(Entrance(*job, task, index));
    // A call that a worker may make: others end before their body is read.
    const uint32_t call =
        peer.Open(task == "ps" ? "/lockstep.v1.ParameterService/Push"
                               : "/grpc.health.v1.Health/Check");
    EXPECT_TRUE(peer.BeginMessage(call, 1 << 30));
    EXPECT_FALSE(peer.SendBytes(call, 900 * kMebibyte));

    EXPECT_LT(PeakBytes((*process)->pid()), before + kMostBytes);
  }
  // gRPC takes memory back from idle connections when a server's share is
  // full, ours too: the first question after it may find its connection closed.
  ASSERT_OK(job->WaitForStep(10));
  const auto status = job->GetStatus();
  ASSERT_OK(status);
  EXPECT_OK(job->WaitForStep(status->step + 20));
}

TEST_P(FloodTest, ServerServesAgainWhenConnectionsAreGone) {
  // The tunnel takes two descriptors for each of its connections.
  rlimit own;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &own), 0);
  own.rlim_cur = own.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &own), 0);
  const auto job = MakeJob();
  ASSERT_OK(job->StartAll());
  ASSERT_OK(job->WaitForStep(1));
  const auto server = job->cluster().Process("ps", 0);
  ASSERT_OK(server);
  const rlimit few = {512, 512};
  ASSERT_EQ(prlimit((*server)->pid(), RLIMIT_NOFILE, &few, nullptr), 0);
  const int port = Entrance(*job, "ps", 0);
  {
    std::vector<RawSocket> idle;
    for (int i = 0; i < 600; ++i) idle.emplace_back(port);
    ASSERT_OK(job->cluster().WaitForLog(
        "ps", 0, "takes no new connections: Too many open files", kPatience));
    if (GetParam()) AwaitHandshake();
  }
  const absl::Time end = absl::Now() + kPatience;
  while (DescriptorsOf((*server)->pid()) > 256 && absl::Now() < end) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  ASSERT_LE(DescriptorsOf((*server)->pid()), 256);
  // Its workers register again.
  ASSERT_OK(job->cluster().Kill("worker", 1));
  ASSERT_OK(job->cluster().Start("worker", 1));
  const auto status = job->GetStatus();
  ASSERT_OK(status);

  EXPECT_OK(job->WaitForStep(status->step + 20));
}

INSTANTIATE_TEST_SUITE_P(Peers, FloodTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Member" : "Plain";
                         });

}  // namespace
}  // namespace lockstep::testing
