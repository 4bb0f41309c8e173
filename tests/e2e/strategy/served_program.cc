// A program of a user that trains the same line with a strategy of one process
// or as a worker of a job with servers, whose workers form a group or not:
//
//   served_program mirrored|servers|grouped REPLICAS STEPS
//                  MILLISECONDS_PER_STEP
//
// Before its last step it prints the values of the line, and after it the mean
// loss of that step over the strategy's replicas. Exits with 129, for a
// restart, if another worker of the group has ended.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "strategy/trained_by.h"

namespace lockstep::strategy {
namespace {

Value Numbers(const std::vector<float>& numbers) {
  return Value::Of(ElementType::kFloat32,
                   {static_cast<int64_t>(numbers.size())}, numbers);
}

// The loss and gradient of the squared error of y = 3 x + 1, at an x of its own
// for each step and replica of the job.
LossAndGradients ErrorAt(int64_t step, int replica,
                         const std::vector<float>& line) {
  const auto x = static_cast<float>((step * 7 + replica * 3) % 11 - 5) / 5;
  const float error = line[0] * x + line[1] - (3 * x + 1);
  return {Value::Scalar(error * error),
          {Numbers({2 * error * x, 2 * error}), std::nullopt}};
}

absl::StatusOr<PerReplica<Value>> Step(Strategy& strategy, TrainedBy& momentum,
                                       const Variable& line, int64_t step,
                                       int first_replica) {
  return strategy.Run([&](Replica& replica) {
    return momentum.Minimize(
        replica,
        [&](Replica&,
            absl::Span<const Variable>) -> absl::StatusOr<LossAndGradients> {
          return ErrorAt(step, first_replica + replica.id(),
                         replica.Read(line)->Elements<float>());
        });
  });
}

struct Arguments {
  Kind kind = Kind::kMirrored;
  bool grouped = false;
  int replicas = 1;
  int64_t steps = 0;
  std::chrono::milliseconds pause{0};
};

absl::Status Train(const Arguments& arguments) {
  StrategyOptions options;
  options.kind = arguments.kind;
  options.replicas = arguments.replicas;
  WorkersOptions workers;
  workers.group_beside_servers = arguments.grouped;
  absl::StatusOr<std::unique_ptr<Strategy>> made =
      Strategy::Join(options, workers);
  if (!made.ok()) return made.status();
  Strategy& strategy = **made;
  absl::StatusOr<Variable> line = strategy.Create("line", Numbers({0.5, 0}));
  absl::StatusOr<Variable> idle = strategy.Create("idle", Numbers({7}));
  if (!line.ok() || !idle.ok()) return line.status();
  TrainedByOptions how;  // of a job with servers: its job file's
  how.optimizer = OptimizerOf(OptimizerConfig::Kind::kMomentum);
  how.learning_rate = 0.01;
  auto momentum = TrainedBy::Make(strategy, how, {*line, *idle});
  if (!momentum.ok()) return momentum.status();
  const ServedVariables* served = (*momentum)->served();
  for (int64_t step = 0; step < arguments.steps; ++step) {
    int first_replica = 0;
    if (served != nullptr) {
      if (!served->pass().has_value()) break;
      step = served->pass()->step;
      // In a group the numbers of replicas are those of all workers.
      if (!arguments.grouped) {
        first_replica = served->pass()->worker * arguments.replicas;
      }
    }
    if (step == arguments.steps - 1) {
      const std::vector<float> now = strategy.Read(*line)->Elements<float>();
      std::printf("the last step has %a %a\n", now[0], now[1]);
      std::fflush(stdout);
    }
    std::this_thread::sleep_for(arguments.pause);
    const auto losses = Step(strategy, **momentum, *line, step, first_replica);
    if (!losses.ok()) return losses.status();
    const auto mean = strategy.Reduce(ReduceOp::kMean, *losses);
    if (!mean.ok()) return mean.status();
    if (step == arguments.steps - 1) {
      std::printf("the mean loss is %a\n", mean->Elements<float>()[0]);
      std::fflush(stdout);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep::strategy

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  lockstep::strategy::Arguments arguments;
  arguments.grouped = argv[1] == std::string("grouped");
  if (arguments.grouped || argv[1] == std::string("servers")) {
    arguments.kind = lockstep::strategy::Kind::kParameterServer;
  }
  arguments.replicas = std::atoi(argv[2]);
  arguments.steps = std::atoll(argv[3]);
  arguments.pause = std::chrono::milliseconds(std::atoi(argv[4]));
  const absl::Status end = lockstep::strategy::Train(arguments);
  if (end.ok()) return 0;
  std::fprintf(stderr, "%s\n", end.ToString().c_str());
  return absl::IsAborted(end) || absl::IsUnavailable(end) ? 129 : 1;
}
