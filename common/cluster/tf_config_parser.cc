#include "common/cluster/tf_config_parser.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/flags/nearest_match.h"
#include "common/json/bounded_json.h"
#include "common/text/excerpt.h"

namespace lockstep {
namespace {

using nlohmann::json;

constexpr absl::string_view kWantedIndex = "a whole number from 0 to 999999";
constexpr absl::string_view kWantedAddress = "a string \"host:port\"";

// Task type after a value of the wrong type, so that the task is not also
// reported as missing.
constexpr char kStandInType[] = "worker";

static_assert(ClusterSpec::kMaxTaskIndex == 999999, "kWantedIndex says so");

// Returns nullptr if `key` is absent or null: producers write either.
const json* Find(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const std::string& Text(const json& value) {
  return *value.get_ptr<const std::string*>();
}

bool IsOneOf(absl::string_view key,
             std::initializer_list<absl::string_view> known) {
  return std::find(known.begin(), known.end(), key) != known.end();
}

// Returns "cluster.worker", or "cluster[\"...\"]" for a name that needs quotes.
std::string JobPath(absl::string_view parent, absl::string_view job) {
  const bool plain = !job.empty() && job.size() <= 60 &&
                     std::all_of(job.begin(), job.end(), [](char c) {
                       return absl::ascii_isalnum(c) || c == '_' || c == '-';
                     });
  if (plain) return absl::StrCat(parent, ".", job);
  return absl::StrCat(parent, "[", Excerpt(job), "]");
}

absl::optional<int> IndexOfText(absl::string_view text) {
  int index = 0;
  // Digits alone: SimpleAtoi() also accepts signs and spaces.
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   absl::ascii_isdigit);
  if (!digits || !absl::SimpleAtoi(text, &index)) return absl::nullopt;
  if (index > ClusterSpec::kMaxTaskIndex) return absl::nullopt;
  return index;
}

// Accepts 1, "1" and 1.0; nullopt for all other values.
absl::optional<int> IndexOf(const json& value) {
  if (value.is_string()) return IndexOfText(Text(value));
  if (!value.is_number()) return absl::nullopt;
  const double number = value.get<double>();
  // Compared as double: a cast of a number outside of int is undefined.
  const bool whole = number >= 0 && number <= ClusterSpec::kMaxTaskIndex &&
                     std::floor(number) == number;
  return whole ? absl::make_optional(static_cast<int>(number)) : absl::nullopt;
}

}  // namespace

TfConfigParser::TfConfigParser(absl::string_view source) {
  config_.source = std::string(source);
}

absl::StatusOr<TfConfig> TfConfigParser::Parse(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(TfConfig config, Read(text));
  LOCKSTEP_RETURN_IF_ERROR(config.mistakes.status());
  return config;
}

absl::StatusOr<TfConfig> TfConfigParser::Read(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json root, ReadDocument(text));
  // Mistakes are collected, not returned, so that one start reports all of
  // them.
  ReadCluster(root);
  ReadTask(root);
  ReadText(root, "rpc_layer", config_.rpc_layer);
  ReadText(root, "session_master", config_.session_master);
  CheckOldKeys(root);
  ReadEnvironment(root);
  WarnOfIgnored(root);
  KeepUnknownKeys(root);
  return std::move(config_);
}

absl::StatusOr<json> TfConfigParser::ReadDocument(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(Json root, ParseBoundedJson(text, config_.source));
  if (root.is_string()) {
    Warn(
        "the document is a JSON string that holds the document; remove the "
        "outer quotes");
    // A copy: the text is part of `root`, which the next line replaces.
    const std::string inner = Text(root);
    LOCKSTEP_ASSIGN_OR_RETURN(root, ParseBoundedJson(inner, config_.source));
  }
  if (root.is_object()) return root;
  return absl::InvalidArgumentError(
      absl::StrCat(config_.source, " is ", DescribeJson(root),
                   ", but must be an object such as {\"cluster\": {\"worker\": "
                   "[\"host:port\"]}, \"task\": {...}}"));
}

void TfConfigParser::ReadCluster(const Json& root) {
  const Json* cluster = Find(root, "cluster");
  const Json* sparse = Find(root, "sparseCluster");
  if (cluster != nullptr && sparse != nullptr) {
    return Wrong("sparseCluster", *sparse, "absent beside cluster");
  }
  if (cluster == nullptr && sparse == nullptr) return;
  const std::string path = cluster != nullptr ? "cluster" : "sparseCluster";
  // TensorFlow writes sparseCluster if a task sees only some of the others; its
  // keys are indices, and both forms are read by the same code here.
  if (cluster == nullptr) cluster = sparse;
  if (!cluster->is_object()) {
    return Wrong(path, *cluster, "an object such as {\"worker\": [...]}");
  }
  ClusterSpec::Jobs jobs;
  for (const auto& [job, tasks] : cluster->items()) {
    const std::string job_path = JobPath(path, job);
    if (tasks.is_null()) {  // some producers write an empty list so
      jobs[job] = {};
    } else if (tasks.is_array()) {
      jobs[job] = ReadList(job_path, tasks);
    } else if (tasks.is_object()) {
      jobs[job] = ReadMap(job_path, tasks);
    } else {
      Wrong(job_path, tasks,
            "a list of \"host:port\" or an object from index to it");
    }
  }
  absl::StatusOr<ClusterSpec> spec = ClusterSpec::FromJobs(std::move(jobs));
  if (!spec.ok()) return Mistake(spec.status().message());
  config_.cluster = *std::move(spec);
}

ClusterSpec::Tasks TfConfigParser::ReadList(const std::string& path,
                                            const Json& list) {
  ClusterSpec::Tasks tasks;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_string()) {
      tasks.emplace_hint(tasks.end(), static_cast<int>(i), Text(list[i]));
    } else {
      Wrong(absl::StrCat(path, "[", i, "]"), list[i], kWantedAddress);
    }
  }
  return tasks;
}

ClusterSpec::Tasks TfConfigParser::ReadMap(const std::string& path,
                                           const Json& map) {
  ClusterSpec::Tasks tasks;
  for (const auto& [key, address] : map.items()) {
    const std::string key_path = absl::StrCat(path, "[", Excerpt(key), "]");
    const absl::optional<int> index = IndexOfText(key);
    if (!index.has_value()) {
      Mistake(absl::StrCat(path, " has the key ", Excerpt(key),
                           ", but a key must be ", kWantedIndex));
    } else if (!address.is_string()) {
      Wrong(key_path, address, kWantedAddress);
      // JSON keys are unique, but "1" and "01" are the same index.
    } else if (!tasks.emplace(*index, Text(address)).second) {
      Mistake(absl::StrCat(path, " gives task ", *index,
                           " twice; remove the key ", Excerpt(key)));
    }
  }
  return tasks;
}

void TfConfigParser::ReadTask(const Json& root) {
  const Json* task = Find(root, "task");
  if (task == nullptr) return;
  if (!task->is_object()) {
    config_.task_type = kStandInType;
    config_.task_index = 0;
    return Wrong("task", *task,
                 "an object such as {\"type\": \"worker\", \"index\": 0}");
  }
  ReadTaskType(*task);
  ReadTaskIndex(*task);
  for (const auto& [key, value] : task->items()) {
    if (IsOneOf(key, {"type", "index", "trial", "cloud"})) continue;
    KeepUnknown(JobPath("task", key), value,
                DidYouMean(key, {"type", "index"}));
  }
}

void TfConfigParser::ReadTaskType(const Json& task) {
  const Json* type = Find(task, "type");
  if (type == nullptr) return;
  if (!type->is_structured()) {
    // A number or bool is kept as text: ReadType() reports it with its value.
    config_.task_type = type->is_string() ? Text(*type) : type->dump();
  }
  if (!config_.task_type.empty()) return;
  config_.task_type = kStandInType;
  Wrong("task.type", *type, "chief, worker, ps or evaluator");
}

void TfConfigParser::ReadTaskIndex(const Json& task) {
  const Json* index = Find(task, "index");
  if (index == nullptr) return;
  config_.task_index = IndexOf(*index);
  if (config_.task_index.has_value()) return;
  config_.task_index = 0;
  Wrong("task.index", *index, kWantedIndex);
}

void TfConfigParser::ReadText(const Json& root, const char* key,
                              std::string& field) {
  const Json* value = Find(root, key);
  if (value == nullptr) return;
  if (!value->is_string()) return Wrong(key, *value, "a string");
  field = Text(*value);
}

void TfConfigParser::CheckOldKeys(const Json& root) {
  const Json* service = Find(root, "service");
  if (service != nullptr && !service->is_object()) {
    Wrong("service", *service, "an object, or absent");
  }
  ReadText(root, "model_dir", config_.model_dir);
  const Json* model_dir = Find(root, "model_dir");
  if (model_dir != nullptr && model_dir->is_string() &&
      config_.model_dir.empty()) {
    Wrong("model_dir", *model_dir, "a folder, or absent");
  }
}

void TfConfigParser::ReadEnvironment(const Json& root) {
  const Json* environment = Find(root, "environment");
  if (environment == nullptr) return;
  if (environment->is_string()) {
    config_.environment = Text(*environment);
  } else {
    Warn("environment is not a string; ignored");
  }
}

// Warns of keys that TensorFlow knows and that have no effect here. Keys that
// only describe the platform's own job (environment, job, trial) get no
// warning.
void TfConfigParser::WarnOfIgnored(const Json& root) {
  const auto ignored = [this](absl::string_view key, absl::string_view value,
                              absl::string_view why) {
    if (value.empty()) return;
    Warn(absl::StrCat(key, " is ", Excerpt(value), "; ignored: ", why));
  };
  if (config_.rpc_layer != "grpc") {
    ignored("rpc_layer", config_.rpc_layer,
            "calls use gRPC, and this word does not encrypt them");
  }
  constexpr absl::string_view kNoSession =
      "there are no sessions; cluster has the chief's address";
  ignored("session_master", config_.session_master, kNoSession);
  const Json* eval = Find(root, "eval_session_master");
  if (eval != nullptr) {
    Warn(absl::StrCat("eval_session_master is ", DescribeJson(*eval),
                      "; ignored: ", kNoSession));
  }
  ignored("model_dir", config_.model_dir,
          "the job file's checkpoint.directory is used instead");
  const Json* service = Find(root, "service");
  if (service != nullptr && !service->empty()) {
    Warn("service is ignored: flags replace it");
  }
}

void TfConfigParser::KeepUnknownKeys(const Json& root) {
  for (const auto& [key, value] : root.items()) {
    if (!IsOneOf(key, {"cluster", "sparseCluster", "task", "rpc_layer",
                       "session_master", "environment", "eval_session_master",
                       "model_dir", "service", "job", "trial"})) {
      KeepUnknown(key, value, DidYouMean(key, {"cluster", "task"}));
    }
  }
}

void TfConfigParser::KeepUnknown(const std::string& path, const Json& value,
                                 const std::string& hint) {
  config_.unknown_keys.emplace(path, value.dump());
  Warn(absl::StrCat("the key ", Excerpt(path), " is not known; ignored", hint));
}

void TfConfigParser::Wrong(absl::string_view path, const Json& value,
                           absl::string_view wanted) {
  Mistake(absl::StrCat(path, " is ", DescribeJson(value), ", but must be ",
                       wanted));
}

void TfConfigParser::Mistake(absl::string_view text) {
  config_.mistakes.Add(
      absl::InvalidArgumentError(absl::StrCat(config_.source, ": ", text)));
}

void TfConfigParser::Warn(absl::string_view text) {
  config_.warnings.push_back(absl::StrCat(config_.source, ": ", text));
}

}  // namespace lockstep
