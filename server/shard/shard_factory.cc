#include "server/shard/shard_factory.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "server/shard/parts/job_rules.h"

namespace lockstep::server {
namespace {

// True if both jobs have the same kinds of optimizers and averages.
bool SameOptimizers(const JobConfig& a, const JobConfig& b) {
  if (a.variable_optimizers.size() != b.variable_optimizers.size()) {
    return false;
  }
  const std::vector<OptimizerConfig> rules_a = OptimizersOf(a);
  const std::vector<OptimizerConfig> rules_b = OptimizersOf(b);
  bool same = a.optimizer.kind == b.optimizer.kind &&
              (a.moving_average.decay > 0) == (b.moving_average.decay > 0) &&
              a.moving_average.variables == b.moving_average.variables;
  for (size_t i = 0; i < a.variable_optimizers.size(); ++i) {
    same = same &&
           a.variable_optimizers[i].variables ==
               b.variable_optimizers[i].variables &&
           rules_a[i + 1].kind == rules_b[i + 1].kind;
  }
  return same;
}

// True if the parts are the same, whichever server sums them: in an elastic job
// of mirrors, those that take part sum the parts of the others.
bool SameParts(const std::vector<PartSpec>& a, const std::vector<PartSpec>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](PartSpec x, const PartSpec& y) {
                      x.reducer = y.reducer;
                      return x == y;
                    });
}

// The difference of a shard's job, or of the servers that sum its parts, from
// what the chief wants. Empty: there is none.
std::string Difference(const Shard& shard, const ShardState::Options& wanted) {
  const std::string rules = DifferenceOfRules(shard.job(), wanted.job);
  if (!rules.empty() || shard.parts() == wanted.parts) return rules;
  return "other mirrors sum its parts";
}

absl::Status CheckSameLayout(const Shard& shard,
                             const std::vector<VariableSpec>& variables,
                             const ShardState::Options& wanted) {
  const JobConfig& job = shard.job();
  // In an elastic job the workers may have changed since.
  const bool elastic = job.elastic_workers && wanted.job.elastic_workers;
  const bool same =
      SameParts(shard.parts(), wanted.parts) && variables == wanted.variables &&
      job.mode == wanted.job.mode && job.work == wanted.job.work &&
      job.micro_batches_per_step == wanted.job.micro_batches_per_step &&
      job.strategy.kind == wanted.job.strategy.kind &&
      SameOptimizers(job, wanted.job) &&
      HaveSameTensors(job, wanted.job, variables) &&
      (elastic ||
       (job.replicas_to_aggregate == wanted.job.replicas_to_aggregate &&
        job.total_num_replicas == wanted.job.total_num_replicas));
  if (same) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "ps ", wanted.task_index,
      " has a shard of another layout, mode or number of replicas; give the "
      "chief the job file that the job was started with, or restart all"));
}

// The reason why no step would survive that the shard is opened again; empty:
// all would.
std::string WhyNotReopened(const Shard& shard,
                           const ShardState::Options& wanted) {
  // Never open, or without parts: there is no state to lose.
  if (shard.GetReport().committed_step < 0 || shard.parts().empty()) return "";
  if (shard.job().mode == SyncMode::kCompatible) {
    return "in compatible mode the job would go back to its last checkpoint";
  }
  // Nothing of it outlives the shard.
  if (wanted.state_dir.empty()) return "its state is in its own memory";
  return "";
}

}  // namespace

absl::StatusOr<MadeShard> MakeShard(const ShardState::Options& options,
                                    Keep keep) {
  MadeShard made;
  if (keep == Keep::kState) {
    absl::StatusOr<std::unique_ptr<Shard>> found = Shard::Open(options);
    if (found.ok()) {
      made.shard = *std::move(found);
      // State that was never open has its initial values again. A repeated or
      // delayed call must find it, and not fill it once more.
      made.is_new = made.shard->GetReport().committed_step < 0;
      return made;
    }
    // Unreadable state counts as none, and the chief goes back to a checkpoint.
    // Other errors are transient, such as a file that an older process still
    // holds: state must not be given up for them.
    if (!absl::IsNotFound(found.status()) &&
        !absl::IsDataLoss(found.status())) {
      return found.status();
    }
    // The chief only tells that the state is lost.
    if (absl::IsDataLoss(found.status())) {
      spdlog::warn("state that cannot be read counts as none: {}",
                   std::string(found.status().message()));
    }
  }
  made.is_new = true;
  LOCKSTEP_ASSIGN_OR_RETURN(made.shard, Shard::Create(options));
  return made;
}

absl::Status CheckSameShard(const Shard& shard,
                            const std::vector<VariableSpec>& variables,
                            const ShardState::Options& wanted) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSameLayout(shard, variables, wanted));
  const std::string difference = Difference(shard, wanted);
  if (difference.empty()) return absl::OkStatus();
  const std::string why = WhyNotReopened(shard, wanted);
  if (why.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "ps ", wanted.task_index, " runs with another job file (", difference,
      ") and cannot change while it runs, because ", why,
      "; give the chief the job file that the job was started with, or restart "
      "all servers"));
}

bool IsToOpenAgain(const Shard& shard, const ShardState::Options& wanted) {
  return !Difference(shard, wanted).empty();
}

}  // namespace lockstep::server
