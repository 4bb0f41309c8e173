#include "common/cluster/tf_config_loader.h"

#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/input_file.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_environment.h"
#include "common/json/bounded_json.h"

namespace lockstep {
namespace {

// Reads one byte more than a document may have, so that the parser notices an
// oversized document.
absl::StatusOr<std::string> ReadDocumentFile(const std::string& name) {
  absl::StatusOr<std::string> text = ReadInputFile(name, kMaxJsonBytes + 1);
  if (text.ok()) return text;
  return absl::NotFoundError(absl::StrCat(
      "the cluster file ", name, " cannot be read: ", text.status().message(),
      "; check the name and its rights"));
}

// Returns the variables of this process that TfConfigOfEnvironment reads.
Environment OwnEnvironment() {
  Environment variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::pair<absl::string_view, absl::string_view> variable =
        absl::StrSplit(absl::string_view(*entry), absl::MaxSplits('=', 1));
    variables.emplace_back(variable.first, variable.second);
  }
  return variables;
}

}  // namespace

absl::StatusOr<TfConfig> LoadTfConfig(const std::string& flag_file) {
  if (!flag_file.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                              ReadDocumentFile(flag_file));
    return ReadTfConfig(text, flag_file);
  }
  return TfConfigOfEnvironment(OwnEnvironment());
}

}  // namespace lockstep
