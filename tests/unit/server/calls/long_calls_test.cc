#include "server/calls/long_calls.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/manual_clock.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::server {
namespace {

using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kSecond = absl::Seconds(1);

// A work that goes on until it is told how it ends.
struct Gate {
  std::promise<LongCalls::Result> end;
  std::promise<void> begun;

  static LongCalls::Work WorkOf(const std::shared_ptr<Gate>& gate) {
    return [gate] {
      gate->begun.set_value();
      return gate->end.get_future().get();
    };
  }
};

// What a call was ended with.
struct Ended {
  std::promise<LongCalls::Result> result;
  bool not_yet = false;
};

class LongCallsTest : public ::testing::Test {
 protected:
  LongCalls::Call CallOf(const std::shared_ptr<Ended>& ended, bool asks_again) {
    LongCalls::Call call;
    call.since = clock_.Now();
    call.end = [ended](const LongCalls::Result& result) {
      ended->result.set_value(result);
    };
    if (asks_again) call.end_not_yet = [ended] { ended->not_yet = true; };
    return call;
  }
  // Serves a work that has begun when this returns.
  std::shared_ptr<Ended> Begin(const std::string& request,
                               const std::shared_ptr<Gate>& gate,
                               bool asks_again = true) {
    const auto ended = std::make_shared<Ended>();
    calls_.Serve(request, CallOf(ended, asks_again), Gate::WorkOf(gate));
    gate->begun.get_future().wait();
    return ended;
  }
  std::shared_ptr<Ended> AskAgain(const std::string& request) {
    const auto ended = std::make_shared<Ended>();
    calls_.Serve(request, CallOf(ended, /*asks_again=*/true), [this] {
      ++repeated_;
      return LongCalls::Result("done again");
    });
    return ended;
  }
  static LongCalls::Result ResultOf(Ended& ended) {
    return ended.result.get_future().get();
  }

  testing::ManualClock clock_;
  int repeated_ = 0;
  LongCalls calls_{clock_};
};

TEST_F(LongCallsTest, CallThatCannotAskAgainIsAnsweredAtTheEnd) {
  const auto gate = std::make_shared<Gate>();
  const auto call = Begin("r", gate, /*asks_again=*/false);
  clock_.Advance(10 * kSecond);
  calls_.AnswerOld(clock_.Now() - kSecond);

  gate->end.set_value("done");

  EXPECT_THAT(ResultOf(*call), IsOkAndHolds("done"));
}

TEST_F(LongCallsTest, SameRequestFindsTheWorkUnderWay) {
  const auto gate = std::make_shared<Gate>();
  const auto first = Begin("r", gate);
  calls_.AnswerOld(clock_.Now());
  EXPECT_FALSE(first->not_yet);  // it has not waited for long
  clock_.Advance(2 * kSecond);
  calls_.AnswerOld(clock_.Now() - kSecond);
  EXPECT_TRUE(first->not_yet);

  const auto second = AskAgain("r");
  gate->end.set_value("done");

  EXPECT_THAT(ResultOf(*second), IsOkAndHolds("done"));
  EXPECT_EQ(repeated_, 0);
}

TEST_F(LongCallsTest, LaterCallOfTheSameRequestReplacesTheEarlier) {
  const auto gate = std::make_shared<Gate>();
  const auto first = Begin("r", gate);

  const auto second = AskAgain("r");

  EXPECT_THAT(ResultOf(*first), StatusIs(absl::StatusCode::kAborted,
                                         "the same has been asked again"));
  gate->end.set_value("done");
  EXPECT_THAT(ResultOf(*second), IsOkAndHolds("done"));
}

// The work is over once a later one has begun.
void WaitForTheWorkBefore(LongCalls& calls) {
  std::promise<void> begun;
  calls.Run([&](const absl::Status&) { begun.set_value(); });
  begun.get_future().wait();
}

TEST_F(LongCallsTest, FailureWaitsForARepeatedCallButNotForEver) {
  for (const bool in_time : {true, false}) {
    const auto gate = std::make_shared<Gate>();
    const auto first = Begin("r", gate);
    clock_.Advance(2 * kSecond);
    calls_.AnswerOld(clock_.Now() - kSecond);
    gate->end.set_value(absl::ResourceExhaustedError("no room"));
    WaitForTheWorkBefore(calls_);
    clock_.Advance(in_time ? 5 * kSecond : 60 * kSecond);
    calls_.AnswerOld(clock_.Now() - kSecond);

    const auto second = AskAgain("r");

    if (in_time) {
      EXPECT_THAT(ResultOf(*second),
                  StatusIs(absl::StatusCode::kResourceExhausted));
    } else {
      EXPECT_THAT(ResultOf(*second), IsOkAndHolds("done again"));
    }
  }
  EXPECT_EQ(repeated_, 1);
}

TEST_F(LongCallsTest, SuccessWithoutAWaitingCallIsWorkedOutAgain) {
  const auto gate = std::make_shared<Gate>();
  const auto first = Begin("r", gate);
  clock_.Advance(2 * kSecond);
  calls_.AnswerOld(clock_.Now() - kSecond);
  gate->end.set_value("done");
  WaitForTheWorkBefore(calls_);

  EXPECT_THAT(ResultOf(*AskAgain("r")), IsOkAndHolds("done again"));
  EXPECT_EQ(repeated_, 1);
}
TEST_F(LongCallsTest, WorksAreDoneOneAfterTheOther) {
  const auto gate = std::make_shared<Gate>();
  const auto first = Begin("r", gate);
  std::vector<std::string> done;  // in the thread of the works
  std::promise<void> all;
  calls_.Run([&](const absl::Status& status) {
    EXPECT_OK(status);
    done.push_back("second");
  });
  calls_.Run([&](const absl::Status&) {
    done.push_back("third");
    all.set_value();
  });
  EXPECT_THAT(done, IsEmpty());

  gate->end.set_value("done");

  all.get_future().wait();
  EXPECT_THAT(done, ElementsAre("second", "third"));
  EXPECT_OK(ResultOf(*first));
}

TEST_F(LongCallsTest, AllCallsEndWithTheProcess) {
  const auto gate = std::make_shared<Gate>();
  const auto under_way = Begin("r", gate);
  const auto waits = AskAgain("other");
  absl::Status dropped;
  calls_.Run([&](const absl::Status& status) { dropped = status; });

  calls_.End(absl::UnavailableError("this ps has ended"));

  const auto ended = StatusIs(absl::StatusCode::kUnavailable);
  EXPECT_THAT(ResultOf(*under_way), ended);
  EXPECT_THAT(ResultOf(*waits), ended);
  EXPECT_THAT(dropped, ended);
  EXPECT_THAT(ResultOf(*AskAgain("r")), ended);
  absl::Status late;
  calls_.Run([&](const absl::Status& status) { late = status; });
  EXPECT_THAT(late, ended);
  EXPECT_EQ(repeated_, 0);
  gate->end.set_value("done");  // no call is left to answer
}

TEST_F(LongCallsTest, JoinWaitsForTheWorkOfACallThatHasEnded) {
  const auto gate = std::make_shared<Gate>();
  const auto call = Begin("r", gate);
  calls_.End(absl::UnavailableError("this ps has ended"));
  EXPECT_THAT(ResultOf(*call), StatusIs(absl::StatusCode::kUnavailable));
  auto joined = std::async(std::launch::async, [&] { calls_.Join(); });
  EXPECT_EQ(joined.wait_for(std::chrono::milliseconds(50)),
            std::future_status::timeout);

  gate->end.set_value("done");

  joined.wait();
  calls_.Join();  // repeating it changes nothing
}

}  // namespace
}  // namespace lockstep::server
