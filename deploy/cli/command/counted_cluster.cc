#include "deploy/cli/command/counted_cluster.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace lockstep::cli {

absl::StatusOr<std::string> CountedClusterJson(const TaskCounts& counts) {
  if (counts.workers < 1) {
    return absl::InvalidArgumentError(
        "there are no workers; give --workers N, or --cluster FILE, or a job "
        "with strategy.kind=MIRRORED, which has one");
  }
  if (counts.ps < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--ps is ", counts.ps, ", but at least 1 server holds the variables"));
  }
  if (counts.backups < 0 || counts.backups >= counts.workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("--backups is ", counts.backups, ", but must be below ",
                     "--workers, which is ", counts.workers));
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

std::vector<std::string> SettingsForBackups(const TaskCounts& counts) {
  if (counts.backups == 0) return {};
  return {
      absl::StrCat("replicas_to_aggregate=", counts.workers - counts.backups),
      absl::StrCat("total_num_replicas=", counts.workers)};
}

}  // namespace lockstep::cli
