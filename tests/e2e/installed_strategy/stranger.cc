// A program written against the installed library: counts on two workers of two
// replicas each, which are threads, and trains a line on two replicas.

#include <cstdio>
#include <thread>
#include <vector>

#include "common/collective/local_group.h"
#include "strategy/trained_by.h"

using namespace lockstep;
using namespace lockstep::strategy;

namespace {

StrategyOptions TwoReplicasEach() {
  StrategyOptions options;
  options.kind = Kind::kMultiWorkerMirrored;
  options.replicas = 2;
  return options;
}

// The sum of the numbers of four replicas, as one worker has it.
float SumOnAWorker(Strategy& strategy) {
  const auto sums = strategy.Run([](Replica& replica) {
    return replica.AllReduce(ReduceOp::kSum,
                             Value::Scalar(static_cast<float>(replica.id())));
  });
  return sums.ok() ? sums->At(0).Elements<float>()[0] : -1;
}

float TrainedSlope() {
  StrategyOptions options;
  options.replicas = 2;
  auto strategy = Strategy::Make(options).value();
  const Variable slope = strategy->Create("slope", Value::Scalar(0)).value();
  TrainedByOptions how;
  how.optimizer = OptimizerOf(OptimizerConfig::Kind::kAdam);
  how.learning_rate = 0.05;
  auto adam = TrainedBy::Make(*strategy, how, {slope}).value();
  auto data = strategy
                  ->Distribute(Dataset::Counted(
                                   8,
                                   [](int64_t i) -> absl::StatusOr<Element> {
                                     return Element{Value::Scalar(
                                         static_cast<float>(i) - 3)};
                                   })
                                   .Batch(8)
                                   .Repeat(500))
                  .value();
  for (auto batch = data.Next(); batch.ok(); batch = data.Next()) {
    const auto losses = strategy->Run(
        [&](Replica& replica, const Element& mine) {
          return adam->Minimize(
              replica,
              [&](Replica&, absl::Span<const Variable>)
                  -> absl::StatusOr<LossAndGradients> {
                const float w = replica.Read(slope)->Elements<float>()[0];
                float gradient = 0;
                for (const float x : mine[0].Elements<float>()) {
                  gradient += (w - 3) * x * x;
                }
                return LossAndGradients{Value::Scalar(w - 3),
                                        {Value::Scalar(gradient)}};
              });
        },
        *batch);
    if (!losses.ok()) return -1;
  }
  return strategy->Read(slope)->Elements<float>()[0];
}

}  // namespace

// With an argument: a worker of the cluster that TF_CONFIG describes.
int main(int argc, char** /*argv*/) {
  if (argc > 1) {
    auto strategy = Strategy::Join(TwoReplicasEach());
    if (!strategy.ok()) {
      std::printf("%s\n", strategy.status().ToString().c_str());
      return 1;
    }
    std::printf("sum %.0f\n", SumOnAWorker(**strategy));
    return 0;
  }
  auto group = MakeLocalGroup(2, absl::Minutes(1));
  std::vector<float> sums(2);
  const auto sum = [&](size_t worker) {
    auto strategy =
        Strategy::Make(TwoReplicasEach(), std::move(group[worker])).value();
    sums[worker] = SumOnAWorker(*strategy);
  };
  std::thread other([&] { sum(1); });
  sum(0);
  other.join();
  std::printf("sums %.0f %.0f slope %.3f\n", sums[0], sums[1], TrainedSlope());
  return 0;
}
