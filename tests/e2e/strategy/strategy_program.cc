// A program of a user that trains on the workers that TF_CONFIG names, and goes
// on from its checkpoint after one of them has ended. It prints when it has
// joined, when a step begins and ends, and in the end its values.
//
//   strategy_program CHECKPOINT STEPS MILLISECONDS_PER_STEP [nccl]

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "strategy/trained_by.h"

namespace lockstep::strategy {
namespace {

constexpr int kStepsPerCheckpoint = 10;

// The variable, a line and a walk, and the momentum of its training, after some
// steps.
struct State {
  int64_t step = 0;
  std::vector<float> line = {0, 0, 0};
  std::vector<float> momentum = {0, 0, 0};
};

Value Numbers(const std::vector<float>& numbers) {
  return Value::Of(ElementType::kFloat32,
                   {static_cast<int64_t>(numbers.size())}, numbers);
}

State Load(const std::string& path) {
  State state;
  std::ifstream file(path);
  file >> state.step >> std::hexfloat;
  for (std::vector<float>* row : {&state.line, &state.momentum}) {
    for (float& number : *row) {
      std::string text;
      if (file >> text) number = std::strtof(text.c_str(), nullptr);
    }
  }
  return state;
}

std::string TextOf(const State& state) {
  std::ostringstream text;
  text << state.step << std::hexfloat;
  for (const float number : state.line) text << " " << number;
  for (const float number : state.momentum) text << " " << number;
  return text.str();
}

void Save(const std::string& path, const State& state) {
  std::ofstream(path + ".next") << TextOf(state) << "\n";
  std::filesystem::rename(path + ".next", path);
}

void Say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

// The gradient of the squared error of y = 3 x + 1 at an x of its own for each
// replica and step. The walk's does not depend on its value, so that a step
// that is lost, made twice or summed otherwise shows in each later value.
std::vector<float> GradientAt(int64_t step, int replica,
                              const std::vector<float>& line) {
  const auto x = static_cast<float>((step * 7 + replica * 3) % 11 - 5) / 5;
  const float error = line[0] * x + line[1] - (3 * x + 1);
  const int64_t mixed = (step * 7919 + replica * 104729) % 1000;
  return {2 * error * x, 2 * error, static_cast<float>(mixed) / 999 - 0.5F};
}

// The replicas compute for `pause`.
absl::Status Step(Strategy& strategy, TrainedBy& momentum, const Variable& line,
                  int64_t step, std::chrono::milliseconds pause) {
  return strategy
      .Run([&](Replica& replica) {
        return momentum.Minimize(
            replica,
            [&](Replica&, absl::Span<const Variable>)
                -> absl::StatusOr<LossAndGradients> {
              std::this_thread::sleep_for(pause);
              const auto now = replica.Read(line)->Elements<float>();
              return LossAndGradients{
                  Value::Scalar(0),
                  {Numbers(GradientAt(step, replica.id(), now))}};
            });
      })
      .status();
}

// One life of the group: from its newest checkpoint to the end, or to an error.
absl::StatusOr<State> Train(const std::string& path, int64_t steps,
                            std::chrono::milliseconds pause,
                            const WorkersOptions& workers) {
  StrategyOptions options;
  options.kind = Kind::kMultiWorkerMirrored;
  options.replicas = 2;
  absl::StatusOr<std::unique_ptr<Strategy>> made =
      Strategy::Join(options, workers);
  if (!made.ok()) return made.status();
  Strategy& strategy = **made;
  // Worker 0 does not write before all have come to the first call.
  State state = Load(path);
  absl::StatusOr<Variable> line = strategy.Create("line", Numbers(state.line));
  if (!line.ok()) return line.status();
  TrainedByOptions how;
  how.optimizer = OptimizerOf(OptimizerConfig::Kind::kMomentum);
  how.learning_rate = 0.01;
  auto momentum = TrainedBy::Make(strategy, how, {*line});
  if (!momentum.ok()) return momentum.status();
  const auto slot = [&] { return (*momentum)->Slot(*line, "momentum"); };
  absl::Status done = (*momentum)->MakeState();
  if (!done.ok()) return done;
  done = strategy.Assign(*slot(), Mirrored<Value>(Numbers(state.momentum)));
  if (!done.ok()) return done;
  Say("joined at step " + std::to_string(state.step));
  while (state.step < steps) {
    Say("step " + std::to_string(state.step) + " begins");
    done = Step(strategy, **momentum, *line, state.step, pause);
    if (!done.ok()) return done;
    ++state.step;
    Say("at step " + std::to_string(state.step));
    if (state.step % kStepsPerCheckpoint != 0 && state.step != steps) continue;
    absl::StatusOr<Value> values = strategy.Read(*line);
    absl::StatusOr<Value> moments = strategy.Read(*slot());
    if (!values.ok() || !moments.ok()) {
      return values.ok() ? moments.status() : values.status();
    }
    state.line = values->Elements<float>();
    state.momentum = moments->Elements<float>();
    if (strategy.should_checkpoint()) Save(path, state);
  }
  // No worker ends before all have come here: the values travel to all.
  done = strategy.Reduce(ReduceOp::kMean, Value::Scalar(0)).status();
  if (!done.ok()) return done;
  return state;
}

// Lives of the group until one of them comes to the end. Returns the exit code.
int TrainOn(const std::string& path, int64_t steps,
            std::chrono::milliseconds pause, const WorkersOptions& workers) {
  // The others have ended: they would not join.
  if (const State last = Load(path); last.step == steps) {
    Say("done: " + TextOf(last));
    return 0;
  }
  while (true) {
    const absl::StatusOr<State> end = Train(path, steps, pause, workers);
    if (end.ok()) {
      Say("done: " + TextOf(*end));
      return 0;
    }
    Say(end.status().ToString());
    // The others are there, or come back: join them again.
    if (!absl::IsAborted(end.status()) && !absl::IsUnavailable(end.status())) {
      return 1;
    }
  }
}

}  // namespace
}  // namespace lockstep::strategy

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  lockstep::strategy::WorkersOptions workers;
  if (argc == 5) {
    workers.implementation = lockstep::strategy::Implementation::kNccl;
  }
  return lockstep::strategy::TrainOn(
      argv[1], std::atoll(argv[2]),
      std::chrono::milliseconds(std::atoi(argv[3])), workers);
}
