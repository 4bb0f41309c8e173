#include "common/trace/span_ring.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// All fields follow from `number`, so that a mixture of two spans shows.
Span Numbered(int64_t number) {
  return {.kind = static_cast<SpanKind>(1 + number % 17),
          .flags = static_cast<uint8_t>(number % 256),
          .attempt = static_cast<uint16_t>(number % 65536),
          .part = static_cast<int32_t>(number),
          .peer = static_cast<int32_t>(-number),
          .step = number,
          .begin = number * 3,
          .end = number * 5};
}

TEST(SpanRingTest, IsEmptyAtFirst) {
  EXPECT_THAT(SpanRing(4).Newest(10), IsEmpty());
}

TEST(SpanRingTest, ReturnsWhatWasAddedWithAllFields) {
  SpanRing ring(4);
  Span span = Numbered(300);
  span.part = -1;
  span.peer = -1;
  span.step = -1;
  ring.Add(span);
  EXPECT_THAT(ring.Newest(10), ElementsAre(span));
}

TEST(SpanRingTest, NewSpansDisplaceTheOldest) {
  SpanRing ring(3);
  for (int number = 1; number <= 7; ++number) ring.Add(Numbered(number));
  EXPECT_THAT(ring.Newest(10),
              ElementsAre(Numbered(5), Numbered(6), Numbered(7)));
  EXPECT_THAT(ring.Newest(2), ElementsAre(Numbered(6), Numbered(7)));
}

TEST(SpanRingTest, ARingWithoutRoomHoldsOne) {
  SpanRing ring(0);
  ring.Add(Numbered(1));
  ring.Add(Numbered(2));
  EXPECT_THAT(ring.Newest(10), ElementsAre(Numbered(2)));
}

TEST(SpanRingTest, SpansOfManyThreadsAreWhole) {
  constexpr int kThreads = 4;
  constexpr int kSpans = 300000;
  SpanRing ring(2);  // small, so that writers and readers meet in one place
  std::atomic<bool> done = false;
  std::vector<std::thread> writers;
  for (int thread = 0; thread < kThreads; ++thread) {
    writers.emplace_back([&ring, thread] {
      for (int i = 1; i <= kSpans; ++i) ring.Add(Numbered(i * 8 + thread));
    });
  }
  std::thread reader([&] {
    while (!done) {
      for (const Span& span : ring.Newest(2)) {
        ASSERT_EQ(span, Numbered(span.step));
      }
    }
  });
  for (std::thread& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_LE(ring.Newest(100).size(), 2u);
  EXPECT_FALSE(ring.Newest(100).empty());
}

}  // namespace
}  // namespace lockstep
