#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "common/cluster/cluster.h"
#include "common/cluster/cluster_environment.h"
#include "common/cluster/environment_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<lockstep::Environment> variables =
      lockstep::ParseEnvironmentFile(text, "fuzz");
  if (!variables.ok()) return 0;
  const absl::StatusOr<lockstep::TfConfig> config =
      lockstep::TfConfigOfEnvironment(*variables);
  if (!config.ok()) return 0;
  lockstep::Cluster::Make(*config).status().IgnoreError();
  return 0;
}
