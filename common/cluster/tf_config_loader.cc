#include "common/cluster/tf_config_loader.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/bounded_json.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr char kVariable[] = "TF_CONFIG";

// Reads one byte more than a document may have, so that the parser sees when
// there is too much.
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
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

TfConfig Unset() {
  TfConfig config;
  if (std::getenv("CLUSTER_SPEC") != nullptr) {
    config.warnings.emplace_back(
        "TF_CONFIG is not set, but CLUSTER_SPEC is, which is not read; set "
        "TF_CONFIG");
  }
  return config;
}

}  // namespace

absl::StatusOr<TfConfig> LoadTfConfig(const std::string& flag_file) {
  if (!flag_file.empty()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::string text,
                              ReadDocumentFile(flag_file));
    return ParseTfConfig(text, flag_file);
  }
  const char* text = std::getenv(kVariable);
  if (text == nullptr) return Unset();
  return ParseTfConfig(text, kVariable);
}

}  // namespace lockstep
