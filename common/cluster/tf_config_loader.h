#ifndef LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_LOADER_H_
#define LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_LOADER_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/cluster/tf_config.h"

namespace lockstep {

// Reads the file `flag_file`, or this process's environment variables when the
// name is empty: TF_CONFIG, else what TfConfigOfEnvironment takes for it. Call
// it once, at start: the environment is not watched.
//
//   kNotFound         the file cannot be opened or read, or no variable is set
//   kInvalidArgument  as ReadTfConfig and TfConfigOfEnvironment
absl::StatusOr<TfConfig> LoadTfConfig(const std::string& flag_file);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_LOADER_H_
