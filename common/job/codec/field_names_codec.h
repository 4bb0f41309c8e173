#ifndef LOCKSTEP_COMMON_JOB_CODEC_FIELD_NAMES_CODEC_H_
#define LOCKSTEP_COMMON_JOB_CODEC_FIELD_NAMES_CODEC_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"

// Suggestions of names for messages about the job file.

namespace lockstep {

std::vector<std::string> FieldNames(
    const google::protobuf::Descriptor& message);

// Names of the enumeration, without the value that only means "not set".
std::vector<std::string> EnumNames(
    const google::protobuf::EnumDescriptor& type);

// Names of the enumerations of all fields called `field` in the file of
// `message`; for errors that contain only the field's name.
std::vector<std::string> EnumNames(const google::protobuf::Descriptor& message,
                                   absl::string_view field);

// Returns those of `paths`, such as "optimizer.momentum", whose last name is
// `name` and that are in the fewest groups, in their order.
std::vector<std::string> ShallowestPaths(const std::vector<std::string>& paths,
                                         absl::string_view name);

// As ShallowestPaths(), of all fields below `root`; for errors about a field in
// a wrong group. None of a list of groups.
std::vector<std::string> FieldPaths(const google::protobuf::Descriptor& root,
                                    absl::string_view name);

// Returns "; did you mean x?" if a name is near, else "; known are x, y, z".
// `prefix` goes before the near name: "checkpoint.".
std::string NameHint(absl::string_view name,
                     const std::vector<std::string>& known,
                     absl::string_view prefix = "");

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_JOB_CODEC_FIELD_NAMES_CODEC_H_
