#include "common/checkpoint/format/manifest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/files/sha256.h"
#include "common/json/bounded_json.h"
#include "common/text/excerpt.h"
#include "common/text/utf8.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxText = 256;
constexpr size_t kMaxFiles = 1024;
constexpr size_t kMaxMetrics = 1024;
constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();
// Depth of the manifest, its list of files, and a file; one more for later
// fields.
constexpr JsonLimits kLimits = {kMaxManifestBytes, /*max_depth=*/4};

// The common form of all errors: field, value, allowed values.
absl::Status Refuse(absl::string_view field, absl::string_view value,
                    absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", want ", wanted));
}

// --- checks of EncodeManifest() and ParseManifest() ---

bool IsPlainFileName(absl::string_view name) {
  // No '/' and no leading '.': a manifest must not name a file outside of its
  // directory.
  return !name.empty() && name.size() <= kMaxText && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
         });
}

absl::Status CheckText(absl::string_view field, absl::string_view value) {
  if (value.size() <= kMaxText && IsUtf8(value)) return absl::OkStatus();
  return Refuse(field, Excerpt(value),
                absl::StrCat("UTF-8 of at most ", kMaxText, " bytes"));
}

absl::Status CheckNotNegative(absl::string_view field, int64_t value) {
  if (value >= 0) return absl::OkStatus();
  return Refuse(field, absl::StrCat(value), "at least 0");
}

absl::Status CheckFile(const CheckpointFile& file) {
  if (!IsPlainFileName(file.name)) {
    return Refuse("files.name", Excerpt(file.name),
                  "a plain file name of letters, digits, '-', '_' and '.'");
  }
  // Offsets of POSIX files are signed.
  if (file.bytes > static_cast<uint64_t>(kMaxInt)) {
    return Refuse("files.bytes", absl::StrCat(file.bytes), "less than 2^63");
  }
  if (!IsSha256Hex(file.sha256)) {
    return Refuse("files.sha256", Excerpt(file.sha256),
                  "64 lower-case hex digits");
  }
  return absl::OkStatus();
}

absl::Status CheckFiles(const std::vector<CheckpointFile>& files) {
  if (files.empty() || files.size() > kMaxFiles) {
    return Refuse("files", absl::StrCat("a list of ", files.size()),
                  absl::StrCat("1 to ", kMaxFiles));
  }
  absl::flat_hash_set<absl::string_view> seen;
  for (const CheckpointFile& file : files) {
    LOCKSTEP_RETURN_IF_ERROR(CheckFile(file));
    if (!seen.insert(file.name).second) {
      return Refuse("files.name", Excerpt(file.name), "each name once");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckNumbers(absl::string_view field,
                          const std::map<std::string, double>& numbers) {
  if (numbers.size() > kMaxMetrics) {
    return Refuse(field, absl::StrCat(numbers.size(), " entries"),
                  absl::StrCat("at most ", kMaxMetrics));
  }
  for (const auto& [name, value] : numbers) {
    LOCKSTEP_RETURN_IF_ERROR(CheckText(absl::StrCat(field, " key"), name));
    // JSON has no infinity and no NaN; nlohmann would write null.
    if (!std::isfinite(value)) {
      return Refuse(absl::StrCat(field, ".", name), absl::StrCat(value),
                    "a finite number");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckManifest(const Manifest& manifest) {
  if (manifest.job_name.empty()) {
    return Refuse("job_name", "empty", "the name of the job");
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckText("job_name", manifest.job_name));
  LOCKSTEP_RETURN_IF_ERROR(CheckText("job_id", manifest.job_id));
  if (manifest.mode != "strict" && manifest.mode != "compatible") {
    return Refuse("mode", Excerpt(manifest.mode),
                  "\"strict\" or \"compatible\"");
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNotNegative("global_step", manifest.global_step));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNotNegative("num_workers", manifest.num_workers));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNotNegative("saved_at_unix_ms", manifest.saved_at_unix_ms));
  LOCKSTEP_RETURN_IF_ERROR(CheckFiles(manifest.files));
  LOCKSTEP_RETURN_IF_ERROR(CheckNumbers("metrics", manifest.metrics));
  return CheckNumbers("settings", manifest.settings);
}

// --- JSON to fields ---

const Json& Field(const Json& object, const char* name) {
  // Null, which each Read() refuses with a message that shows it.
  static const Json absent;
  const auto found = object.find(name);
  return found == object.end() ? absent : *found;
}

absl::Status Read(const Json& object, const char* name, std::string& value) {
  const Json& json = Field(object, name);
  if (!json.is_string()) return Refuse(name, ShowJson(json), "a string");
  value = json.get<std::string>();
  return absl::OkStatus();
}

absl::Status Read(const Json& object, const char* name, uint64_t& value) {
  const Json& json = Field(object, name);
  if (!json.is_number_unsigned()) {
    return Refuse(name, ShowJson(json), "an integer in [0, 2^64)");
  }
  value = json.get<uint64_t>();
  return absl::OkStatus();
}

absl::Status Read(const Json& object, const char* name, int64_t& value) {
  const Json& json = Field(object, name);
  if (!json.is_number_unsigned() ||
      json.get<uint64_t>() > static_cast<uint64_t>(kMaxInt)) {
    return Refuse(name, ShowJson(json), "an integer in [0, 2^63)");
  }
  value = json.get<int64_t>();
  return absl::OkStatus();
}

absl::Status ReadFiles(const Json& json, std::vector<CheckpointFile>& files) {
  // Checked before the entries are copied, so the limit also bounds memory.
  if (!json.is_array() || json.size() > kMaxFiles) {
    return Refuse("files", ShowJson(json),
                  absl::StrCat("a list of 1 to ", kMaxFiles, " files"));
  }
  for (const Json& entry : json) {
    if (!entry.is_object()) {
      return Refuse("files", ShowJson(json), "a list of objects");
    }
    CheckpointFile file;
    LOCKSTEP_RETURN_IF_ERROR(Read(entry, "name", file.name));
    LOCKSTEP_RETURN_IF_ERROR(Read(entry, "bytes", file.bytes));
    LOCKSTEP_RETURN_IF_ERROR(Read(entry, "sha256", file.sha256));
    files.push_back(std::move(file));
  }
  return absl::OkStatus();
}

absl::Status ReadNumbers(const Json& object, const char* field,
                         std::map<std::string, double>& numbers) {
  const Json& json = Field(object, field);
  // Manifests of versions without this field stay readable.
  if (json.is_null()) return absl::OkStatus();
  if (!json.is_object()) return Refuse(field, ShowJson(json), "an object");
  for (const auto& [name, value] : json.items()) {
    if (!value.is_number()) {
      return Refuse(absl::StrCat(field, ".", name), ShowJson(value),
                    "a number");
    }
    numbers[name] = value.get<double>();
  }
  return absl::OkStatus();
}

absl::Status CheckVersion(const Json& json) {
  int64_t version = 0;
  LOCKSTEP_RETURN_IF_ERROR(Read(json, "format_version", version));
  if (version == kManifestFormatVersion) return absl::OkStatus();
  // Versions below the first one never existed, so the file is damaged.
  if (version < kManifestFormatVersion) {
    return Refuse("format_version", absl::StrCat(version),
                  absl::StrCat(kManifestFormatVersion));
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "format_version is ", version, ", this program reads up to ",
      kManifestFormatVersion, ": use the version of Lockstep that wrote it"));
}

absl::Status ReadManifest(const Json& json, Manifest& manifest) {
  // First: a newer version may have changed every other field.
  LOCKSTEP_RETURN_IF_ERROR(CheckVersion(json));
  LOCKSTEP_RETURN_IF_ERROR(Read(json, "job_name", manifest.job_name));
  LOCKSTEP_RETURN_IF_ERROR(Read(json, "job_id", manifest.job_id));
  LOCKSTEP_RETURN_IF_ERROR(Read(json, "global_step", manifest.global_step));
  LOCKSTEP_RETURN_IF_ERROR(Read(json, "seed", manifest.seed));
  LOCKSTEP_RETURN_IF_ERROR(Read(json, "mode", manifest.mode));
  LOCKSTEP_RETURN_IF_ERROR(Read(json, "num_workers", manifest.num_workers));
  LOCKSTEP_RETURN_IF_ERROR(
      Read(json, "saved_at_unix_ms", manifest.saved_at_unix_ms));
  LOCKSTEP_RETURN_IF_ERROR(ReadFiles(Field(json, "files"), manifest.files));
  LOCKSTEP_RETURN_IF_ERROR(ReadNumbers(json, "metrics", manifest.metrics));
  return ReadNumbers(json, "settings", manifest.settings);
}

}  // namespace

absl::StatusOr<std::string> EncodeManifest(const Manifest& manifest) {
  LOCKSTEP_RETURN_IF_ERROR(CheckManifest(manifest));
  Json files = Json::array();
  for (const CheckpointFile& file : manifest.files) {
    files.push_back(
        {{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  Json json = {{"format_version", kManifestFormatVersion},
               {"job_name", manifest.job_name},
               {"job_id", manifest.job_id},
               {"global_step", manifest.global_step},
               {"seed", manifest.seed},
               {"mode", manifest.mode},
               {"num_workers", manifest.num_workers},
               {"saved_at_unix_ms", manifest.saved_at_unix_ms},
               {"files", std::move(files)}};
  if (!manifest.metrics.empty()) json["metrics"] = manifest.metrics;
  if (!manifest.settings.empty()) json["settings"] = manifest.settings;
  std::string text = json.dump(/*indent=*/2) + "\n";
  if (text.size() <= kMaxManifestBytes) return text;
  return Refuse("the manifest", absl::StrCat(text.size(), " bytes"),
                absl::StrCat("at most ", kMaxManifestBytes));
}

absl::StatusOr<Manifest> ParseManifest(absl::string_view text) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Json json,
                            ParseBoundedJson(text, "the manifest", kLimits));
  if (!json.is_object()) {
    return Refuse("the manifest", ShowJson(json), "a JSON object");
  }
  Manifest manifest;
  LOCKSTEP_RETURN_IF_ERROR(ReadManifest(json, manifest));
  LOCKSTEP_RETURN_IF_ERROR(CheckManifest(manifest));
  return manifest;
}

}  // namespace lockstep
