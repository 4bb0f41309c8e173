#include "deploy/cli/config/job_reference.h"

#include <cstddef>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/job/codec/job_config_codec.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/text_format.h"
#include "lockstep/v1/job.pb.h"

namespace lockstep::cli {

// The descriptor set that CMake makes from job.proto, with its comments.
extern const unsigned char kJobDescriptorSet[];
extern const std::size_t kJobDescriptorSetBytes;

namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Joins a comment's lines to one paragraph.
std::string Paragraph(absl::string_view comment) {
  std::string text = absl::StrReplaceAll(comment, {{"\n", " "}});
  absl::RemoveExtraAsciiWhitespace(&text);
  return text;
}

// Returns the comment before a declaration followed by the one behind it.
template <typename Descriptor>
std::string DocOf(const Descriptor& declared) {
  google::protobuf::SourceLocation place;
  if (!declared.GetSourceLocation(&place)) return "";
  const std::string before = Paragraph(place.leading_comments);
  const std::string behind = Paragraph(place.trailing_comments);
  if (before.empty() || behind.empty()) return before + behind;
  return absl::StrCat(before, absl::EndsWith(before, ".") ? " " : ". ", behind);
}

// Joins the comment of a nested message with that of the field of its type.
std::string Joined(const std::string& message, const std::string& field) {
  if (message.empty() || field.empty()) return message + field;
  // Both comments often say the same.
  if (absl::StrContains(absl::AsciiStrToLower(message),
                        absl::AsciiStrToLower(field))) {
    return message;
  }
  return absl::StrCat(message, " ", field);
}

bool IsDuration(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type()->full_name() == "google.protobuf.Duration";
}

std::string TypeOf(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "whole number";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "name";
    case FieldDescriptor::CPPTYPE_STRING:
      return "text";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return IsDuration(field) ? "duration" : "group of fields";
  }
  return "value";
}

// Returns the default of a scalar field from `defaults`; empty for other
// fields.
std::string DefaultOf(const FieldDescriptor& commented,
                      const Message& defaults) {
  // Reflection takes only descriptors of the message's own pool, so the field
  // is looked up there by name.
  const FieldDescriptor* field =
      defaults.GetDescriptor()->FindFieldByName(commented.name());
  if (field == nullptr || field->is_repeated()) return "";
  const auto& reflection = *defaults.GetReflection();
  if (field->has_presence() && !reflection.HasField(defaults, field)) return "";
  if (IsDuration(*field)) {
    google::protobuf::Duration duration;
    duration.CopyFrom(reflection.GetMessage(defaults, field));
    const absl::Duration time =
        absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
    return time == absl::ZeroDuration() ? "" : absl::FormatDuration(time);
  }
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return "";
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(defaults, field, -1,
                                                        &text);
  // An empty text, the number 0 and the value 0 of an enum stand for "not set",
  // whose meaning the comment states: many fields must be above 0.
  const bool unset =
      text == "\"\"" || text == "0" || absl::EndsWith(text, "_UNSPECIFIED");
  return unset ? "" : text;
}

void AddValues(const EnumDescriptor& type, JobField& field) {
  for (int i = 0; i < type.value_count(); ++i) {
    const auto& value = *type.value(i);
    if (absl::EndsWith(value.name(), "_UNSPECIFIED")) continue;
    field.values.emplace_back(value.name(), DocOf(value));
  }
}

// `defaults` is null below a list, because only the file creates its elements.
void AddFields(const Descriptor& message, const Message* defaults,
               JobField& parent) {
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    JobField child;
    child.path = parent.path.empty()
                     ? field.name()
                     : absl::StrCat(parent.path, ".", field.name());
    child.type = TypeOf(field);
    child.is_list = field.is_repeated();
    child.doc = DocOf(field);
    if (defaults != nullptr) child.default_value = DefaultOf(field, *defaults);
    if (field.enum_type() != nullptr) AddValues(*field.enum_type(), child);
    const bool group = child.type == "group of fields";
    // --set cannot name one element of a list.
    child.settable = !group && defaults != nullptr;
    if (group) {
      child.doc = Joined(DocOf(*field.message_type()), child.doc);
      const Message* below = nullptr;
      if (defaults != nullptr && !field.is_repeated()) {
        below = &defaults->GetReflection()->GetMessage(
            *defaults,
            defaults->GetDescriptor()->FindFieldByName(field.name()));
      }
      AddFields(*field.message_type(), below, child);
    }
    parent.fields.push_back(std::move(child));
  }
}

}  // namespace

JobField JobReference() {
  google::protobuf::FileDescriptorSet files;
  JobField root;
  if (!files.ParseFromArray(kJobDescriptorSet,
                            static_cast<int>(kJobDescriptorSetBytes))) {
    return root;
  }
  // A pool of its own, because the descriptors that are compiled into the
  // program have no comments.
  google::protobuf::DescriptorPool pool;
  for (const auto& file : files.file()) pool.BuildFile(file);
  const v1::JobConfig defaults = ToProto(JobConfig());
  const Descriptor* job =
      pool.FindMessageTypeByName(defaults.GetDescriptor()->full_name());
  if (job != nullptr) AddFields(*job, &defaults, root);
  return root;
}

}  // namespace lockstep::cli
