#ifndef LOCKSTEP_TESTS_UNIT_COMMON_CLUSTER_CLUSTER_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_COMMON_CLUSTER_CLUSTER_FIXTURE_H_

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/cluster/cluster.h"

namespace lockstep::testing {

inline constexpr TaskId kChief0 = {TaskType::kChief, 0};
inline constexpr TaskId kWorker0 = {TaskType::kWorker, 0};
inline constexpr TaskId kWorker1 = {TaskType::kWorker, 1};
inline constexpr TaskId kPs0 = {TaskType::kPs, 0};
inline constexpr TaskId kEvaluator0 = {TaskType::kEvaluator, 0};

inline constexpr char kFull[] =
    R"({"chief": ["c:1"], "worker": ["w:1", "w:2"], "ps": ["p:1", "p:2"]})";
inline constexpr char kNoChief[] =
    R"({"worker": ["w:1", "w:2"], "ps": ["p:1"]})";

inline absl::StatusOr<Cluster> Make(absl::string_view json,
                                    const ClusterOptions& options = {}) {
  absl::StatusOr<TfConfig> config = ParseTfConfig(json, "TF_CONFIG");
  if (!config.ok()) return config.status();
  return Cluster::Make(*config, options);
}

// The configuration of the task `self`, with this cluster.
inline absl::StatusOr<Cluster> Make(absl::string_view cluster, TaskId self,
                                    const ClusterOptions& options = {}) {
  return Make(absl::StrCat(
                  "{\"cluster\": ", cluster, ", \"task\": {\"type\": ", "\"",
                  TaskTypeName(self.type), "\", \"index\": ", self.index, "}}"),
              options);
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_COMMON_CLUSTER_CLUSTER_FIXTURE_H_
