// A client that requests values from a server, answers pings, and does not
// read.

#include <cstdlib>
#include <optional>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lockstep/v1/parameter.pb.h"
#include "tests/e2e/training_job.h"
#include "tests/testing/http2_peer.h"
#include "tests/testing/status_matchers.h"
#include "tests/testing/tls_tunnel.h"

namespace lockstep::testing {
namespace {

constexpr int kCalls = 8;

v1::PullRequest FirstPart(const std::string& job_id) {
  v1::PullRequest request;
  request.mutable_identity()->set_job_id(job_id);
  request.mutable_identity()->set_task_type("chief");
  request.mutable_identity()->set_incarnation(1);
  request.mutable_parts()->set_num_parts(1);
  request.set_step(-1);
  return request;
}

// As a server's log tells it: an operator's status is without it.
std::string JobId(TrainingJob& job) {
  const std::string before = ", job ";
  const std::string log = job.cluster().ReadLog("ps", 0).value_or("");
  const size_t at = log.find(before) + before.size();
  return log.substr(at, log.find('\n', at) - at);
}

// True: the client is a member, with a certificate.
class UnreadAnswerTest : public ::testing::TestWithParam<bool> {};

TEST_P(UnreadAnswerTest, TheJobGoesOnAfterALease) {
  auto job = TrainingJob::Make(
      {.set = {"lease=2s", "max_wait=1h", "train_steps=1000000",
               // Large answers reference the server's memory; small ones would
               // be copies.
               "model.hidden_units=512", "max_part_bytes=1048576"},
       .tls = GetParam()});
  ASSERT_THAT(job->StartAll(), IsOk());
  ASSERT_THAT(job->WaitForStep(5), IsOk());
  const auto address = job->cluster().Address("ps", 0);
  ASSERT_THAT(address, IsOk());
  const int port = std::atoi(address->substr(address->rfind(':') + 1).c_str());

  std::optional<TlsTunnel> tunnel;
  if (GetParam()) tunnel.emplace(port, job->tls_dir("chief-0"));
  Http2Peer client(GetParam() ? tunnel->port() : port, /*window=*/0);
  for (int i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(
        client.SendMessage(client.Open("/lockstep.v1.ParameterService/Pull"),
                           FirstPart(JobId(*job)).SerializeAsString()));
  }
  client.AnswerInBackground();
  ASSERT_THAT(
      job->cluster().WaitForLog("ps", 0, "answers were not read", kPatience),
      IsOk());

  const auto after = job->GetStatus();
  ASSERT_THAT(after, IsOk());
  EXPECT_THAT(job->WaitForStep(after->step + 50), IsOk());
  const absl::Time deadline = absl::Now() + kPatience;
  while (client.ended_calls() < kCalls && absl::Now() < deadline) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(client.ended_calls(), kCalls);
  EXPECT_FALSE(client.closed());
}

INSTANTIATE_TEST_SUITE_P(Clients, UnreadAnswerTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "Member" : "Plain";
                         });

}  // namespace
}  // namespace lockstep::testing
