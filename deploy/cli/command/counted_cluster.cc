#include "deploy/cli/command/counted_cluster.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {

namespace {

absl::Status CheckWorkers(const TaskCounts& counts) {
  if (counts.workers < 1) {
    return absl::InvalidArgumentError(
        "there are no workers; give --workers N, or --cluster FILE, or a job "
        "with strategy.kind=MIRRORED, which has one");
  }
  if (counts.backups >= 0 && counts.backups < counts.workers) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--backups is ", counts.backups, ", but must be below ",
                   "--workers, which is ", counts.workers));
}

}  // namespace

absl::StatusOr<std::string> CountedClusterJson(const TaskCounts& counts) {
  LOCKSTEP_RETURN_IF_ERROR(CheckWorkers(counts));
  if (counts.ps < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--ps is ", counts.ps, ", but at least 1 server holds the variables"));
  }
  const auto addresses = [](int count) {
    return std::vector<std::string>(static_cast<size_t>(count), "127.0.0.1:0");
  };
  nlohmann::json cluster = {{"chief", addresses(1)},
                            {"ps", addresses(counts.ps)},
                            {"worker", addresses(counts.workers)}};
  if (counts.evaluator) cluster["evaluator"] = addresses(1);
  return nlohmann::json({{"cluster", cluster}}).dump();
}

absl::StatusOr<std::vector<std::string>> WithBackups(
    const TaskCounts& counts, std::vector<std::string> settings) {
  if (counts.backups == 0) return settings;
  // Other numbers make no settings that a message could be about.
  LOCKSTEP_RETURN_IF_ERROR(CheckWorkers(counts));
  // The fields by which a job leaves late workers out of its steps.
  const std::pair<absl::string_view, int> implied[] = {
      {"replicas_to_aggregate", counts.workers - counts.backups},
      {"total_num_replicas", counts.workers}};
  for (const auto& [field, value] : implied) {
    const std::string key = absl::StrCat(field, "=");
    for (const std::string& setting : settings) {
      if (!absl::StartsWith(setting, key)) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "--set ", setting, " contradicts --backups ", counts.backups,
          ", which sets it to ", value, "; give one of the two"));
    }
  }
  for (const auto& [field, value] : implied) {
    settings.push_back(absl::StrCat(field, "=", value));
  }
  return settings;
}

}  // namespace lockstep::cli
