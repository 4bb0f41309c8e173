#ifndef LOCKSTEP_TESTS_UNIT_STRATEGY_STRATEGY_UNIT_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_STRATEGY_STRATEGY_UNIT_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

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

  std::unique_ptr<Strategy> strategy_ =
      Strategy::Make({Kind::kMirrored, 2, {}}).value();
};

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_TESTS_UNIT_STRATEGY_STRATEGY_UNIT_FIXTURE_H_
