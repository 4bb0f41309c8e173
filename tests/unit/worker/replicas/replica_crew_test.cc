#include "worker/replicas/replica_crew.h"

#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"
#include "tests/unit/common/process/forbid_threads.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;

TEST(ReplicaCrewTest, AllReplicasWorkAtTheSameTime) {
  ReplicaCrew crew(3);
  std::atomic<int> begun = 0;

  EXPECT_THAT(crew.Run([&](size_t) {
    ++begun;
    // Each waits for all others to have begun.
    while (begun < 3) std::this_thread::yield();
    return absl::OkStatus();
  }),
              IsOk());
}

TEST(ReplicaCrewTest, WithoutThreadsNoReplicaWorks) {
  constexpr int kCode = 77;
  EXPECT_EXIT(
      {
        ForbidThreads();
        ReplicaCrew crew(2);
        bool called = false;
        const absl::Status ran = crew.Run([&](size_t) {
          called = true;
          return absl::OkStatus();
        });
        _exit(absl::IsResourceExhausted(ran) && !called ? kCode : 1);
      },
      ::testing::ExitedWithCode(kCode), "");
}

TEST(ReplicaCrewTest, QuestionsAreAnsweredInTheThreadOfTheCaller) {
  ReplicaCrew crew(2);
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<int> told;  // without a lock: one thread writes

  for (int pass = 0; pass < 100; ++pass) {
    told.clear();
    ASSERT_THAT(crew.Run([&](size_t) {
      crew.Tell([&] { told.push_back(1); });
      return crew.Ask([&] {
        told.push_back(std::this_thread::get_id() == caller ? 2 : 0);
        return absl::OkStatus();
      });
    }),
                IsOk());

    EXPECT_EQ(std::count(told.begin(), told.end(), 1), 2);
    EXPECT_EQ(std::count(told.begin(), told.end(), 2), 2);
  }
}

TEST(ReplicaCrewTest, WhatOneReplicaTellsComesInItsOrder) {
  ReplicaCrew crew(2);
  std::vector<int> told;

  ASSERT_THAT(crew.Run([&](size_t replica) {
    for (int i = 0; i < 3 && replica == 1; ++i) {
      crew.Tell([&told, i] { told.push_back(i); });
    }
    return absl::OkStatus();
  }),
              IsOk());

  EXPECT_THAT(told, ElementsAre(0, 1, 2));
}

TEST(ReplicaCrewTest, AnErrorEndsTheWaitsOfTheOthersAndIsTheAnswer) {
  ReplicaCrew crew(3);

  EXPECT_THAT(crew.Run([&](size_t replica) {
    if (replica == 2) return absl::DataLossError("mine");
    // Ends only because replica 2 has failed.
    while (true) {
      absl::Status answer = crew.Ask([] { return absl::OkStatus(); });
      if (!answer.ok()) return answer;
    }
  }),
              StatusIs(absl::StatusCode::kDataLoss, "mine"));
  // The next pass knows nothing of it.
  EXPECT_THAT(crew.Run([&](size_t) {
    return crew.Ask([] { return absl::OkStatus(); });
  }),
              IsOk());
}

}  // namespace
}  // namespace lockstep::worker
