#ifndef LOCKSTEP_COMMON_JOB_CODEC_FIELD_NAMES_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_FIELD_NAMES_CODEC_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

// What a person may have meant, for messages about the job file.

namespace lockstep {

std::vector<std::string> FieldNames(
    const google::protobuf::Descriptor& message);

// Without the value that only means "not set".
std::vector<std::string> EnumNames(
    const google::protobuf::EnumDescriptor& type);

// Of all fields called `field` in the file of `message`; for a fault of which
// no more than the name of the field is known.
std::vector<std::string> EnumNames(const google::protobuf::Descriptor& message,
                                   absl::string_view field);

// "; did you mean x?" when a name is near, else "; known are x, y, z". `prefix`
// goes before the near name: "checkpoint.".
std::string DidYouMean(absl::string_view name,
                       const std::vector<std::string>& known,
                       absl::string_view prefix = "");

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_FIELD_NAMES_CODEC_H_
