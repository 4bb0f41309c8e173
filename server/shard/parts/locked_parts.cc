#include "server/shard/parts/locked_parts.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::server {

LockedParts::LockedParts(const JobConfig& of_job,
                         std::vector<VariableSpec> of_model,
                         std::vector<PartSpec> of_server,
                         std::vector<VariableSettings> of_variables,
                         std::shared_ptr<VariableStore> of_parts)
    : job(of_job),
      variables(std::move(of_model)),
      parts(std::move(of_server)),
      settings(std::move(of_variables)),
      optimizers(OptimizersOf(job, variables)),
      slots(SlotsByVariable(optimizers, settings)),
      part_mutexes(std::make_unique<Mutex[]>(parts.size())),
      store(std::move(of_parts)) {}

absl::Status LockedParts::Check(int part) const {
  if (part >= 0 && part < num_parts()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "no part ", part, "; this server has ", num_parts(), " parts"));
}

std::string LockedParts::Name(int part) const {
  return absl::StrCat("part ", part, " (\"",
                      variables[parts[part].variable].name, "\")");
}

}  // namespace lockstep::server
