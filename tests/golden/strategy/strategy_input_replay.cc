#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/golden/replay.h"
#include "tests/golden/strategy/strategy_workers.h"

namespace lockstep::golden {
namespace {

using strategy::AutoShardPolicy;
using strategy::Dataset;
using strategy::DistributedDataset;
using strategy::Element;
using strategy::InputContext;
using strategy::InputOptions;
using strategy::PerReplica;

constexpr int64_t kMostSteps = 1000;  // of an epoch

AutoShardPolicy PolicyOf(const std::string& name) {
  if (name == "AUTO") return AutoShardPolicy::kAuto;
  if (name == "FILE") return AutoShardPolicy::kFile;
  if (name == "DATA") return AutoShardPolicy::kData;
  if (name == "OFF") return AutoShardPolicy::kOff;
  throw BadTrace(absl::StrCat("unknown policy \"", name, "\""));
}

Value Number(int64_t number) {
  return Value::Of<int64_t>(ElementType::kInt64, {}, {number});
}

int64_t SmallInt(const Json& number) {
  const int64_t value = ReadInt(number);
  if (value < 0 || value > 1 << 20) throw BadTrace("a number is out of range");
  return value;
}

Dataset SourceOf(const Json& source, const InputContext& context) {
  if (source.contains("range")) {
    const Json& range = source.at("range");
    const auto id = static_cast<size_t>(context.input_pipeline_id);
    return Dataset::Range(SmallInt(range.is_array() ? range.at(id) : range));
  }
  if (source.contains("slices")) {
    return Dataset::Range(SmallInt(source.at("slices")));
  }
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> files;
  for (const Json& file : source.at("files")) {
    names.push_back(absl::StrCat(files.size()));
    files.push_back(ReadInts(file));
  }
  const int64_t cycle = SmallInt(source.value("interleave", Json(1)));
  return Dataset::FromFiles(
      names,
      [files](const std::string& name) -> strategy::StreamOr {
        const std::vector<int64_t> numbers = files.at(std::stoul(name));
        return strategy::CountedStream(
            static_cast<int64_t>(numbers.size()),
            [numbers](int64_t i) -> absl::StatusOr<Element> {
              return Element{Number(numbers[static_cast<size_t>(i)])};
            });
      },
      static_cast<int>(cycle), Element{Number(0)});
}

// Adds a number to every element.
Dataset Adding(const Dataset& dataset, int64_t number) {
  return dataset.Map([number](Element element) -> absl::StatusOr<Element> {
    std::vector<int64_t> numbers = element.at(0).Elements<int64_t>();
    for (int64_t& each : numbers) each += number;
    return Element{Value::Of(ElementType::kInt64, element[0].shape(), numbers)};
  });
}

absl::StatusOr<Dataset> AddStep(const Dataset& dataset, const Json& step,
                                const InputContext& context) {
  const std::string name = step.at(0);
  const auto number = [&] { return SmallInt(step.at(1)); };
  if (name == "batch") {
    return dataset.Batch(number(), step.at(2).get<bool>());
  }
  if (name == "batch_per_replica") {
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t size,
                              context.PerReplicaBatchSize(number()));
    return dataset.Batch(size, step.at(2).get<bool>());
  }
  if (name == "repeat") {
    if (step.at(1).is_null()) return dataset.Repeat();
    return dataset.Repeat(number());
  }
  if (name == "shard") {
    return dataset.Shard(context.num_input_pipelines,
                         context.input_pipeline_id);
  }
  if (name == "add") return Adding(dataset, number());
  if (name == "id_times") {
    return Adding(dataset, number() * context.input_pipeline_id);
  }
  if (name == "take") return dataset.Take(number());
  if (name == "skip") return dataset.Skip(number());
  if (name == "prefetch") return dataset.Prefetch(number());
  if (name == "filter_even") {
    return dataset.Filter([](const Element& element) -> absl::StatusOr<bool> {
      return element.at(0).Elements<int64_t>().at(0) % 2 == 0;
    });
  }
  if (name == "unknown_batch") {
    return dataset.MapBatches(
        [](Element element) -> absl::StatusOr<Element> { return element; });
  }
  throw BadTrace(absl::StrCat("unknown step \"", name, "\""));
}

absl::StatusOr<Dataset> DatasetOf(const Json& recorded,
                                  const InputContext& context) {
  Dataset dataset = SourceOf(recorded.at("source"), context);
  for (const Json& step : recorded.at("steps")) {
    LOCKSTEP_ASSIGN_OR_RETURN(dataset, AddStep(dataset, step, context));
  }
  return dataset;
}

// Reads to the end, or `limit` steps.
absl::StatusOr<Json> Epoch(const Json& op, DistributedDataset& data) {
  const bool optional = op.at("by") == "optional";
  const int64_t limit = op.contains("limit") ? SmallInt(op.at("limit")) : -1;
  Json steps = Json::array();
  while (static_cast<int64_t>(steps.size()) != limit) {
    if (steps.size() > kMostSteps) throw BadTrace("a data set does not end");
    std::optional<PerReplica<Element>> step;
    if (optional) {
      LOCKSTEP_ASSIGN_OR_RETURN(step, data.NextIfAny());
    } else {
      absl::StatusOr<PerReplica<Element>> next = data.Next();
      if (next.ok()) {
        step = *std::move(next);
      } else if (!absl::IsOutOfRange(next.status())) {
        return next.status();
      }
    }
    if (!step.has_value()) {
      return Json{{"steps", steps},
                  {"end", optional ? "NO_VALUE" : "OUT_OF_RANGE"}};
    }
    Json pieces = Json::array();
    for (const Element& piece : step->local()) {
      pieces.push_back(Canonical(Leaf(piece.at(0))));
    }
    steps.push_back(std::move(pieces));
  }
  return Json{{"steps", steps}, {"end", nullptr}};
}

absl::StatusOr<DistributedDataset> Distributed(const Json& op,
                                               StrategyWorker& worker,
                                               Json& contexts) {
  InputOptions options;
  const Json& recorded = op.at("dataset");
  options.auto_shard =
      PolicyOf(recorded.value("policy", Json("AUTO")).get<std::string>());
  if (op.value("replication", "") == "PER_REPLICA") {
    options.replication = strategy::Replication::kPerReplica;
  }
  if (op.at("op") == "distribute_dataset") {
    LOCKSTEP_ASSIGN_OR_RETURN(const Dataset dataset, DatasetOf(recorded, {}));
    return worker.strategy->Distribute(dataset, options);
  }
  return worker.strategy->DistributeFrom(
      [&](const InputContext& context) {
        contexts.push_back(
            {{"num_input_pipelines", context.num_input_pipelines},
             {"input_pipeline_id", context.input_pipeline_id},
             {"num_replicas_in_sync", context.num_replicas_in_sync}});
        return DatasetOf(recorded, context);
      },
      options);
}

absl::StatusOr<Results> Read(const Json& op, StrategyWorker& worker) {
  Json contexts = Json::array();
  LOCKSTEP_ASSIGN_OR_RETURN(DistributedDataset data,
                            Distributed(op, worker, contexts));
  Json result = Json::object();
  if (op.at("op") == "distribute_from_function") result["contexts"] = contexts;
  result["epochs"] = Json::array();
  const int64_t epochs = SmallInt(op.value("epochs", Json(1)));
  for (int64_t e = 0; e < epochs; ++e) {
    if (e > 0) data.Restart();
    LOCKSTEP_ASSIGN_OR_RETURN(Json epoch, Epoch(op, data));
    result["epochs"].push_back(std::move(epoch));
  }
  return Results{result};
}

absl::StatusOr<Results> BatchSize(const Json& op, StrategyWorker&) {
  InputContext context;
  context.num_replicas_in_sync = static_cast<int>(SmallInt(op.at("replicas")));
  if (context.num_replicas_in_sync < 1) throw BadTrace("there is no replica");
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int64_t size,
      context.PerReplicaBatchSize(SmallInt(op.at("global_batch"))));
  return Results{size};
}

}  // namespace

void ReplayStrategyInput(const Json& scenario, Report& report) {
  StrategyWorkers workers(scenario);
  const Json& ops = scenario.at("ops");
  for (size_t i = 0; i < ops.size(); ++i) {
    const Json& op = ops[i];
    const std::string name = op.at("op");
    report.Begin(i, name);
    if (op.contains("replication") &&
        workers.workers()[0].strategy->kind() == strategy::Kind::kCentral) {
      report.LeaveOut("TensorFlow's status is an accident");
      continue;
    }
    workers.Compare(op, workers.All([&](StrategyWorker& worker) {
      return name == "per_replica_batch_size" ? BatchSize(op, worker)
                                              : Read(op, worker);
    }),
                    report);
  }
}

}  // namespace lockstep::golden
