#ifndef LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_PARSER_H_
#define LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_PARSER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/cluster_spec.h"
#include "common/cluster/tf_config.h"
#include "nlohmann/json.hpp"

namespace lockstep {

// TfConfigParser implements ParseTfConfig, one object per document. It
// continues after a mistake and reports all mistakes at the end.
//
// Threads: not thread-safe.
class TfConfigParser {
 public:
  explicit TfConfigParser(absl::string_view source);

  //   kInvalidArgument  as ParseTfConfig
  absl::StatusOr<TfConfig> Parse(absl::string_view text);

  //   kInvalidArgument  as ReadTfConfig
  absl::StatusOr<TfConfig> Read(absl::string_view text);

 private:
  using Json = nlohmann::json;

  absl::StatusOr<Json> ReadDocument(absl::string_view text);
  void ReadCluster(const Json& root);
  ClusterSpec::Tasks ReadList(const std::string& path, const Json& list);
  ClusterSpec::Tasks ReadMap(const std::string& path, const Json& map);
  void ReadTask(const Json& root);
  void ReadTaskType(const Json& task);
  void ReadTaskIndex(const Json& task);
  void ReadText(const Json& root, const char* key, std::string& field);
  void CheckOldKeys(const Json& root);
  void ReadEnvironment(const Json& root);
  void WarnOfIgnored(const Json& root);
  void KeepUnknownKeys(const Json& root);
  void KeepUnknown(const std::string& path, const Json& value,
                   const std::string& hint);

  void Wrong(absl::string_view path, const Json& value,
             absl::string_view wanted);
  void Mistake(absl::string_view text);
  void Warn(absl::string_view text);

  TfConfig config_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CLUSTER_TF_CONFIG_PARSER_H_
