#include "common/rpc/poller_limit.h"

#include <deque>
#include <functional>
#include <set>
#include <thread>

#include "absl/synchronization/barrier.h"
#include "absl/synchronization/blocking_counter.h"
#include "common/base/mutex.h"
#include "common/rpc/channel.h"
#include "gmock/gmock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ManualClock;
using ::testing::SizeIs;

// Runs `body` at the ends of `count` simultaneous calls, and waits for all of
// them.
void AtEnds(int count, const std::function<void()>& body) {
  struct Call {
    grpc::Slice slice{"x"};
    grpc::ClientContext context;
    grpc::ByteBuffer request{&slice, 1};
    grpc::ByteBuffer response;
  };
  grpc::GenericStub stub(MakeChannel("localhost:0"));
  std::deque<Call> calls;
  absl::BlockingCounter ended(count);
  for (int i = 0; i < count; ++i) {
    Call& call = calls.emplace_back();
    call.context.TryCancel();
    stub.UnaryCall(&call.context, "/lockstep/Test", grpc::StubOptions(),
                   &call.request, &call.response, [&](const grpc::Status&) {
                     body();
                     ended.DecrementCount();
                   });
  }
  ended.Wait();
}

std::set<std::thread::id> ServingThreads(int calls) {
  Mutex mutex;
  std::set<std::thread::id> threads;
  AtEnds(calls, [&] {
    MutexLock lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  return threads;
}

// The end of each call waits for the other's, which requires two threads.
void ExpectTwoServe() {
  absl::Barrier* const both = new absl::Barrier(2);
  AtEnds(2, [&] {
    if (both->Block()) delete both;
  });
}

TEST(PollerLimitTest, AsManyThreadsServeAsAreLeftAwake) {
  const PollerLimit limit(1);

  EXPECT_THAT(ServingThreads(200), SizeIs(1));
}

TEST(PollerLimitTest, NoneSleepsWhereTheLimitIsTheirNumber) {
  const PollerLimit limit(GrpcPollers());

  ExpectTwoServe();
}

TEST(PollerLimitTest, ThreadsServeAgainWhenTheLimitHasEnded) {
  for (int i = 0; i < 20; ++i) {
    const PollerLimit limit(1);
    EXPECT_THAT(ServingThreads(10), SizeIs(1));
  }

  ExpectTwoServe();
}

class AdaptingPollerLimitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (GrpcPollers() != 2) {
      GTEST_SKIP() << "SKIPPED, NOTHING WAS PROVED: gRPC has " << GrpcPollers();
    }
  }

  void MoveLittleOften() {
    for (int i = 0; i < PollerDemand::kMany; ++i) limit_.Moved(4);
  }
  void AwaitAsleep(int threads) {
    while (limit_.asleep() != threads) std::this_thread::yield();
  }

  ManualClock clock_;
  PollerLimit limit_{0, clock_};
};

TEST_F(AdaptingPollerLimitTest, AllServeAtFirst) { ExpectTwoServe(); }

TEST_F(AdaptingPollerLimitTest, OneServesWhileCallsMoveLittle) {
  MoveLittleOften();
  AwaitAsleep(1);

  EXPECT_THAT(ServingThreads(200), SizeIs(1));
}

TEST_F(AdaptingPollerLimitTest, BothServeAgainWhenACallMovesMuch) {
  for (int i = 0; i < 20; ++i) {
    MoveLittleOften();
    AwaitAsleep(1);
    limit_.Moved(PollerDemand::kMuch);
    ExpectTwoServe();
    clock_.Advance(2 * PollerDemand::kPeriod);
  }
}

TEST_F(AdaptingPollerLimitTest, BothServeAgainWhenNoCallsCome) {
  MoveLittleOften();
  AwaitAsleep(1);

  clock_.Advance(2 * PollerDemand::kPeriod);

  AwaitAsleep(0);
  ExpectTwoServe();
}

TEST_F(AdaptingPollerLimitTest, BothServeAgainWhenTheLimitHasEnded) {
  for (int i = 0; i < 20; ++i) {
    PollerLimit limit(0, clock_);
    for (int j = 0; j < PollerDemand::kMany; ++j) limit.Moved(4);
  }  // while a thread rests, or is about to

  ExpectTwoServe();
}

}  // namespace
}  // namespace lockstep
