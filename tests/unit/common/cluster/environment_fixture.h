#ifndef LOCKSTEP_TESTS_UNIT_COMMON_CLUSTER_ENVIRONMENT_FIXTURE_H_
#define LOCKSTEP_TESTS_UNIT_COMMON_CLUSTER_ENVIRONMENT_FIXTURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/cluster.h"
#include "common/cluster/cluster_environment.h"

namespace lockstep::testing {

// Returns the cluster of a task with this environment.
inline absl::StatusOr<Cluster> ReadCluster(const Environment& variables) {
  absl::StatusOr<TfConfig> config = TfConfigOfEnvironment(variables);
  if (!config.ok()) return config.status();
  return Cluster::Make(*config);
}

// Returns a document with two workers and a ps, and with `rest`.
inline std::string Doc(const std::string& rest) {
  return absl::StrCat(R"({"cluster":{"worker":["w:1","w:2"],"ps":["p:1"]},)",
                      rest, "}");
}

}  // namespace lockstep::testing

#endif  // LOCKSTEP_TESTS_UNIT_COMMON_CLUSTER_ENVIRONMENT_FIXTURE_H_
