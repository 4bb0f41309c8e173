#ifndef LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_LOADER_H_
#define LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_LOADER_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/cluster/tf_config.h"

namespace lockstep {

// Reads the file `flag_file`, or, if the name is empty, this process's
// environment variables: TF_CONFIG, else those of TfConfigOfEnvironment. Call
// it once, at start: later changes of the environment have no effect.
//
//   kNotFound         the file cannot be opened or read, or no variable is set
//   kInvalidArgument  as ReadTfConfig and TfConfigOfEnvironment
absl::StatusOr<TfConfig> LoadTfConfig(const std::string& flag_file);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_LOADER_H_
