#ifndef LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_
#define LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/text/mistakes.h"

namespace lockstep {

// TfConfig holds the contents of a TF_CONFIG document, read as TensorFlow's
// TFConfigClusterResolver reads it: types are checked, meaning is not; Cluster
// checks the meaning. Set a field to override the document.
struct TfConfig {
  std::string source = "TF_CONFIG";  // names the document in messages
  ClusterSpec cluster;               // empty: local
  std::string task_type;             // empty: not given
  absl::optional<int> task_index;
  std::string rpc_layer;       // ignored, with a warning unless it is "grpc"
  std::string session_master;  // ignored, with a warning
  std::string environment;     // "cloud", "google" or anything; says nothing
  std::string model_dir;       // empty: not given; else agrees with the job's

  // Keys that no known producer of TF_CONFIG writes, and their JSON.
  std::map<std::string, std::string> unknown_keys;

  // Warnings for people, one sentence each.
  std::vector<std::string> warnings;

  // Only from ReadTfConfig: values of the wrong type, which are left out.
  Mistakes mistakes;
};

// `source` is the origin of `json`, "TF_CONFIG" or a file name, and starts
// every message. Indices may be numbers or text of digits; a document that is a
// JSON string with the document inside is unwrapped; `sparseCluster` is an
// alias of `cluster`. Each of these adds a warning, because it may hide a
// mistake.
//
//   kInvalidArgument  no JSON object, or a value of the wrong type; names the
//                     path in the document, the value and the fix
absl::StatusOr<TfConfig> ParseTfConfig(absl::string_view json,
                                       absl::string_view source);

// As ParseTfConfig, but collects values of the wrong type in `mistakes`, so
// that Cluster::Make can report all other mistakes with them.
//
//   kInvalidArgument  no JSON object
absl::StatusOr<TfConfig> ReadTfConfig(absl::string_view json,
                                      absl::string_view source);

// A TF_CONFIG for one task on one line; ParseTfConfig reads it back. Dense
// jobs are lists, others maps.
std::string ToJson(const ClusterSpec& cluster, TaskId task);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_
