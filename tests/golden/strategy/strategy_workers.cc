#include "tests/golden/strategy/strategy_workers.h"

#include <exception>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/collective/local_group.h"

namespace lockstep::golden {
namespace {

using strategy::Aggregation;
using strategy::Kind;
using strategy::Strategy;
using strategy::Synchronization;

Kind KindOf(const std::string& name) {
  if (name == "Default") return Kind::kDefault;
  if (name == "OneDevice") return Kind::kOneDevice;
  if (name == "Mirrored") return Kind::kMirrored;
  if (name == "CentralStorage") return Kind::kCentral;
  if (name == "MultiWorkerMirrored") return Kind::kMultiWorkerMirrored;
  throw BadTrace(absl::StrCat("unknown strategy \"", name, "\""));
}

Synchronization SynchronizationOf(const std::string& name) {
  if (name == "AUTO") return Synchronization::kAuto;
  if (name == "NONE") return Synchronization::kNone;
  if (name == "ON_WRITE") return Synchronization::kOnWrite;
  if (name == "ON_READ") return Synchronization::kOnRead;
  throw BadTrace(absl::StrCat("unknown synchronization \"", name, "\""));
}

Aggregation AggregationOf(const std::string& name) {
  if (name == "NONE") return Aggregation::kNone;
  if (name == "SUM") return Aggregation::kSum;
  if (name == "MEAN") return Aggregation::kMean;
  if (name == "ONLY_FIRST_REPLICA") return Aggregation::kOnlyFirstReplica;
  throw BadTrace(absl::StrCat("unknown aggregation \"", name, "\""));
}

constexpr int kMostReplicas = 64;

int CountOf(const Json& number) {
  const int64_t count = ReadInt(number);
  if (count < 1 || count > kMostReplicas) {
    throw BadTrace("a number of workers or replicas is out of range");
  }
  return static_cast<int>(count);
}

}  // namespace

const strategy::Variable& StrategyWorker::VariableOf(const Json& name) const {
  const auto found = variables.find(name.get<std::string>());
  if (found == variables.end()) throw BadTrace("there is no such variable");
  return found->second;
}

strategy::PerReplica<Node> StrategyWorker::Nodes(const Json& in) const {
  std::vector<Node> nodes;
  for (int r = 0; r < strategy->local_replicas(); ++r) {
    nodes.push_back(ReadNode(in, SeatOf(r)));
  }
  return {std::move(nodes), strategy->first_replica()};
}

StrategyWorkers::StrategyWorkers(const Json& scenario) {
  const Json& recorded = scenario.at("strategy");
  strategy::StrategyOptions options;
  options.kind = KindOf(recorded.at("kind").get<std::string>());
  options.replicas = CountOf(recorded.at("replicas_per_worker"));
  options.order = SumOrder::kRing;
  const int count = CountOf(recorded.at("workers"));
  auto group = MakeLocalGroup(count, absl::Minutes(1));
  for (int w = 0; w < count; ++w) {
    StrategyWorker& worker = workers_.emplace_back();
    worker.index = w;
    if (options.kind == Kind::kDefault) {
      worker.strategy = &Strategy::Default();
      continue;
    }
    auto made =
        options.kind == Kind::kMultiWorkerMirrored
            ? Strategy::Make(options, std::move(group[static_cast<size_t>(w)]))
            : Strategy::Make(options);
    if (!made.ok()) throw BadTrace(std::string(made.status().message()));
    worker.owned = *std::move(made);
    worker.strategy = worker.owned.get();
  }
}

std::vector<absl::StatusOr<Results>> StrategyWorkers::All(
    const std::function<absl::StatusOr<Results>(StrategyWorker&)>& operation) {
  std::vector<absl::StatusOr<Results>> answers(workers_.size());
  std::vector<std::exception_ptr> thrown(workers_.size());
  const auto run = [&](size_t w) {
    try {
      answers[w] = operation(workers_[w]);
    } catch (...) {
      thrown[w] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (size_t w = 1; w < workers_.size(); ++w) threads.emplace_back(run, w);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& each : thrown) {
    if (each != nullptr) std::rethrow_exception(each);
  }
  return answers;
}

strategy::VariableOptions ReadOptions(const Json& variable,
                                      const StrategyWorker& worker) {
  strategy::VariableOptions options;
  options.name = variable.at("name").get<std::string>();
  const Node initial = ReadNode(variable.at("initial"), worker.SeatOf(0));
  options.initializer = strategy::Starting(std::get<Value>(initial.leaf));
  options.synchronization =
      SynchronizationOf(variable.value("synchronization", "AUTO"));
  options.aggregation = AggregationOf(variable.value("aggregation", "NONE"));
  const Json trainable = variable.value("trainable", Json());
  if (!trainable.is_null()) options.trainable = trainable.get<bool>();
  if (variable.contains("colocate_with")) {
    options.colocate_with = worker.VariableOf(variable.at("colocate_with"));
  }
  return options;
}

absl::Status StrategyWorkers::Create(const Json& variable) {
  const auto answers =
      All([&](StrategyWorker& worker) -> absl::StatusOr<Results> {
        auto made = worker.strategy->Create(ReadOptions(variable, worker));
        if (!made.ok()) return made.status();
        worker.variables.insert_or_assign(
            variable.at("name").get<std::string>(), *std::move(made));
        return Results{};
      });
  for (const auto& answer : answers) {
    if (!answer.ok()) return answer.status();
  }
  return absl::OkStatus();
}

void StrategyWorkers::Compare(
    const Json& op, const std::vector<absl::StatusOr<Results>>& answers,
    Report& report) const {
  const Json& status = op.at("status");
  const std::string expected =
      (status.is_array() ? status.at(0) : status).get<std::string>();
  for (size_t w = 0; w < answers.size(); ++w) {
    if (status.is_array() && w > 0) break;  // depends on failure detection
    const std::string got = StatusName(answers[w].status());
    if (expected != got) {
      report.Add(
          absl::StrCat("status of worker ", w), expected,
          absl::StrCat(got, " ", std::string(answers[w].status().message())));
      continue;
    }
    if (expected != "OK" || !op.contains("result")) continue;
    const Json& recorded = OfWorker(op.at("result"), static_cast<int>(w));
    const Results& results = *answers[w];
    if (results.size() < CountParts(recorded)) {
      report.Add(absl::StrCat("parts of the result of worker ", w),
                 absl::StrCat(CountParts(recorded)),
                 absl::StrCat(results.size()));
      continue;
    }
    for (size_t i = 0; i < results.size(); ++i) {
      report.Expect(absl::StrCat("result of worker ", w, ", part ", i),
                    CanonicalPart(recorded, i).dump(), results[i].dump());
    }
  }
}

void StrategyWorkers::CompareCopies(const Json& numbers,
                                    const std::string& name, bool equal,
                                    const StrategyWorker& worker,
                                    Report& report) const {
  const strategy::Variable& variable = worker.VariableOf(name);
  const auto copies = worker.strategy->LocalCopies(variable);
  if (!copies.ok()) throw BadTrace(std::string(copies.status().message()));
  if (!equal && numbers.size() != copies->size()) {
    report.Add(absl::StrCat("copies of ", name), absl::StrCat(numbers.size()),
               absl::StrCat(copies->size()));
    return;
  }
  for (size_t i = 0; i < copies->size(); ++i) {
    const Json& recorded = equal ? numbers : numbers.at(i);
    report.Expect(
        absl::StrCat("copy ", i, " of ", name, " of worker ", worker.index),
        CanonicalNumbers(recorded, copies->At(i)).dump(),
        Canonical(Leaf(copies->At(i))).dump());
  }
}

void StrategyWorkers::CompareState(const Json& state, Report& report) const {
  for (const StrategyWorker& worker : workers_) {
    const bool equal = state.is_object() && state.contains("all_copies");
    const Json& mine =
        equal ? state.at("all_copies") : OfWorker(state, worker.index);
    for (const auto& [name, numbers] : mine.items()) {
      CompareCopies(numbers, name, equal, worker, report);
    }
  }
}

void StrategyWorkers::TakeState(const Json& state) {
  for (const StrategyWorker& worker : workers_) {
    const bool equal = state.contains("all_copies");
    const Json& mine =
        equal ? state.at("all_copies") : OfWorker(state, worker.index);
    for (const auto& item : mine.items()) {
      const Json& numbers = item.value();
      const strategy::Variable& variable = worker.VariableOf(item.key());
      const absl::Status taken =
          worker.strategy->Across([&](strategy::Cross& cross) {
            return cross.Update(variable, [&](strategy::Copy& copy) {
              const Json tensor = {
                  {"dtype", std::string(NameOf(variable.type()))},
                  {"shape", variable.shape()},
                  {"data", equal ? numbers : numbers.at(copy.index())}};
              return copy.Assign(ReadValue(tensor));
            });
          });
      if (!taken.ok()) throw BadTrace(std::string(taken.message()));
    }
  }
}

ReduceOp OpOf(const Json& op) {
  const auto parsed = ParseReduceOp(op.at("reduce_op").get<std::string>());
  if (!parsed.ok()) throw BadTrace(std::string(parsed.status().message()));
  return *parsed;
}

}  // namespace lockstep::golden
