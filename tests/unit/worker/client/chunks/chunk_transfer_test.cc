#include "worker/client/chunks/chunk_transfer.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <numeric>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::worker {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

ChunkTransfer::Options Fast(int window = 4) {
  ChunkTransfer::Options options;
  options.window = window;
  options.retry_pause = absl::Microseconds(100);
  static testing::ManualClock clock;
  options.clock = &clock;
  options.wait = [](absl::FunctionRef<bool()> done, absl::Duration at_most) {
    const absl::Time deadline = clock.Now() + at_most;
    while (!done() && clock.Now() < deadline) {
      clock.Advance(absl::Microseconds(10));
      std::this_thread::yield();
    }
  };
  return options;
}

std::deque<size_t> Range(size_t count) {
  std::deque<size_t> chunks(count);
  std::iota(chunks.begin(), chunks.end(), 0);
  return chunks;
}

TEST(ChunkTransferTest, EveryChunkGoesToItsServerOnce) {
  std::multiset<std::pair<int, size_t>> started;

  const absl::Status status =
      ChunkTransfer(Fast(), {{0, 1, 2}, {}, {0, 1}},
                    [&](int server, size_t chunk, ChunkTransfer::Report done) {
                      started.insert({server, chunk});
                      done(absl::OkStatus());
                    })
          .Run();

  EXPECT_THAT(status, IsOk());
  EXPECT_EQ(started, (std::multiset<std::pair<int, size_t>>{
                         {0, 0}, {0, 1}, {0, 2}, {2, 0}, {2, 1}}));
}

TEST(ChunkTransferTest, NeverMoreThanTheWindowInFlight) {
  std::atomic<int> in_flight = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  Mutex mutex;

  const absl::Status status =
      ChunkTransfer(Fast(2), {Range(50)},
                    [&](int, size_t, ChunkTransfer::Report done) {
                      most = std::max<int>(most, ++in_flight);
                      MutexLock lock(mutex);
                      threads.emplace_back([&in_flight, done] {
                        --in_flight;
                        done(absl::OkStatus());
                      });
                    })
          .Run();
  for (std::thread& thread : threads) thread.join();

  EXPECT_THAT(status, IsOk());
  EXPECT_EQ(threads.size(), 50u);
  EXPECT_LE(most, 2);
}

TEST(ChunkTransferTest, ServerWithoutAWindowGetsAllCallsAtOnce) {
  ChunkTransfer::Options options = Fast(2);
  options.without_window = {false, true};
  std::vector<int> started(3);
  std::vector<ChunkTransfer::Report> reports;
  ChunkTransfer transfer(options, {{}, {}, {}},
                         [&](int server, size_t, ChunkTransfer::Report done) {
                           ++started[server];
                           reports.push_back(std::move(done));
                         });

  for (size_t chunk = 0; chunk < 10; ++chunk) {
    for (int server = 0; server < 3; ++server) transfer.Add(server, chunk);
  }

  EXPECT_EQ(started, (std::vector<int>{2, 10, 2}));
  for (size_t i = 0; i < reports.size(); ++i) {
    const ChunkTransfer::Report report = reports[i];
    report(absl::OkStatus());
  }
  EXPECT_THAT(transfer.Run(), IsOk());
}

TEST(ChunkTransferTest, CallThatHadNoAnswerInTimeIsRepeatedAtOnce) {
  int calls = 0;
  ChunkTransfer::Options options = Fast(1);
  options.retry_pause = absl::Hours(1);

  const absl::Status status =
      ChunkTransfer(options, {{0}},
                    [&](int, size_t, ChunkTransfer::Report done) {
                      done(++calls == 1 ? absl::DeadlineExceededError("none")
                                        : absl::OkStatus());
                    })
          .Run();

  EXPECT_THAT(status, IsOk());
  EXPECT_EQ(calls, 2);
}

TEST(ChunkTransferTest, UnavailableServerIsAskedAgain) {
  int calls = 0;
  int retries = 0;
  ChunkTransfer::Options options = Fast(1);
  options.on_retry = [&](int server, const absl::Status& status) {
    EXPECT_EQ(server, 0);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable));
    ++retries;
  };

  const absl::Status status =
      ChunkTransfer(options, {{0, 1}},
                    [&](int, size_t, ChunkTransfer::Report done) {
                      done(++calls <= 3 ? absl::UnavailableError("gone")
                                        : absl::OkStatus());
                    })
          .Run();

  EXPECT_THAT(status, IsOk());
  EXPECT_EQ(calls, 5);
  EXPECT_EQ(retries, 3);
}

TEST(ChunkTransferTest, FailureThatDoesNotPassEndsTheTransfer) {
  int calls = 0;

  const absl::Status status =
      ChunkTransfer(Fast(1), {Range(10)},
                    [&](int, size_t, ChunkTransfer::Report done) {
                      ++calls;
                      done(absl::InvalidArgumentError("NaN"));
                    })
          .Run();

  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, "NaN"));
  EXPECT_EQ(calls, 1);
}

TEST(ChunkTransferTest, AddedChunksStartBeforeTheRun) {
  std::vector<std::pair<int, size_t>> started;
  ChunkTransfer transfer(
      Fast(), {{}, {}},
      [&](int server, size_t chunk, ChunkTransfer::Report done) {
        started.emplace_back(server, chunk);
        done(absl::OkStatus());
      });

  transfer.Add(1, 7);
  transfer.Add(0, 3);
  transfer.Add(1, 2);

  EXPECT_EQ(started,
            (std::vector<std::pair<int, size_t>>{{1, 7}, {0, 3}, {1, 2}}));
  EXPECT_THAT(transfer.Run(), IsOk());
  EXPECT_EQ(started.size(), 3u);
}

TEST(ChunkTransferTest, AddedChunksWaitForTheWindowInTheirOrder) {
  std::vector<size_t> started;
  std::deque<ChunkTransfer::Report> reports;
  ChunkTransfer transfer(Fast(2), {{}},
                         [&](int, size_t chunk, ChunkTransfer::Report done) {
                           started.push_back(chunk);
                           reports.push_back(std::move(done));
                         });
  for (size_t chunk : {5, 4, 3, 2}) transfer.Add(0, chunk);
  EXPECT_EQ(started, (std::vector<size_t>{5, 4}));

  while (!reports.empty()) {
    const ChunkTransfer::Report done = std::move(reports.front());
    reports.pop_front();
    done(absl::OkStatus());
  }

  EXPECT_EQ(started, (std::vector<size_t>{5, 4, 3, 2}));
  EXPECT_THAT(transfer.Run(), IsOk());
}

TEST(ChunkTransferTest, FailureBeforeTheRunStartsNothingMore) {
  int calls = 0;
  ChunkTransfer transfer(Fast(), {{}},
                         [&](int, size_t, ChunkTransfer::Report done) {
                           ++calls;
                           done(absl::InvalidArgumentError("NaN"));
                         });

  transfer.Add(0, 0);
  transfer.Add(0, 1);

  EXPECT_EQ(calls, 1);
  EXPECT_THAT(transfer.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, "NaN"));
}

TEST(ChunkTransferTest, RunRepeatsWhatFailedBeforeIt) {
  std::vector<size_t> started;
  bool available = false;
  ChunkTransfer transfer(
      Fast(1), {{}}, [&](int, size_t chunk, ChunkTransfer::Report done) {
        started.push_back(chunk);
        done(available ? absl::OkStatus() : absl::UnavailableError("gone"));
      });
  transfer.Add(0, 8);
  available = true;
  transfer.Add(0, 9);

  EXPECT_THAT(transfer.Run(), IsOk());

  EXPECT_EQ(started, (std::vector<size_t>{8, 8, 9}));
}

TEST(ChunkTransferTest, ChunksMayBeAddedWhileOthersEnd) {
  std::atomic<int> done_chunks = 0;
  std::vector<std::thread> threads;
  Mutex mutex;
  ChunkTransfer transfer(Fast(3), {{}, {}},
                         [&](int, size_t, ChunkTransfer::Report done) {
                           MutexLock lock(mutex);
                           threads.emplace_back([&done_chunks, done] {
                             ++done_chunks;
                             done(absl::OkStatus());
                           });
                         });

  for (size_t chunk = 0; chunk < 50; ++chunk) {
    transfer.Add(static_cast<int>(chunk % 2), chunk);
  }

  EXPECT_THAT(transfer.Run(), IsOk());
  EXPECT_EQ(done_chunks, 50);
  for (std::thread& thread : threads) thread.join();
}

TEST(ChunkTransferTest, WhatIsOnlyAddedStartsInAnotherThread) {
  std::vector<size_t> started;
  std::deque<ChunkTransfer::Report> reports;
  ChunkTransfer transfer(Fast(2), {{}},
                         [&](int, size_t chunk, ChunkTransfer::Report done) {
                           started.push_back(chunk);
                           reports.push_back(std::move(done));
                         });

  EXPECT_TRUE(transfer.AddOnly(0, 7));
  EXPECT_FALSE(transfer.AddOnly(0, 6));  // one start is asked for already
  EXPECT_EQ(started, (std::vector<size_t>{}));
  std::thread([&] { transfer.StartAdded(); }).join();
  EXPECT_EQ(started, (std::vector<size_t>{7, 6}));

  EXPECT_FALSE(transfer.AddOnly(0, 5));  // the window is full
  reports[0](absl::OkStatus());
  EXPECT_EQ(started, (std::vector<size_t>{7, 6, 5}));
  reports[1](absl::OkStatus());
  reports[2](absl::OkStatus());
  EXPECT_TRUE(transfer.AddOnly(0, 4));
  transfer.StartAdded();
  reports[3](absl::OkStatus());
  EXPECT_THAT(transfer.Run(), IsOk());
}

TEST(ChunkTransferTest, RunDoesNotReturnBeforeAStartThatWasAskedFor) {
  std::atomic<int> waits = 0;
  std::atomic<bool> started = false;
  ChunkTransfer::Options options = Fast();
  options.wait = [&](absl::FunctionRef<bool()> done, absl::Duration) {
    const bool finished = done();
    EXPECT_TRUE(!finished || started);
    ++waits;
  };
  ChunkTransfer transfer(
      options, {{}},
      [](int, size_t, ChunkTransfer::Report done) { done(absl::OkStatus()); });
  ASSERT_TRUE(transfer.AddOnly(0, 0));
  std::thread late([&] {
    while (waits < 3) std::this_thread::yield();
    started = true;
    transfer.StartAdded();
  });

  EXPECT_THAT(transfer.Run(), IsOk());

  EXPECT_GE(waits, 3);
  late.join();
}

TEST(ChunkTransferTest, RunEndsEarlyWhenThereIsEnough) {
  std::deque<ChunkTransfer::Report> reports;
  ChunkTransfer::Options options = Fast(2);
  options.wait = [&](absl::FunctionRef<bool()> done, absl::Duration) {
    if (done()) return;
    const ChunkTransfer::Report report = std::move(reports.front());
    reports.pop_front();
    report(absl::OkStatus());
  };
  int started = 0;
  ChunkTransfer transfer(options, {Range(10)},
                         [&](int, size_t, ChunkTransfer::Report done) {
                           ++started;
                           reports.push_back(std::move(done));
                         });

  transfer.RunUntil([&] { return started >= 5; });
  EXPECT_EQ(started, 5);

  transfer.RunUntil([] { return true; });
  EXPECT_EQ(started, 5);

  EXPECT_THAT(transfer.Run(), IsOk());
  EXPECT_EQ(started, 10);
}

TEST(ChunkTransferTest, RunForEnoughEndsWithAFailureToo) {
  ChunkTransfer transfer(Fast(), {{0}},
                         [](int, size_t, ChunkTransfer::Report done) {
                           done(absl::InvalidArgumentError("NaN"));
                         });

  transfer.RunUntil([] { return false; });

  EXPECT_THAT(transfer.Run(),
              StatusIs(absl::StatusCode::kInvalidArgument, "NaN"));
}

TEST(ChunkTransferTest, AllAreStartedOnceNoneWaitsForTheWindow) {
  std::deque<ChunkTransfer::Report> reports;
  ChunkTransfer transfer(Fast(1), {{}, {}},
                         [&](int, size_t, ChunkTransfer::Report done) {
                           reports.push_back(std::move(done));
                         });
  transfer.Add(0, 0);
  EXPECT_TRUE(transfer.AllStarted(0));
  transfer.Add(0, 1);
  EXPECT_FALSE(transfer.AllStarted(0));
  EXPECT_TRUE(transfer.AllStarted(1));

  reports.front()(absl::OkStatus());

  EXPECT_TRUE(transfer.AllStarted(0));
  reports.back()(absl::OkStatus());
  EXPECT_THAT(transfer.Run(), IsOk());
}

TEST(ChunkTransferTest, NothingToDoIsDoneAtOnce) {
  EXPECT_THAT(
      ChunkTransfer(Fast(), {}, [](int, size_t, ChunkTransfer::Report) {})
          .Run(),
      IsOk());
}

}  // namespace
}  // namespace lockstep::worker
