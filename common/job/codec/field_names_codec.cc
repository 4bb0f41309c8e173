#include "common/job/codec/field_names_codec.h"

#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/flags/nearest_match.h"

namespace lockstep {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

namespace {

// Adds the paths of all fields of a message that is in `depth` groups.
void AddPaths(const Descriptor& message, const std::string& prefix, int depth,
              std::vector<std::string>& paths) {
  // Groups in groups of a job file end before; a message may hold itself.
  constexpr int kMostGroups = 8;
  if (depth == kMostGroups) return;
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    paths.push_back(absl::StrCat(prefix, field.name()));
    const Descriptor* type = field.message_type();
    // A message of protobuf's own, such as a duration, is one value.
    if (type == nullptr || field.is_repeated() ||
        type->file()->package() != message.file()->package()) {
      continue;
    }
    AddPaths(*type, absl::StrCat(paths.back(), "."), depth + 1, paths);
  }
}

}  // namespace

std::vector<std::string> FieldNames(const Descriptor& message) {
  std::vector<std::string> names;
  names.reserve(message.field_count());
  for (int i = 0; i < message.field_count(); ++i) {
    names.push_back(message.field(i)->name());
  }
  return names;
}

std::vector<std::string> EnumNames(const EnumDescriptor& type) {
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string& name = type.value(i)->name();
    // The unspecified value is for absent fields; users need not write it.
    if (!absl::EndsWith(name, "_UNSPECIFIED")) names.push_back(name);
  }
  return names;
}

std::vector<std::string> EnumNames(const Descriptor& message,
                                   absl::string_view field) {
  std::vector<std::string> names;
  // The parser's error names the field but not its message, so all messages of
  // the file are searched.
  const FileDescriptor& file = *message.file();
  for (int i = 0; i < file.message_type_count(); ++i) {
    const FieldDescriptor* found =
        file.message_type(i)->FindFieldByName(std::string(field));
    if (found == nullptr || found->enum_type() == nullptr) continue;
    for (std::string& name : EnumNames(*found->enum_type())) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

std::vector<std::string> ShallowestPaths(const std::vector<std::string>& paths,
                                         absl::string_view name) {
  std::vector<std::string> found;
  size_t fewest = 0;
  for (const std::string& path : paths) {
    const std::vector<absl::string_view> names = absl::StrSplit(path, '.');
    if (names.back() != name) continue;
    if (!found.empty() && names.size() > fewest) continue;
    if (names.size() < fewest) found.clear();
    fewest = names.size();
    found.push_back(path);
  }
  return found;
}

std::vector<std::string> FieldPaths(const Descriptor& root,
                                    absl::string_view name) {
  std::vector<std::string> paths;
  AddPaths(root, "", 0, paths);
  return ShallowestPaths(paths, name);
}

std::string NameHint(absl::string_view name,
                     const std::vector<std::string>& known,
                     absl::string_view prefix) {
  const std::optional<std::string> nearest =
      NearestMatch(std::string_view(name.data(), name.size()), known);
  if (nearest.has_value()) {
    return absl::StrCat("; did you mean ", prefix, *nearest, "?");
  }
  return absl::StrCat("; known are ", absl::StrJoin(known, ", "));
}

}  // namespace lockstep
