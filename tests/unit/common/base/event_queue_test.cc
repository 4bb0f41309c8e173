#include "common/base/event_queue.h"

#include <memory>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::Optional;

TEST(EventQueueTest, EventsComeInTheOrderInWhichTheyWerePushed) {
  EventQueue<int> queue;
  for (int i : {3, 1, 2}) queue.Push(i);

  for (int i : {3, 1, 2}) {
    EXPECT_THAT(queue.PopFor(absl::ZeroDuration()), Optional(i));
  }
}

TEST(EventQueueTest, NothingComesFromAnEmptyQueue) {
  EventQueue<int> queue;

  EXPECT_EQ(queue.PopFor(absl::ZeroDuration()), std::nullopt);
  EXPECT_EQ(queue.PopFor(absl::Milliseconds(1)), std::nullopt);
  EXPECT_EQ(queue.PopFor(-absl::Seconds(1)), std::nullopt);
}

TEST(EventQueueTest, EventsNeedNotBeCopyable) {
  EventQueue<std::unique_ptr<int>> queue;
  queue.Push(std::make_unique<int>(7));

  const auto event = queue.PopFor(absl::ZeroDuration());

  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(**event, 7);
}

TEST(EventQueueTest, WaitEndsWithAPushFromAnotherThread) {
  EventQueue<int> queue;
  std::thread pusher([&] { queue.Push(5); });

  EXPECT_THAT(queue.PopFor(absl::Minutes(1)), Optional(5));

  pusher.join();
}

TEST(EventQueueTest, WaitWithoutALimitEndsWithAPush) {
  EventQueue<int> queue;
  std::thread pusher([&] { queue.Push(5); });

  EXPECT_THAT(queue.PopFor(absl::InfiniteDuration()), Optional(5));

  pusher.join();
}

TEST(EventQueueTest, NoEventOfManyThreadsIsLost) {
  constexpr int kThreads = 4;
  constexpr int kEvents = 500;
  EventQueue<int> queue;
  std::vector<std::thread> pushers;
  for (int thread = 0; thread < kThreads; ++thread) {
    pushers.emplace_back([&, thread] {
      for (int i = 0; i < kEvents; ++i) queue.Push(thread);
    });
  }

  std::vector<int> popped(kThreads, 0);
  for (int i = 0; i < kThreads * kEvents; ++i) {
    const std::optional<int> thread = queue.PopFor(absl::Minutes(1));
    ASSERT_TRUE(thread.has_value());
    ++popped[*thread];
  }

  EXPECT_THAT(popped, Each(kEvents));
  for (std::thread& pusher : pushers) pusher.join();
}

}  // namespace
}  // namespace lockstep
