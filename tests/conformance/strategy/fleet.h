#ifndef LOCKSTEP_TESTS_CONFORMANCE_STRATEGY_FLEET_H_
#define LOCKSTEP_TESTS_CONFORMANCE_STRATEGY_FLEET_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strategy/strategy.h"
#include "tests/testing/status_matchers.h"

// The suite of numbered cases of TensorFlow's tests, for each kind of strategy.
// A case is named by its number; strategy/rows.md names those that are tested
// elsewhere.
namespace lockstep::strategy {

// A kind of strategy with its numbers of workers and of replicas of each.
struct Shape {
  Kind kind;
  int workers;
  int replicas;
  bool apart = false;  // the workers form no group

  int all() const { return workers * replicas; }
};
std::string NameOf(const Shape& shape);
inline std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  return out << NameOf(shape);
}

// The shapes that the suite runs for. Under kParameterServer no job has taken
// the variables yet; served_cases_test.cc has some that lie on servers.
std::vector<Shape> AllShapes();

// CaseTest has the strategies of all workers of a shape.
class CaseTest : public ::testing::TestWithParam<Shape> {
 protected:
  CaseTest() : fleet_(Make(GetParam(), absl::Minutes(1))) {}

  using Fleet = std::vector<std::unique_ptr<Strategy>>;

  static Fleet Make(const Shape& shape, absl::Duration timeout,
                    SumOrder order = SumOrder::kRank);

  // Calls work(strategy) for all workers at the same time.
  static void Each(const Fleet& fleet,
                   const std::function<void(Strategy&)>& work);
  void Each(const std::function<void(Strategy&)>& work) const {
    Each(fleet_, work);
  }

  int all() const { return GetParam().all(); }
  float n() const { return static_cast<float>(all()); }
  bool one() const { return all() == 1; }

  static Value Number(float number) { return Value::Scalar(number); }
  static Value Int(int number);
  static Value Row(const std::vector<float>& numbers) {
    return Value::Of(ElementType::kFloat32,
                     {static_cast<int64_t>(numbers.size())}, numbers);
  }
  // make(global number) for each replica of the worker.
  static PerReplica<Value> Values(Strategy& strategy,
                                  const std::function<Value(int id)>& make);
  static VariableOptions Named(const std::string& name, Value initial,
                               Synchronization synchronization = {},
                               Aggregation aggregation = {});
  static std::vector<float> CopiesOf(Strategy& strategy,
                                     const Variable& variable);

  const Fleet fleet_;
};

// The numbers of the pieces of a step.
std::vector<std::vector<int64_t>> NumbersOf(const PerReplica<Element>& step);

}  // namespace lockstep::strategy

#endif  // LOCKSTEP_TESTS_CONFORMANCE_STRATEGY_FLEET_H_
