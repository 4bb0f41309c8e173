#include "common/job/codec/field_list_codec.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/job/codec/duration_codec.h"
#include "common/job/codec/field_names_codec.h"
#include "common/wire/wire_codec.h"
#include "google/protobuf/duration.pb.h"

namespace lockstep {

using google::protobuf::FieldDescriptor;

const FieldDescriptor* FieldVisitor::Find(const char* name) {
  const auto& type = *message_.GetDescriptor();
  const FieldDescriptor* field = type.FindFieldByName(name);
  if (!reads()) return field;
  if (field == nullptr) {
    status_->Update(absl::InternalError(
        absl::StrCat(type.full_name(), " has no field ", name,
                     ", but its list in common/job/codec names one; change "
                     "job.proto and the list together")));
    return nullptr;
  }
  const bool present = field->is_repeated()
                           ? reflection_.FieldSize(message_, field) > 0
                           : reflection_.HasField(message_, field);
  return present ? field : nullptr;
}

FieldVisitor FieldVisitor::Nested(const FieldDescriptor& field, int index) {
  if (!reads()) {
    return FieldVisitor(field.is_repeated()
                            ? *reflection_.AddMessage(target_, &field)
                            : *reflection_.MutableMessage(target_, &field));
  }
  return FieldVisitor(
      field.is_repeated()
          ? reflection_.GetRepeatedMessage(message_, &field, index)
          : reflection_.GetMessage(message_, &field),
      NameOf(field) + ".", *status_);
}

std::string FieldVisitor::NameOf(const FieldDescriptor& field) const {
  return prefix_ + field.name();
}

void FieldVisitor::RefuseNumber(const FieldDescriptor& field, int number) {
  status_->Update(absl::InvalidArgumentError(
      absl::StrCat(NameOf(field), " is the number ", number,
                   ", which has no name in this version; write one of ",
                   absl::StrJoin(EnumNames(*field.enum_type()), ", "))));
}

void FieldVisitor::Convert(const FieldDescriptor& field, DType& value) {
  if (!reads()) {
    reflection_.SetString(target_, &field, std::string(DTypeName(value)));
    return;
  }
  const absl::StatusOr<DType> type =
      ParseDType(reflection_.GetString(message_, &field));
  if (!type.ok()) {
    status_->Update(absl::InvalidArgumentError(
        absl::StrCat(NameOf(field), ": ", type.status().message())));
  }
  value = type.value_or(value);
}

void FieldVisitor::Convert(const FieldDescriptor& field,
                           absl::Duration& value) {
  if (!reads()) {
    reflection_.MutableMessage(target_, &field)->CopyFrom(ToProto(value));
    return;
  }
  google::protobuf::Duration proto;
  proto.CopyFrom(reflection_.GetMessage(message_, &field));
  const auto duration = DurationFromProto(NameOf(field), proto);
  status_->Update(duration.status());
  value = duration.value_or(value);
}

}  // namespace lockstep
