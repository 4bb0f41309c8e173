#include "tests/conformance/simulation/job.h"

#include "common/plan/shares.h"

namespace lockstep::simulation {

Job::Job(const Options& of, World& in)
    : options(of),
      world(in),
      promises(of.parts, {of.limits_mean, of.sparse,
                          of.mirrored ? of.total_num_replicas : 0,
                          of.mode == SyncMode::kCompatible, of.shared}),
      compatible(of.parts, of.replicas_to_aggregate, promises),
      servers(of.parts.size()) {
  if (options.limits_mean) {
    config.clipping = {ClippingConfig::Kind::kMeanGlobalNorm, Promises::kLimit};
  }
  if (options.mirrored) {
    config.strategy.kind = StrategyKind::kMultiWorkerMirrored;
  }
  config.mode = options.mode;
  config.initial_tokens = options.initial_tokens;
  config.replicas_to_aggregate = options.replicas_to_aggregate;
  config.total_num_replicas = options.total_num_replicas;
  config.train_steps = options.steps;
  config.batch_size = 1;
  if (options.shared) {
    config.work = Work::kShared;
    config.micro_batches_per_step = options.replicas_to_aggregate;
    config.batch_size = options.replicas_to_aggregate;
    // Simulation::Regroup() changes it, and no measured time.
    config.micro_batches_per_push = 1;
  }
  config.optimizer.kind = OptimizerConfig::Kind::kMomentum;
  config.optimizer.momentum = 0.5;
  config.learning_rate.base = 1;
  config.stall_timeout = options.stall_timeout;
  config.checkpoint.directory = "checkpoints";
  config.elastic_workers = options.elastic;
  config.max_wait = absl::Minutes(1);
  // A schedule may end for want of input, or of room in a table.
  config.data.epochs = 1;
  config.model.row_limit = 1;
  config.checkpoint.every_steps = options.checkpoint_every;
  for (int part = 0; part < promises.num_parts(); ++part) {
    variables.push_back({absl::StrCat("w", part),
                         {1},
                         DType::kFloat32,
                         {Initializer::Kind::kConstant, 1, 0}});
  }
  plan.variables = variables;
  for (int server = 0; server < num_servers(); ++server) {
    for (int i = 0; i < options.parts[server]; ++i) {
      const int first = promises.FirstPart(server);
      plan.parts.push_back(
          {first + i, 0, 1, server, options.mirrored ? first + i : i});
    }
  }
  plan.mirrored = options.mirrored;
}

int Job::SharesOf(int worker) const {
  if (is_compatible()) return 1;
  return options.shared
             ? options.replicas_to_aggregate
             : lockstep::SharesOf(worker, options.replicas_to_aggregate,
                                  options.total_num_replicas);
}

TaskId Job::TaskAt(int place) const {
  if (place == 0) return {TaskType::kChief, 0};
  if (place <= num_servers()) return {TaskType::kPs, place - 1};
  return {TaskType::kWorker, place - 1 - num_servers()};
}

}  // namespace lockstep::simulation
