#include "common/job/codec/job_override_codec.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "common/flags/nearest_match.h"
#include "common/job/codec/auto_number_codec.h"
#include "common/job/codec/field_list_codec.h"
#include "common/job/codec/field_names_codec.h"
#include "common/text/excerpt.h"
#include "common/wire/wire_codec.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status Error(absl::string_view text) {
  return absl::InvalidArgumentError(text);
}

bool IsDuration(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type() == google::protobuf::Duration::descriptor();
}

bool HasFields(const FieldDescriptor& field) {
  // A duration is a message too, but users write it as one value.
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE &&
         !field.is_repeated() && !IsDuration(field);
}

bool IsScalar(const FieldDescriptor& field) {
  return field.cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE;
}

// Adds to a list, else sets. As the functions below, false if `text` is no
// value of the field's type.
template <Scalar T>
bool WriteAs(absl::string_view text, const FieldDescriptor& field,
             Message& message) {
  T value{};
  bool is_value = true;
  if constexpr (std::same_as<T, std::string>) {
    value = std::string(text);
  } else if constexpr (std::same_as<T, bool>) {
    is_value = absl::SimpleAtob(text, &value);
  } else if constexpr (std::same_as<T, double>) {
    is_value = absl::SimpleAtod(text, &value);
  } else {
    is_value = absl::SimpleAtoi(text, &value);
  }
  if (!is_value) return false;
  const Reflection& reflection = *message.GetReflection();
  if (field.is_repeated()) {
    reflection.GetMutableRepeatedFieldRef<T>(&message, &field).Add(value);
  } else {
    (reflection.*AccessOf<T>().set)(&message, &field, value);
  }
  return true;
}

bool WriteEnum(absl::string_view text, const FieldDescriptor& field,
               Message& message) {
  for (const std::string& name : EnumNames(*field.enum_type())) {
    if (!absl::EqualsIgnoreCase(text, name)) continue;
    message.GetReflection()->SetEnum(&message, &field,
                                     field.enum_type()->FindValueByName(name));
    return true;
  }
  return false;
}

bool WriteDuration(absl::string_view text, const FieldDescriptor& field,
                   Message& message) {
  absl::Duration duration;
  if (!absl::ParseDuration(text, &duration)) return false;
  // ParseDuration() accepts "inf", which no field of a job means.
  if (absl::AbsDuration(duration) == absl::InfiniteDuration()) return false;
  message.GetReflection()
      ->MutableMessage(&message, &field)
      ->CopyFrom(ToProto(duration));
  return true;
}

struct FieldType {
  FieldDescriptor::CppType type;
  const char* name;  // for messages
  bool (*write)(absl::string_view, const FieldDescriptor&, Message&);
};

constexpr FieldType kTypes[] = {
    {FieldDescriptor::CPPTYPE_INT32, "a whole number of 32 bits",
     WriteAs<int32_t>},
    {FieldDescriptor::CPPTYPE_INT64, "a whole number of 64 bits",
     WriteAs<int64_t>},
    {FieldDescriptor::CPPTYPE_UINT64, "a whole number of 0 or more",
     WriteAs<uint64_t>},
    {FieldDescriptor::CPPTYPE_DOUBLE, "a number", WriteAs<double>},
    {FieldDescriptor::CPPTYPE_BOOL, "true or false", WriteAs<bool>},
    {FieldDescriptor::CPPTYPE_STRING, "text", WriteAs<std::string>},
    {FieldDescriptor::CPPTYPE_ENUM, "one of ", WriteEnum},
    {FieldDescriptor::CPPTYPE_MESSAGE,
     "a duration such as \"60s\" or \"1500ms\"", WriteDuration}};

// A job has no fields of other types.
constexpr FieldType kOther = {
    FieldDescriptor::CPPTYPE_FLOAT, "of another type",
    [](absl::string_view, const FieldDescriptor&, Message&) { return false; }};

const FieldType& TypeOf(const FieldDescriptor& field) {
  for (const FieldType& known : kTypes) {
    if (known.type == field.cpp_type()) return known;
  }
  return kOther;
}

// Describes the form of the field's values, for messages.
std::string TypeName(const FieldDescriptor& field) {
  std::string name = TypeOf(field).name;
  if (MayBeAuto(field.name())) name += ", or AUTO";
  if (field.enum_type() != nullptr) {
    name += absl::StrJoin(EnumNames(*field.enum_type()), ", ");
  }
  return name;
}

// The value that `text` was meant to be, for messages; empty: none is near.
std::string NearValue(absl::string_view text, const FieldDescriptor& field) {
  if (field.enum_type() == nullptr) return "";
  return DidYouMean({text.data(), text.size()}, EnumNames(*field.enum_type()));
}

absl::StatusOr<const FieldDescriptor*> FindField(const Descriptor& root,
                                                 const Descriptor& message,
                                                 absl::string_view prefix,
                                                 const std::string& name) {
  const FieldDescriptor* field = message.FindFieldByName(name);
  if (field != nullptr) return field;
  // The same name in another group is meant rather than one that is near.
  const std::vector<std::string> paths = FieldPaths(root, name);
  const std::string hint =
      paths.empty()
          ? NameHint(name, FieldNames(message), prefix)
          : absl::StrCat("; did you mean ", absl::StrJoin(paths, " or "), "?");
  return Error(
      absl::StrCat("unknown key ", Excerpt(absl::StrCat(prefix, name)), hint));
}

// Splits "64,32", or "[64, 32]" as in the job file, where text may be in
// quotes.
std::vector<absl::string_view> ListOf(absl::string_view value) {
  const bool brackets = absl::StartsWith(value, "[") &&
                        absl::EndsWith(value, "]") && value.size() > 1;
  if (brackets) value = value.substr(1, value.size() - 2);
  // StrSplit() of an empty text returns one empty element, not none.
  if (absl::StripAsciiWhitespace(value).empty()) return {};
  std::vector<absl::string_view> texts = absl::StrSplit(value, ',');
  if (!brackets) return texts;
  for (absl::string_view& text : texts) {
    text = absl::StripAsciiWhitespace(text);
    if (text.size() < 2 || text.front() != text.back()) continue;
    if (text.front() == '"' || text.front() == '\'') {
      text = text.substr(1, text.size() - 2);
    }
  }
  return texts;
}

absl::Status WriteValue(absl::string_view key, const FieldDescriptor& field,
                        absl::string_view value, Message& message) {
  std::vector<absl::string_view> texts = {value};
  if (field.is_repeated()) {
    // An override replaces the list: without it, the writer would add to the
    // job's.
    message.GetReflection()->ClearField(&message, &field);
    texts = ListOf(value);
  }
  const std::string number = absl::StrCat(kAutoNumber);
  for (absl::string_view text : texts) {
    const bool chosen =
        absl::EqualsIgnoreCase(text, kAutoText) && MayBeAuto(field.name());
    if (TypeOf(field).write(chosen ? number : text, field, message)) continue;
    return Error(absl::StrCat(key, " is ", Excerpt(text), ", but must be ",
                              TypeName(field), NearValue(text, field)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SetField(absl::string_view assignment, Message& message) {
  // The first '=': a value, such as a path, may contain others.
  const size_t equals = assignment.find('=');
  if (equals == absl::string_view::npos) {
    return Error(absl::StrCat(Excerpt(assignment),
                              " has no '='; write "
                              "key=value"));
  }
  const absl::string_view key = assignment.substr(0, equals);
  const std::vector<std::string> names = absl::StrSplit(key, '.');
  Message* target = &message;
  std::string prefix;  // prefix of the next name: "checkpoint."
  // Ends at the last name: each branch below returns there.
  for (size_t i = 0;; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const FieldDescriptor* field,
        FindField(*message.GetDescriptor(), *target->GetDescriptor(), prefix,
                  names[i]));
    if (field->is_repeated() && !IsScalar(*field)) {
      return Error(absl::StrCat(prefix, names[i],
                                " is a list of fields; set it in the job "
                                "file"));
    }
    const bool last = i + 1 == names.size();
    if (last && HasFields(*field)) {
      return Error(absl::StrCat(
          key, " holds fields; set one of them: ",
          absl::StrJoin(FieldNames(*field->message_type()), ", ")));
    }
    if (last) {
      return WriteValue(key, *field, assignment.substr(equals + 1), *target);
    }
    if (!HasFields(*field)) {
      return Error(absl::StrCat(prefix, names[i], " has no fields; set it to ",
                                TypeName(*field)));
    }
    target = target->GetReflection()->MutableMessage(target, field);
    absl::StrAppend(&prefix, names[i], ".");
  }
}

}  // namespace lockstep
