#include "worker/chunk_transfer.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <numeric>
#include <set>
#include <thread>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace lockstep {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::StatusIs;

ChunkTransfer::Options Fast(int window = 4) {
  ChunkTransfer::Options options;
  options.window = window;
  options.retry_pause = absl::Microseconds(100);
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

TEST(ChunkTransferTest, NothingToDoIsDoneAtOnce) {
  EXPECT_THAT(
      ChunkTransfer(Fast(), {}, [](int, size_t, ChunkTransfer::Report) {})
          .Run(),
      IsOk());
}

}  // namespace
}  // namespace lockstep
