// The promises, in many simulated jobs to which everything happens.
//
// LOCKSTEP_SIMULATION_SCHEDULES sets how many, and LOCKSTEP_SIMULATION_SEED
// runs the one schedule that a failure has named, with its trace.

#include "tests/conformance/simulation/simulation.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace lockstep::simulation {
namespace {

constexpr uint64_t kSchedules = LOCKSTEP_SCHEDULES;

// Processes hang for longer than a member of a step may be silent.
Options BackupsReplaceTheSlow(Options options) {
  options.stall_timeout = absl::Seconds(1);
  return options;
}

// Every pass lacks some gradients, and the norm of the mean is limited.
Options Clipped(Options options) {
  options.limits_mean = true;
  options.sparse = true;
  return options;
}

// Workers ask for more than they may.
Options Hasty(Options options) {
  options.hasty = true;
  return options;
}

// Each worker has a mirror.
Options Mirrored(Options options) {
  options.mirrored = true;
  return options;
}

// Workers come and go, and mirrors with them.
Options Elastic(Options options) {
  options.elastic = true;
  return options;
}

// Processes that are away for long come back before the job is over.
Options Slow(Options options) {
  options.steps = 8;
  options.pass_times.assign(options.total_num_replicas, absl::Seconds(3));
  return options;
}

// Workers take numbers, which are summed in their order.
Options Shared(Options options) {
  options.shared = true;
  return options;
}

// Gradients of any step may count, as in TensorFlow.
Options Compatible(Options options) {
  options.mode = SyncMode::kCompatible;
  options.initial_tokens = options.replicas_to_aggregate;
  return options;
}

// Workers copy values out of the servers' memory.
Options OnOneHost(Options options) {
  options.shared_memory = true;
  return options;
}

// A schedule's cluster follows from its seed, too.
const std::vector<Options>& Clusters() {
  static const auto* clusters = new std::vector<Options>{
      {2, 2, {2, 1}},         // every worker counts
      Hasty({2, 3, {2, 1}}),  // one backup
      BackupsReplaceTheSlow({2, 4, {1, 0}}),
      BackupsReplaceTheSlow({2, 3, {1}}),
      {3, 2, {2, 1}},     // shares: two and one
      {2, 2, {1}},        // one server, which is granted steps
      {1, 2, {1, 0}},     // a server without parts
      {1, 1, {1, 1, 1}},  // alone
      {4, 2, {1, 1}},     // two shares each
      {2, 2, {2, 1}, 4, 2, /*elastic=*/true},
      {1, 2, {1}, 4, 2, /*elastic=*/true},
      Clipped({2, 2, {2, 1}}),
      Clipped(BackupsReplaceTheSlow({2, 3, {1, 2, 1}})),
      Clipped({3, 2, {1, 0}}),
      Clipped({2, 2, {2, 1}, 4, 2, /*elastic=*/true}),
      Hasty(Mirrored({2, 2, {2, 1}})),
      Mirrored({3, 3, {1, 2, 0}}),
      Mirrored({1, 1, {2}}),
      Mirrored(Clipped({2, 2, {1, 1}})),
      Elastic(Mirrored({2, 2, {2, 1}})),
      Slow(Elastic(Mirrored({2, 2, {2, 1}}))),
      Slow(Elastic(Mirrored({3, 3, {1, 2, 0}}))),
      Slow(Elastic(Hasty(Mirrored({3, 3, {1, 1, 2}})))),
      Slow(Elastic(Mirrored(Clipped({3, 3, {1, 1, 1}})))),
      Shared({4, 2, {2, 1}}),
      Shared({3, 3, {1}}),
      Shared({2, 4, {1, 1}}),  // more workers than numbers
      Shared({3, 1, {1, 1}}),
      Shared(Clipped({3, 2, {1, 2}})),
      Shared({4, 2, {2, 1}, 4, 2, /*elastic=*/true}),
      OnOneHost({2, 2, {2, 1}}),
      OnOneHost({2, 3, {2, 1}}),
      Compatible({2, 2, {2, 1}}),
      Compatible({2, 3, {1, 0, 1}}),
      Compatible({4, 2, {1, 1}}),
      Compatible({1, 1, {1}}),
  };
  return *clusters;
}

const Options& ClusterOf(uint64_t seed) {
  return Clusters()[seed % Clusters().size()];
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  uint64_t value = 0;
  const char* text = std::getenv(name);
  return text != nullptr && absl::SimpleAtoi(text, &value) ? value : otherwise;
}

std::string Story(const Options& options, uint64_t seed) {
  const Simulation::Result result = Simulation(options, seed, true).Run();
  return absl::StrCat("seed ", seed, ": ", absl::StrJoin(result.broken, "; "),
                      "\n", absl::StrJoin(result.trace, "\n"));
}

// What happened in schedules with seeds first, first + stride, ...
struct Sum {
  uint64_t failed = 0;  // a seed that broke something; 0: none
  uint64_t broken = 0;
  int64_t events = 0;
  int64_t kills = 0;
  int64_t losses = 0;
  int64_t went_back = 0;
  Tally tally;
};

Sum RunMany(uint64_t first, uint64_t last, uint64_t stride) {
  Sum sum;
  for (uint64_t seed = first; seed <= last; seed += stride) {
    const Simulation::Result result = Simulation(ClusterOf(seed), seed).Run();
    sum.events += result.events;
    sum.kills += result.kills;
    sum.losses += result.losses;
    sum.went_back += result.went_back;
    sum.tally += result.tally;
    if (result.broken.empty()) continue;
    ++sum.broken;
    if (sum.failed == 0) sum.failed = seed;
    if (std::getenv("LOCKSTEP_SIMULATION_GO_ON") == nullptr) break;
    std::cerr << seed << ": " << absl::StrJoin(result.broken, "; ") << "\n";
  }
  return sum;
}

TEST(SimulationTest, PromisesHoldWhateverHappens) {
  const uint64_t only = FromEnvironment("LOCKSTEP_SIMULATION_SEED", 0);
  if (only > 0) {
    std::cerr << Story(ClusterOf(only), only) << "\n";
    EXPECT_TRUE(Simulation(ClusterOf(only), only).Run().broken.empty());
    return;
  }
  const uint64_t schedules =
      FromEnvironment("LOCKSTEP_SIMULATION_SCHEDULES", kSchedules);
  const uint64_t first = FromEnvironment("LOCKSTEP_SIMULATION_FIRST", 1);
  constexpr uint64_t kThreads = 2;
  std::vector<Sum> sums(kThreads);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&sums, i, first, schedules] {
      sums[i] = RunMany(first + i, first + schedules - 1, kThreads);
    });
  }
  for (std::thread& thread : threads) thread.join();

  Sum all;
  for (const Sum& sum : sums) {
    EXPECT_EQ(sum.failed, 0U) << Story(ClusterOf(sum.failed), sum.failed);
    all.events += sum.events;
    all.kills += sum.kills;
    all.losses += sum.losses;
    all.went_back += sum.went_back;
    all.tally += sum.tally;
    all.broken += sum.broken;
  }
  const Tally& rare = all.tally;
  std::cout << schedules << " schedules, " << all.events << " events, "
            << all.kills << " kills, " << all.losses << " states lost, "
            << all.went_back << " times back to a checkpoint, " << rare.redone
            << " redone, " << rare.replaced << " replaced, " << rare.held_up
            << " updates held up, " << rare.late_copies << " late copies, "
            << rare.left_out << " mirrors left out, " << rare.postponed
            << " calls postponed, " << rare.given_up << " pushes given up, "
            << all.broken << " broken\n";
  // The schedules were no walk in the park.
  const auto count = static_cast<int64_t>(schedules);
  EXPECT_GT(all.kills, count / 3);
  EXPECT_GT(all.went_back, count / 100);
  EXPECT_GT(rare.redone, count / 100);
  // About 1 of 2000; a run under sanitizers is too short to need one.
  EXPECT_GE(rare.replaced, count / 5000);
  EXPECT_GE(rare.held_up, count / 200);
  EXPECT_GE(rare.late_copies, count / 2000);
  EXPECT_GE(rare.left_out, count / 5000);
  EXPECT_GT(rare.postponed, count);
  EXPECT_GE(rare.given_up, count / 200);
}

}  // namespace
}  // namespace lockstep::simulation
