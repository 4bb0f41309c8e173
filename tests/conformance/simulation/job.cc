#include "tests/conformance/simulation/job.h"

namespace lockstep::simulation {

Job::Job(const Options& of, World& in)
    : options(of),
      world(in),
      promises(of.parts, of.limits_mean, of.sparse),
      servers(of.parts.size()) {
  if (options.limits_mean) {
    config.clipping = {ClippingConfig::Kind::kMeanGlobalNorm, Promises::kLimit};
  }
  config.replicas_to_aggregate = options.replicas_to_aggregate;
  config.total_num_replicas = options.total_num_replicas;
  config.train_steps = options.steps;
  config.batch_size = 1;
  config.optimizer.kind = OptimizerConfig::Kind::kMomentum;
  config.optimizer.momentum = 0.5;
  config.learning_rate.base = 1;
  config.stall_timeout = options.stall_timeout;
  config.checkpoint.directory = "checkpoints";
  config.elastic_workers = options.elastic;
  config.max_wait = absl::Minutes(1);
  config.checkpoint.every_steps = options.checkpoint_every;
  variables = {{"w",
                {promises.num_parts()},
                DType::kFloat32,
                {Initializer::Kind::kConstant, 1, 0}}};
  plan.variables = variables;
  for (int server = 0; server < num_servers(); ++server) {
    for (int i = 0; i < options.parts[server]; ++i) {
      plan.parts.push_back({0, promises.FirstPart(server) + i, 1, server, i});
    }
  }
}

TaskId Job::TaskAt(int place) const {
  if (place == 0) return {TaskType::kChief, 0};
  if (place <= num_servers()) return {TaskType::kPs, place - 1};
  return {TaskType::kWorker, place - 1 - num_servers()};
}

}  // namespace lockstep::simulation
