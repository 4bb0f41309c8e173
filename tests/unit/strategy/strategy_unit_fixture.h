#ifndef LOCKSTEP_TESTS_UNIT_STRATEGY_STRATEGY_UNIT_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_STRATEGY_STRATEGY_UNIT_FIXTURE_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/collective/local_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/strategy.h"
#include "tests/testing/status_matchers.h"

namespace lockstep::strategy {

// Tests with two replicas in a process.
class TwoReplicas : public ::testing::Test {
 protected:
  static Value Number(float number) { return Value::Scalar(number); }

  // A number for each replica.
  static PerReplica<Value> Each(float first, float second) {
    return PerReplica<Value>({Number(first), Number(second)}, 0);
  }

  Variable Make(Synchronization synchronization, Aggregation aggregation,
                float initial = 0) {
    VariableOptions options;
    options.name = "v";
    options.initializer = Starting(Number(initial));
    options.synchronization = synchronization;
    options.aggregation = aggregation;
    return strategy_->Create(options).value();
  }

  // The copies of a variable.
  std::vector<float> CopiesOf(const Variable& variable) {
    const auto copies = strategy_->LocalCopies(variable).value();
    std::vector<float> numbers;
    for (size_t i = 0; i < copies.size(); ++i) {
      numbers.push_back(copies.At(i).Elements<float>()[0]);
    }
    return numbers;
  }

  // Calls work(strategy, rank == 0) for two workers at the same time.
  static void InTwoWorkers(
      int replicas,
      const std::function<void(Strategy& strategy, bool first)>& work) {
    auto group = MakeLocalGroup(2, absl::Minutes(1));
    std::vector<std::thread> workers;
    for (auto& member : group) {
      workers.emplace_back([&] {
        const bool first = member->rank() == 0;
        auto strategy =
            Strategy::Make({Kind::kMultiWorkerMirrored, replicas, {}},
                           std::move(member))
                .value();
        work(*strategy, first);
      });
    }
    for (std::thread& worker : workers) worker.join();
  }

  std::unique_ptr<Strategy> strategy_ =
      Strategy::Make({Kind::kMirrored, 2, {}}).value();
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_TESTS_UNIT_STRATEGY_STRATEGY_UNIT_FIXTURE_H_
