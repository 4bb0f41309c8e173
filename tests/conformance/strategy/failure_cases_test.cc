// Cases 98, 99 and 103: workers that leave and begin again, in groups over
// gRPC. A worker is a thread; strategy_storm_test kills processes.

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "deploy/cli/run/port_reservation.h"
#include "strategy/workers/network_group.h"
#include "tests/conformance/strategy/fleet.h"

namespace lockstep::strategy {
namespace {

using ::lockstep::testing::IsOk;
using ::lockstep::testing::IsOkAndHolds;
using ::lockstep::testing::StatusIs;
using ::testing::AnyOf;
using ::testing::HasSubstr;

std::vector<Shape> ShapesOfSeveralWorkers() {
  std::vector<Shape> shapes;
  for (const Shape& shape : AllShapes()) {
    if (shape.workers > 1) shapes.push_back(shape);
  }
  return shapes;
}

class FailureCases : public CaseTest {
 protected:
  FailureCases() {
    for (int w = 0; w < GetParam().workers; ++w) {
      ports_.push_back(*cli::PortReservation::Create());
      addresses_.push_back(absl::StrCat("127.0.0.1:", ports_.back().port()));
    }
    workers_.resize(addresses_.size());
  }

  // Calls work(number) for all workers but `absent`, at the same time.
  void EachBut(std::optional<size_t> absent,
               const std::function<void(size_t)>& work) const {
    std::vector<std::thread> threads;
    for (size_t w = 0; w < workers_.size(); ++w) {
      if (w != absent) threads.emplace_back(work, w);
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Returns when all workers have joined.
  void Join(size_t worker) {
    auto group =
        NetworkGroup::Join({static_cast<int>(worker), addresses_, "the cases",
                            absl::Seconds(60), absl::Seconds(60)});
    ASSERT_THAT(group, IsOk());
    workers_[worker] =
        Strategy::Make({GetParam().kind, GetParam().replicas, {}},
                       *std::move(group))
            .value();
  }
  absl::StatusOr<Value> SumOfOnes(size_t worker) const {
    Strategy& s = *workers_[worker];
    return s.Reduce(ReduceOp::kSum, Values(s, [](int) { return Number(1); }));
  }

  std::vector<cli::PortReservation> ports_;
  std::vector<std::string> addresses_;
  Fleet workers_;
};

// TensorFlow's survivors get kUnavailable or kDeadlineExceeded. A supervisor
// starts the worker again; then all begin again.
TEST_P(FailureCases, Case98And99CallsEndWhenAWorkerLeavesAndAllBeginAgain) {
  EachBut(std::nullopt, [&](size_t w) {
    ASSERT_NO_FATAL_FAILURE(Join(w));
    EXPECT_THAT(workers_[w]->Create("first", Number(1)), IsOk());
    EXPECT_THAT(SumOfOnes(w), IsOkAndHolds(Number(n())));
    if (w == 1) workers_[w] = nullptr;
  });
  if (HasFatalFailure()) return;
  // On a busy machine its farewell may be late: then it answers no probe.
  const auto left =
      AnyOf(StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 1")),
            StatusIs(absl::StatusCode::kUnavailable, HasSubstr("rank 1")));
  EachBut(1, [&](size_t w) {
    EXPECT_THAT(workers_[w]->Create("second", Number(1)), left);
    EXPECT_THAT(SumOfOnes(w), left);
  });
  for (auto& worker : workers_) worker = nullptr;
  EachBut(std::nullopt, [&](size_t w) {
    ASSERT_NO_FATAL_FAILURE(Join(w));
    for (const float first : {3, 5}) {
      const auto made =
          workers_[w]->Create("v", Number(first + static_cast<float>(w)));
      ASSERT_THAT(made, IsOk());
      EXPECT_THAT(CopiesOf(*workers_[w], *made), ::testing::Each(first));
      EXPECT_THAT(SumOfOnes(w), IsOkAndHolds(Number(n())));
    }
  });
}

// The others learn of the new start from its greeting, at the latest.
TEST_P(FailureCases, Case103ANewStartOfAWorkerEndsTheCallsOfTheOthers) {
  EachBut(std::nullopt, [&](size_t w) {
    ASSERT_NO_FATAL_FAILURE(Join(w));
    EXPECT_THAT(SumOfOnes(w), IsOkAndHolds(Number(n())));
  });
  if (HasFatalFailure()) return;
  workers_[1] = nullptr;
  std::thread again([&] { Join(1); });
  EachBut(1, [&](size_t w) {
    EXPECT_THAT(SumOfOnes(w),
                StatusIs(absl::StatusCode::kAborted, HasSubstr("rank 1")));
  });
  for (size_t w = 0; w < workers_.size(); ++w) {
    if (w != 1) workers_[w] = nullptr;
  }
  EachBut(1, [&](size_t w) { Join(w); });
  again.join();
  ASSERT_FALSE(HasFatalFailure());
  EachBut(std::nullopt, [&](size_t w) {
    EXPECT_THAT(SumOfOnes(w), IsOkAndHolds(Number(n())));
  });
}

INSTANTIATE_TEST_SUITE_P(Shapes, FailureCases,
                         ::testing::ValuesIn(ShapesOfSeveralWorkers()),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace lockstep::strategy
