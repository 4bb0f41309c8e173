#ifndef LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_
#define LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/task_id.h"
#include "common/text/mistakes.h"

namespace lockstep {

// TfConfig is what a TF_CONFIG document says, read as TensorFlow's
// TFConfigClusterResolver reads it: types are checked, sense is not. Cluster
// checks the sense. Set a field to override what the document says.
struct TfConfig {
  std::string source = "TF_CONFIG";  // names the document in messages
  ClusterSpec cluster;               // empty: local
  std::string task_type;             // empty: not given
  absl::optional<int> task_index;
  std::string rpc_layer;       // scheme put before the master's address
  std::string session_master;  // if not empty, the master whatever else is set
  std::string environment;     // "cloud", "google" or anything; says nothing
  std::string model_dir;       // empty: not given; else agrees with the job's

  // Keys that no producer of TF_CONFIG is known for, and their JSON.
  std::map<std::string, std::string> unknown_keys;

  // What a person should look at, a sentence each.
  std::vector<std::string> warnings;

  // Of ReadTfConfig alone: values of the wrong type, which are left out.
  Mistakes mistakes;
};

// `source` is where `json` came from, "TF_CONFIG" or a file name: it starts
// every message. Indices may be numbers or text of digits; a document that is
// a JSON string holding the document is unwrapped; `sparseCluster` stands for
// `cluster`; each with what it may hide is in `warnings`.
//
//   kInvalidArgument  no JSON object, or a value of the wrong type; names the
//                     path in the document, the value and the fix
absl::StatusOr<TfConfig> ParseTfConfig(absl::string_view json,
                                       absl::string_view source);

// The same for Cluster::Make, which says what else is wrong beside values of
// the wrong type: those are in `mistakes`.
//
//   kInvalidArgument  no JSON object
absl::StatusOr<TfConfig> ReadTfConfig(absl::string_view json,
                                      absl::string_view source);

// The clusters joined by ClusterSpec::Union, all else from the first; a
// default TfConfig for none.
//
//   kInvalidArgument  as ClusterSpec::Union
absl::StatusOr<TfConfig> UnionOf(absl::Span<const TfConfig> configs);

// The address a session connects to: `session_master` when it is set; empty
// for a cluster of no more than one task; else that of `task_type` and `index`
// with the RPC layer before it.
//
//   kInvalidArgument  the cluster has no such task
absl::StatusOr<std::string> MasterAddress(const TfConfig& config,
                                          absl::string_view task_type,
                                          int index);

// Of the document's own task.
//
//   kInvalidArgument  the address is needed, and the task is not given or not
//                     in the cluster
absl::StatusOr<std::string> MasterAddress(const TfConfig& config);

// A TF_CONFIG for one task on one line; ParseTfConfig reads it back. Dense
// jobs are lists, others maps.
std::string ToJson(const ClusterSpec& cluster, TaskId task);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_H_
