#include "common/metrics/durations.h"

#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// The number that stands after `name` in the metrics of now.
double Value(const std::string& name) {
  const std::string text = "\n" + DurationMetrics().ToText();
  const size_t at = text.find("\n" + name + " ");
  return at == text.npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

TEST(DurationsTest, ACallIsCountedByItsMethodWithItsTime) {
  const RpcTimer timer(RpcSide::kClient, "/a.B/C");
  const std::string count =
      "lockstep_rpc_client_seconds_count{method=\"/a.B/C\"}";
  EXPECT_EQ(Value(count), 0);
  timer.Done();
  EXPECT_EQ(Value(count), 1);
  EXPECT_GT(Value("lockstep_rpc_client_seconds_sum{method=\"/a.B/C\"}"), 0);
  EXPECT_EQ(Value("lockstep_rpc_server_seconds_count{method=\"/a.B/C\"}"), -1);
}

TEST(DurationsTest, AnObservationIsInEachBucketFromItsOwnOn) {
  WorkerPhaseSeconds("compute").Observe(0.03);
  const auto bucket = [](const std::string& le) {
    return Value(
        "lockstep_worker_phase_seconds_bucket{phase=\"compute\",le=\"" + le +
        "\"}");
  };
  EXPECT_EQ(bucket("0.025"), 0);
  EXPECT_EQ(bucket("0.05"), 1);
  EXPECT_EQ(bucket("60"), 1);
  EXPECT_EQ(bucket("+Inf"), 1);
}

TEST(DurationsTest, ThreadsLoseNothing) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      for (int j = 0; j < 1000; ++j) {
        StepSeconds().Observe(1e-3);
        RpcTimer(RpcSide::kServer, i % 2 == 0 ? "/even" : "/odd").Done();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Value("lockstep_step_seconds_count"), 4000);
  EXPECT_EQ(Value("lockstep_rpc_server_seconds_count{method=\"/even\"}"), 2000);
  EXPECT_EQ(Value("lockstep_rpc_server_seconds_count{method=\"/odd\"}"), 2000);
}

}  // namespace
}  // namespace lockstep
