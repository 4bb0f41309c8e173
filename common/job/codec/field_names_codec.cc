#include "common/job/codec/field_names_codec.h"

#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/flags/nearest_match.h"

namespace lockstep {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;

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

std::string DidYouMean(absl::string_view name,
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
