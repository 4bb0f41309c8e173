#include "tests/conformance/strategy/fleet.h"

#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/collective/local_group.h"

namespace lockstep::strategy {

std::string NameOf(const Shape& shape) {
  const char* kind = shape.kind == Kind::kOneDevice  ? "OneDevice"
                     : shape.kind == Kind::kMirrored ? "Mirrored"
                     : shape.kind == Kind::kParameterServer
                         ? "ParameterServer"
                         : "MultiWorkerMirrored";
  return absl::StrCat(kind, "_", shape.workers, "x", shape.replicas,
                      shape.apart ? "_apart" : "");
}

std::vector<Shape> AllShapes() {
  return {{Kind::kOneDevice, 1, 1},
          {Kind::kMirrored, 1, 2},
          {Kind::kMirrored, 1, 4},
          {Kind::kMultiWorkerMirrored, 2, 1},
          {Kind::kMultiWorkerMirrored, 2, 2},
          {Kind::kMultiWorkerMirrored, 3, 1},
          {Kind::kMultiWorkerMirrored, 3, 2},
          {Kind::kParameterServer, 1, 2},
          {Kind::kParameterServer, 2, 1},
          {Kind::kParameterServer, 2, 2}};
}

CaseTest::Fleet CaseTest::Make(const Shape& shape, absl::Duration timeout,
                               SumOrder order) {
  auto group = MakeLocalGroup(shape.workers, timeout);
  Fleet fleet;
  for (auto& member : group) {
    const StrategyOptions options{shape.kind, shape.replicas, {}, order};
    const bool joins = shape.kind == Kind::kMultiWorkerMirrored ||
                       (shape.workers > 1 && !shape.apart);
    fleet.push_back((joins ? Strategy::Make(options, std::move(member))
                           : Strategy::Make(options))
                        .value());
  }
  return fleet;
}

Value CaseTest::Int(int number) {
  return Value::Of<int32_t>(ElementType::kInt32, {}, {number});
}

void CaseTest::Each(const Fleet& fleet,
                    const std::function<void(Strategy&)>& work) {
  std::vector<std::thread> threads;
  for (const auto& strategy : fleet) {
    threads.emplace_back([&] { work(*strategy); });
  }
  for (std::thread& thread : threads) thread.join();
}

PerReplica<Value> CaseTest::Values(Strategy& strategy,
                                   const std::function<Value(int id)>& make) {
  std::vector<Value> local;
  for (int r = 0; r < strategy.local_replicas(); ++r) {
    local.push_back(make(strategy.first_replica() + r));
  }
  return {std::move(local), strategy.first_replica()};
}

VariableOptions CaseTest::Named(const std::string& name, Value initial,
                                Synchronization synchronization,
                                Aggregation aggregation) {
  VariableOptions options;
  options.name = name;
  options.initializer = Starting(std::move(initial));
  options.synchronization = synchronization;
  options.aggregation = aggregation;
  return options;
}

std::vector<float> CaseTest::CopiesOf(Strategy& strategy,
                                      const Variable& variable) {
  const auto copies = strategy.LocalCopies(variable).value();
  std::vector<float> numbers;
  for (size_t i = 0; i < copies.size(); ++i) {
    numbers.push_back(copies.At(i).Elements<float>()[0]);
  }
  return numbers;
}

std::vector<std::vector<int64_t>> NumbersOf(const PerReplica<Element>& step) {
  std::vector<std::vector<int64_t>> numbers;
  for (const Element& piece : step.local()) {
    numbers.push_back(piece[0].Elements<int64_t>());
  }
  return numbers;
}

}  // namespace lockstep::strategy
