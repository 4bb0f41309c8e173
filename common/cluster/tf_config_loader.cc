#include "common/cluster/tf_config_loader.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_environment.h"
#include "common/json/bounded_json.h"

namespace lockstep {
namespace {

// Reads one byte more than a document may have, so that the parser notices an
// oversized document.
absl::StatusOr<std::string> ReadDocumentFile(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  std::string text(kMaxJsonBytes + 1, '\0');
  if (file.is_open()) {
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
  }
  if (!file.is_open() || file.bad()) {
    return absl::NotFoundError(absl::StrCat(
        "the cluster file ", name, " cannot be read: ", std::strerror(errno),
        "; check the name and its rights"));
  }
  // A short read is the usual case and sets failbit, which is not an error
  // here.
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
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
