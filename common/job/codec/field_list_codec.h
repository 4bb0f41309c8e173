#ifndef LOCKSTEP_COMMON_JOB_CODEC_FIELD_LIST_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_FIELD_LIST_CODEC_H_

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/job/job_config.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/reflection.h"

// Conversion of structs from and to messages, by one list of fields for both
// directions:
//
//   void VisitFields(FieldVisitor& visit, SummaryConfig& summary) {
//     visit("directory", summary.directory);
//     visit("every", summary.every);
//   }
//
// A field must have the type of its member, which protobuf checks at each use:
// a number, a bool or text; an absl::Duration; a DType, which is text in
// messages; an enumeration, with a table of its values; a struct with a list; a
// std::vector or std::optional.
namespace lockstep {

// One value of an enumeration, in structs and in messages.
template <typename Enum>
struct EnumValue {
  Enum value;
  int number;
};

template <typename T>
concept Scalar = std::same_as<T, int32_t> || std::same_as<T, int64_t> ||
    std::same_as<T, uint64_t> || std::same_as<T, double> ||
    std::same_as<T, bool> || std::same_as<T, std::string>;

// The methods that get and set a field of one T.
template <Scalar T>
struct FieldAccess {
  using Reflection = google::protobuf::Reflection;
  using Message = google::protobuf::Message;
  using FieldDescriptor = google::protobuf::FieldDescriptor;

  T (Reflection::*get)(const Message&, const FieldDescriptor*) const;
  void (Reflection::*set)(Message*, const FieldDescriptor*, T) const;
};

template <Scalar T>
constexpr FieldAccess<T> AccessOf() {
  using R = google::protobuf::Reflection;
  return std::get<FieldAccess<T>>(
      std::tuple{FieldAccess<int32_t>{&R::GetInt32, &R::SetInt32},
                 FieldAccess<int64_t>{&R::GetInt64, &R::SetInt64},
                 FieldAccess<uint64_t>{&R::GetUInt64, &R::SetUInt64},
                 FieldAccess<double>{&R::GetDouble, &R::SetDouble},
                 FieldAccess<bool>{&R::GetBool, &R::SetBool},
                 FieldAccess<std::string>{&R::GetString, &R::SetString}});
}

// FieldVisitor reads the fields of a list from a message, or writes them to it.
//
// Threads: not thread-safe.
class FieldVisitor {
 public:
  using FieldDescriptor = google::protobuf::FieldDescriptor;
  using Message = google::protobuf::Message;

  // Reads `source`. Names in errors begin with `prefix`: "model."; `status`
  // keeps the first error.
  FieldVisitor(const Message& source, std::string prefix, absl::Status& status)
      : message_(source), prefix_(std::move(prefix)), status_(&status) {}

  // Writes to `target`.
  explicit FieldVisitor(Message& target) : message_(target), target_(&target) {}

  // Reads or writes one field. An absent field leaves `value` as it is, and so
  // does a field without presence that is 0 or empty.
  template <typename T, typename... Table>
  void operator()(const char* name, T& value, const Table&... table) {
    const FieldDescriptor* field = Find(name);
    if (field != nullptr) Convert(*field, value, table...);
  }

  // Sets the default of a field that depends on earlier fields, `absent`. Must
  // be called before the field is read.
  template <typename T>
  void Default(T& value, const std::type_identity_t<T>& absent) {
    if (reads()) value = absent;
  }

  // Reads or writes a field whose default depends on earlier fields: the
  // default `absent` is written by leaving the field out of the message.
  template <typename T>
  void Optional(const char* name, T& value,
                const std::type_identity_t<T>& absent) {
    Default(value, absent);
    if (reads() || value != absent) (*this)(name, value);
  }

 private:
  bool reads() const { return target_ == nullptr; }

  // Returns nullptr if there is nothing to convert.
  const FieldDescriptor* Find(const char* name);
  // Returns the visitor of a message, or of one of a list.
  FieldVisitor Nested(const FieldDescriptor& field, int index);
  std::string NameOf(const FieldDescriptor& field) const;
  void RefuseNumber(const FieldDescriptor& field, int number);

  void Convert(const FieldDescriptor& field, DType& value);
  void Convert(const FieldDescriptor& field, absl::Duration& value);

  template <Scalar T>
  void Convert(const FieldDescriptor& field, T& value) {
    if (reads()) {
      value = (reflection_.*AccessOf<T>().get)(message_, &field);
    } else {
      (reflection_.*AccessOf<T>().set)(target_, &field, value);
    }
  }

  template <Scalar T>
  void Convert(const FieldDescriptor& field, std::vector<T>& values) {
    if (reads()) {
      const auto list = reflection_.GetRepeatedFieldRef<T>(message_, &field);
      values.assign(list.begin(), list.end());
    } else {
      const auto list =
          reflection_.GetMutableRepeatedFieldRef<T>(target_, &field);
      for (const T& value : values) list.Add(value);
    }
  }

  template <typename Enum, size_t kCount>
  void Convert(const FieldDescriptor& field, Enum& value,
               const EnumValue<Enum> (&table)[kCount]) {
    const int number = reflection_.GetEnumValue(message_, &field);
    for (const EnumValue<Enum>& known : table) {
      if (reads() && known.number == number) {
        value = known.value;
        return;
      }
      if (!reads() && known.value == value) {
        reflection_.SetEnumValue(target_, &field, known.number);
      }
    }
    if (reads()) RefuseNumber(field, number);
  }

  template <typename T>
  void Convert(const FieldDescriptor& field, std::optional<T>& value) {
    if (reads()) value.emplace();
    if (value.has_value()) Convert(field, *value);
  }

  template <typename Struct>
  void Convert(const FieldDescriptor& field, std::vector<Struct>& values) {
    if (reads()) values.resize(reflection_.FieldSize(message_, &field));
    int index = 0;
    for (Struct& value : values) {
      FieldVisitor nested = Nested(field, index++);
      VisitFields(nested, value);
    }
  }

  template <typename Struct>
  void Convert(const FieldDescriptor& field, Struct& value) {
    FieldVisitor nested = Nested(field, 0);
    VisitFields(nested, value);
  }

  const Message& message_;
  const google::protobuf::Reflection& reflection_ = *message_.GetReflection();
  Message* target_ = nullptr;  // &message_ of one that writes
  std::string prefix_;
  absl::Status* status_ = nullptr;  // of one that reads
};

// Reads a struct with a list. `prefix` is that of FieldVisitor.
//
//   kInvalidArgument  a number without a name in an enumeration, an unknown
//                     DType or an invalid duration; names the field
//   kInternal         the list names a field that the message lacks
template <typename Struct>
absl::StatusOr<Struct> FromMessage(const google::protobuf::Message& message,
                                   std::string prefix) {
  Struct value;
  absl::Status status;
  FieldVisitor reader(message, std::move(prefix), status);
  VisitFields(reader, value);
  if (!status.ok()) return status;
  return value;
}

// Writes a struct with a list. By value, because a list is for both directions.
template <typename Proto, typename Struct>
Proto ToMessage(Struct value) {
  Proto message;
  FieldVisitor writer(message);
  VisitFields(writer, value);
  return message;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_FIELD_LIST_CODEC_H_
